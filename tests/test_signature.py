"""What a number was computed from, as text; and that changed rules cannot keep their signature."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arabic_agent_eval import __version__
from arabic_agent_eval.errors import UsageError
from arabic_agent_eval.rules import RULES, Rules
from arabic_agent_eval.scoring import Signature, score_calls
from tests.conftest import CASES

SIGNATURE = Signature("sample@0123456789ab", 24, "canonical-1", "auto", 3, "0.2.0")


def test_golden_text():
    """A signature is written so, and so it stays: numbers in papers carry it."""
    assert str(SIGNATURE) == "items:sample@0123456789ab|n:24|rules:canonical-1|format:auto|epochs:3|v:0.2.0"
    assert SIGNATURE.of_grading == "items:sample@0123456789ab|n:24|rules:canonical-1|format:auto|v:0.2.0"


def test_defaults():
    """Without more being said: any format, one epoch, this version."""
    assert str(Signature("a@b", 1, "v0.1-1")) == f"items:a@b|n:1|rules:v0.1-1|format:auto|epochs:1|v:{__version__}"


words = st.text(st.characters(exclude_characters="|", exclude_categories=["Cs"]), max_size=12)


@given(st.builds(Signature, words, st.integers(0), words, words, st.integers(1), words))
def test_text_is_read_back(signature):
    """What was written is read as the same signature, whatever the names hold."""
    assert Signature.read(str(signature)) == signature


def test_text_of_grading_is_read_back():
    """Without the number of epochs it is one."""
    assert Signature.read(SIGNATURE.of_grading) == Signature(
        "sample@0123456789ab", 24, "canonical-1", "auto", 1, "0.2.0"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "items",
        "items:a|n:1|rules:r|format:auto",
        "items:a|n:x|rules:r|format:auto|v:1",
        "items:a|n:1|rules:r|format:auto|epochs:|v:1",
        "n:1|rules:r|format:auto|v:1",
        "items:a|n:1|format:auto|v:1",
        "items:a|n:1|rules:r|v:1",
        "items=a|n=1|rules=r|format=auto|v=1",
        "BLEU|nrefs:1|case:mixed",
    ],
)
def test_text_that_is_no_signature(text):
    """Anything else is refused in a sentence."""
    with pytest.raises(UsageError, match="not a signature of this package"):
        Signature.read(text)


# --- a changed rule without a changed signature fails ----------------------------------------------------------

BATTERY = CASES / "rulings.json"
PINNED_BATTERY = "2417fad7c3536c13"
PINNED = {
    "canonical-1": "e5d650972d8639b7",
    "v0.1-1": "638a9545d9ac4918",
}
"""Version of the rules → what they make of the battery. An entry of an old version stays, as history."""


def battery() -> list[dict[str, Any]]:
    """Expected and actual calls that touch every ruling, without what they should score."""
    rows = json.loads(BATTERY.read_text(encoding="utf-8"))
    kept = ("id", "expected", "actual", "category", "ordered")
    return [{field: row[field] for field in kept if field in row} for row in rows]


def digest(value: Any) -> str:
    """A short fingerprint of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def outcome(rules: Rules) -> list[Any]:
    """What the rules make of each case of the battery, to nine decimals."""
    found = []
    for case in battery():
        category, ordered = case.get("category", "tool_selection"), case.get("ordered", True)
        score = score_calls(case["expected"], case["actual"], category=category, ordered=ordered, rules=rules)
        axes = [None if value is None else round(value, 9) for value in score.axes.values()]
        found.append([case["id"], *axes, round(score.total, 9)])
    return found


@pytest.mark.parametrize("name", RULES)
def test_changed_rules_change_their_version(name):
    """The outcome of a fixed battery is pinned for each version: rules that grade otherwise must say so."""
    rules = RULES[name]
    found = digest(outcome(rules))

    assert digest(battery()) == PINNED_BATTERY, (
        "tests/cases/rulings.json holds other calls than when the outcomes were pinned. With the rules as they were, "
        f"pin PINNED_BATTERY = {digest(battery())!r} and PINNED[{rules.tag!r}] = {found!r}."
    )
    assert rules.tag in PINNED, f"a new version of the rules: pin PINNED[{rules.tag!r}] = {found!r}."
    assert found == PINNED[rules.tag], (
        f"the rules {rules.tag!r} grade otherwise than before. If that is intended, raise Rules.version in rules.py, "
        f"so that every signature shows it, and pin the new outcome {found!r}; if not, a ruling is broken."
    )


def test_battery_tells_the_rules_apart():
    """The battery would notice: both sets of rules, and every single setting of them, give another outcome."""
    canonical, older = RULES["canonical"], RULES["v0.1"]
    before = digest(outcome(canonical))

    settings = [field for field in vars(canonical) if field not in {"name", "version", "failed_row"}]
    for field in settings:
        changed = vars(canonical) | {field: getattr(older, field)}
        assert digest(outcome(Rules(**changed))) != before, field
