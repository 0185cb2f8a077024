"""Without Inspect AI its door says how to install it, and nothing else of the package asks for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

BLOCKED = "import sys; sys.modules['inspect_ai'] = None; "


def run(code):
    command = [sys.executable, "-c", BLOCKED + code]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False)


@pytest.mark.parametrize("module", ["inspect", "inspect_answers", "inspect_asking", "inspect_logs", "inspect_registry"])
def test_a_missing_extra_is_named(module):
    """Each module of the door raises ``MissingExtra`` with the command that installs what it needs."""
    done = run(f"import arabic_agent_eval.integrations.{module}")

    assert done.returncode == 1
    assert "MissingExtra" in done.stderr
    assert 'pip install "arabic-agent-eval[inspect]"' in done.stderr


def test_nothing_else_needs_it():
    """The package and its command load without Inspect AI."""
    assert run("import arabic_agent_eval.cli, arabic_agent_eval.integrations").returncode == 0
