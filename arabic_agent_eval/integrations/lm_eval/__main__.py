"""Print the folder of the tasks, for ``--include_path``."""

import sys

from arabic_agent_eval.integrations.lm_eval import FOLDER

if __name__ == "__main__":
    sys.stdout.write(f"{FOLDER}\n")
