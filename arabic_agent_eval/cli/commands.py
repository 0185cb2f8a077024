"""The commands, in the order in which the help and the page of the command line show them."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from arabic_agent_eval._version import __version__
from arabic_agent_eval.cli.comparing import compare
from arabic_agent_eval.cli.data import data
from arabic_agent_eval.cli.grading import grade, report, show
from arabic_agent_eval.cli.ranking import leaderboard
from arabic_agent_eval.cli.running import models, regrade, run

app = typer.Typer(
    name="aae",
    help="Measure how well language models call tools for Arabic speakers, and explain every lost point.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def _root(
    *, version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False
) -> None:
    if version:
        sys.stdout.write(f"arabic-agent-eval {__version__}\n")
        raise typer.Exit


for _command in (run, grade, report, compare, leaderboard, show, regrade, models):
    app.command()(_command)
app.add_typer(data, name="data")
