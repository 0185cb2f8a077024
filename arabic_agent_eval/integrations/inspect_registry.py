"""What Inspect AI finds under ``arabic_agent_eval/``: it loads this module by the entry point of that name."""

from arabic_agent_eval.integrations.inspect import (
    TASKS,
    ask,
    by_category,
    by_dialect,
    canonical,
    from_file,
    overall,
)

__all__ = ["TASKS", "ask", "by_category", "by_dialect", "canonical", "from_file", "overall"]
