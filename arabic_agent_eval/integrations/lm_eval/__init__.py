"""lm-evaluation-harness: a folder of tasks for ``--include_path``; the harness itself is not needed to import this.

    lm_eval --include_path "$(python -m arabic_agent_eval.integrations.lm_eval)" --tasks arabic_agent_eval_starter …

``docs/integrations/lm_eval.md`` says what these tasks measure, and what they cannot.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
"""What ``--include_path`` takes."""
