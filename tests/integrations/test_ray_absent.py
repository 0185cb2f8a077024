"""Without Ray everything else works, and who asks for Ray is told how to install it."""

from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner

from arabic_agent_eval import cli

GRADE = ["grade", "--items", "sample", "--replies", "sample"]


@pytest.mark.parametrize("missing", ["ray", "pyarrow"])
def test_the_command_that_installs_it_is_named(missing, monkeypatch, capsys):
    """Where Ray or Arrow is missing, the command ends with code 2 and the line that installs both."""
    for name in ("arrow", "blocks", "ray"):
        monkeypatch.delitem(sys.modules, f"arabic_agent_eval.integrations.{name}", raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setattr(sys, "argv", ["aae", *GRADE, "--engine", "ray"])

    with pytest.raises(SystemExit) as ended:
        cli.main()

    assert ended.value.code == cli.BAD_INPUT
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.endswith('install it with: pip install "arabic-agent-eval[ray]"\n')


def test_one_machine_needs_neither(monkeypatch):
    """Grading as usual loads nothing of Ray or Arrow."""
    for name in ("ray", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)

    assert CliRunner().invoke(cli.app, [*GRADE, "--engine", "local"]).exit_code == 0


def test_an_address_needs_ray():
    """A cluster is of no use to one machine, so naming one without the engine is a mistake."""
    done = CliRunner().invoke(cli.app, [*GRADE, "--ray-address", "auto"])

    assert "--ray-address needs --engine ray" in str(done.exception)
