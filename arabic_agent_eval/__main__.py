"""``python -m arabic_agent_eval`` is ``aae``."""

from arabic_agent_eval.cli import main

main()
