"""``aae compare``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arabic_agent_eval.cli import steps
from arabic_agent_eval.cli.guard import GATE_FAILED, UNSCORED, guarded
from arabic_agent_eval.cli.options import CategoriesOption, JsonOption, Layout, RuleName, RulesOption, number
from arabic_agent_eval.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arabic_agent_eval.comparison import Comparison
    from arabic_agent_eval.reports.side_by_side import Both
    from arabic_agent_eval.rules import Rules


@guarded
def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="A B [C…]", help="Run folders or graded rows; the others are compared with the first."),
    ],
    *,
    common: Annotated[
        bool, typer.Option("--common", help="Compare the items that both hold, where the item sets differ.")
    ] = False,
    by_intent: Annotated[
        bool,
        typer.Option("--by-intent", help="Match items by intent: what the same requests cost in another language."),
    ] = False,
    rules: RulesOption = RuleName.CANONICAL,
    categories: CategoriesOption = None,
    layout: Annotated[Layout, typer.Option("--format", help="terminal or markdown.")] = Layout.TERMINAL,
    as_json: JsonOption = False,
    show: Annotated[
        int, typer.Option("--show", metavar="N", min=0, help="Show the N items that changed most side by side.")
    ] = 0,
    fail_if_worse: Annotated[
        float | None,
        typer.Option(
            "--fail-if-worse",
            metavar="MARGIN",
            min=0.0,
            max=1.0,
            callback=number,
            help="Exit 1 when a later run is worse than the first by more than this, shown by its whole interval; 0 "
            "for any loss that is shown.",
        ),
    ] = None,
) -> None:
    """Compare models on the same items: the difference, how sure it is, and where it comes from."""
    from msgspec import json

    from arabic_agent_eval.comparison import LISTED, compare_all
    from arabic_agent_eval.rules import RULES
    from arabic_agent_eval.scores import matched_by_intent, read_scores

    if by_intent and show:
        raise UsageError("--show needs the same items on both sides; leave it out with --by-intent.")
    declared = steps.declared(categories, runs=runs)
    scores = [read_scores(path, rules=RULES[rules]) for path in runs]
    if by_intent:
        scores = matched_by_intent(scores[0], scores[1:])
    found = compare_all(scores, categories=declared, common=common, by_intent=by_intent, listed=max(show, LISTED))
    if as_json:
        steps.write(json.format(json.encode({"comparisons": found}), indent=2) + b"\n")
    else:
        _print(found, layout, _beside(runs, found, show, RULES[rules]))
    _finish(found, fail_if_worse)


def _beside(runs: Sequence[Path], comparisons: Sequence[Comparison], most: int, rules: Rules) -> list[list[Both]]:
    """For each comparison the answers to the items that changed most; the first run is read once."""
    if not most:
        return []
    from arabic_agent_eval.reports.side_by_side import beside, changed_most, first_answers
    from arabic_agent_eval.scores import read_graded

    changes = [changed_most(one, most) for one in comparisons]
    wanted = [{change.item_id for change in several} for several in changes]
    of_first = first_answers(read_graded(runs[0], rules=rules), set().union(*wanted))
    return [
        beside(several, of_first, first_answers(read_graded(path, rules=rules), ids))
        for path, several, ids in zip(runs[1:], changes, wanted, strict=True)
    ]


def _print(comparisons: Sequence[Comparison], layout: Layout, shown: Sequence[Sequence[Both]]) -> None:
    from arabic_agent_eval.reports.comparison import letter, markdown_comparisons, print_comparisons
    from arabic_agent_eval.reports.side_by_side import markdown_side_by_side, print_side_by_side

    console = steps.console()
    if layout is Layout.MARKDOWN:
        steps.write(markdown_comparisons(comparisons).encode())
    else:
        print_comparisons(comparisons, console)
    for place, several in enumerate(shown, 1):
        if layout is Layout.MARKDOWN and several:
            steps.write(b"\n" + markdown_side_by_side(several, letter(place)).encode())
        elif several:
            console.print()
            print_side_by_side(several, letter(place), console)


def _finish(comparisons: Sequence[Comparison], margin: float | None) -> None:
    """The exit code: a run that is shown to be worse, then answers that are missing."""
    for one in comparisons if margin is not None else ():
        if one.overall is None:
            steps.say(f"{one.b.path} has no overall score to compare, so --fail-if-worse cannot be met.")
            raise typer.Exit(GATE_FAILED)
        if margin is not None and one.overall.high < -margin:
            steps.say(
                f"{one.b.path} is worse than {one.a.path} by more than --fail-if-worse {margin:g}: "
                f"the interval of the difference ends at {one.overall.high:.4f}."
            )
            raise typer.Exit(GATE_FAILED)
    if not all(one.is_complete for one in comparisons):
        steps.say("Some answers were not judged on both sides; the comparison is about the others.")
        raise typer.Exit(UNSCORED)
