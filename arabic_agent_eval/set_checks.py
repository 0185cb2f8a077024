"""What makes a set careless: items that repeat one another, intents that are not parallel, lines in the wrong dialect.

Single items are the subject of :mod:`arabic_agent_eval.checks`. Nothing here takes part in a score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from arabic_agent_eval.checks import Finding, shown
from arabic_agent_eval.copy_checks import check_copies, spoken_texts
from arabic_agent_eval.items import CATEGORIES, DIALECTS, Item
from arabic_agent_eval.ladder import strings_in
from arabic_agent_eval.likeness import Likeness
from arabic_agent_eval.markers import Marker, find_markers, spoken_words
from arabic_agent_eval.text import fold_all, has_arabic
from arabic_agent_eval.tools import Tool

ANY_SET: Final[dict[str, str]] = {
    "duplicate": "Two items of a dialect ask the same, are given the same and expect the same calls.",
}
"""Rule → what it looks for in any set."""

WHOLE_SET: Final[dict[str, str]] = {
    "near_duplicate": "Two instructions of a dialect are equal after all folds, or nearly, and expect like calls.",
    "incomplete_intent": "An intent exists in several dialects, but not in all five.",
    "unlike_intent": "Items of one intent differ in category, tools, context or expected calls.",
    "no_dialect_marker": "An instruction holds no word that marks its dialect.",
    "foreign_marker": "An instruction holds a word that marks another dialect only.",
    "msa_leakage": "An instruction in a dialect holds a word that only Standard Arabic uses.",
    "verbatim_loses": "Copying a value from the user's words loses points, and nothing accepts the copy.",
    "unbalanced": "A dialect or a category has fewer items than its floor.",
}
"""Rule → what it looks for in a set that is to be a benchmark."""

_MESSAGES: Final = {
    "duplicate": "The item {other} asks the same and expects the same calls, so one request counts twice: remove one.",
    "near_duplicate": "The item {other} says {how} in the same dialect, so one request counts twice: "
    "remove one, or ask something else.",
    "incomplete_intent": "The intent {intent} is missing in {missing}, so dialects are not asked the same: "
    "write the missing lines.",
    "unlike_intent": "The item {other} has the same intent and another value here, so the two cannot be compared: "
    "make them the same, or give one another intent.",
    "no_dialect_marker": "No word marks the line as {dialect}, so it could be any Arabic: "
    "say it as its speakers would, or correct the dialect.",
    "foreign_marker": "{word} is {home} and the line is to be {dialect}: replace the word, or correct the dialect.",
    "msa_leakage": "{word} is Standard Arabic and the line is to be {dialect}: say it as its speakers would.",
    "unbalanced": "{name} has {count} items and the floor is {floor}: write more, or lower the floor.",
}

_MOST_LIKE: Final = 50  # items with the same words that an item is compared with


class Line(NamedTuple):
    """What an item says in an Arabic of the five, and the words in it that mark a kind of Arabic."""

    item: Item
    dialect: str
    markers: list[Marker]


class DialectFigures(msgspec.Struct, frozen=True):
    """How the lines of a dialect sound.

    Attributes:
        items: Arabic lines of the dialect.
        marked: lines that hold a word that marks the dialect.
        markers: such words in all lines; ``distinct`` of them different.
        msa_words: words of Standard Arabic, sure ones and others.
    """

    items: int
    marked: int
    markers: int
    distinct: int
    msa_words: int


class SetOverview(msgspec.Struct, frozen=True):
    """What a set holds.

    Attributes:
        cells: dialect → category → items; ``""`` stands for items without a dialect.
        complete_intents: intents in all five dialects; ``partial_intents``: in several, but not in all.
        dialects: dialect → how its lines sound.
    """

    cells: dict[str, dict[str, int]]
    complete_intents: int
    partial_intents: int
    dialects: dict[str, DialectFigures]


def check_any_set(items: Iterable[Item]) -> list[Finding]:
    """The rules of :data:`ANY_SET`: what no set should have, benchmark or not."""
    seen: dict[Any, list[Item]] = {}
    found = []
    for item in items:
        like = seen.setdefault((item.dialect, *map(fold_all, spoken_texts(item))), [])
        same = next((other for other in like[:_MOST_LIKE] if _same_question(item, other)), None)
        if same is not None and spoken_texts(item):
            found.append(_finding(item, "duplicate", "instruction", other=shown(same.id)))
        elif len(like) < _MOST_LIKE:
            like.append(item)
    return found


def check_whole_set(
    items: Sequence[Item],
    tools: Mapping[str, Tool],
    *,
    per_dialect: int = 0,
    per_category: int = 0,
    categories: Iterable[str] = CATEGORIES,
) -> tuple[SetOverview, list[Finding]]:
    """What the set holds, and what the rules of :data:`WHOLE_SET` find: by item, and last what concerns the set.

    Args:
        items: the set.
        tools: the registry in which ``available_functions`` are looked up.
        per_dialect: how many items each of the five dialects should have.
        per_category: how many items each category should have.
        categories: those that the set should have; others that it has need as many.
    """
    lines = read_lines(items)
    overview = _overview(items, lines)
    findings = [*_near_duplicates(items), *_intents(items)]
    findings += [one for line in lines for one in _line_findings(line)]
    findings += [one for item in items for one in check_copies(item, tools)]
    places = {item.id: place for place, item in enumerate(items)}
    findings.sort(key=lambda one: places[one.item_id])
    return overview, [*findings, *_unbalanced(overview, per_dialect, per_category, categories)]


def read_lines(items: Iterable[Item]) -> list[Line]:
    """The lines of the five dialects that are Arabic; words of expected values mark nothing, as they may be names."""
    found = []
    for item in items:
        text = "\n".join(spoken_texts(item))
        if item.dialect in DIALECTS and has_arabic(text):
            values = (value for call in item.expected_calls for value in strings_in(call.arguments))
            names = frozenset(word for value in values if has_arabic(value) for word in fold_all(value).split())
            # What is written in Latin letters but for a name or a quotation has no words to be judged by.
            if any(has_arabic(word) and word not in names for word, _ in spoken_words(text)):
                found.append(Line(item, item.dialect, find_markers(text, names)))
    return found


def _finding(item: Item | None, rule: str, field: str, **words: str) -> Finding:
    return Finding("" if item is None else item.id, rule, field, _MESSAGES[rule].format_map(words))


# --- items that repeat one another ---------------------------------------------------------------------------


def _same(one: Any, other: Any, *, too_deep: bool = False) -> bool:
    """Tell whether two values are equal; of what nests too deeply to be compared, the answer that claims nothing."""
    try:
        return bool(one == other)
    except RecursionError:
        return too_deep


def _calls(item: Item) -> list[Any]:
    return [(call.function, call.arguments) for call in item.expected_calls]


def _same_question(item: Item, other: Item) -> bool:
    asked = ((one.context, one.tools, one.offered, one.messages, _calls(one)) for one in (item, other))
    return _same(*asked)


def _near_duplicates(items: Sequence[Item]) -> Iterator[Finding]:
    said: dict[str, Likeness[Item]] = {}
    for item in items:
        text = " ".join(map(fold_all, spoken_texts(item)))
        if not text:
            continue
        earlier = said.setdefault(item.dialect or "", Likeness())
        for other, equal in earlier.like(text):
            if equal and _same_question(item, other):  # a duplicate in any set, and found as one
                break
            if equal or _like_calls(item, other):
                how = "the same" if equal else "nearly the same"
                yield _finding(item, "near_duplicate", "instruction", other=shown(other.id), how=how)
                break
        earlier.add(text, item)


def _like_calls(item: Item, other: Item) -> bool:
    """Tell whether the same functions are expected, and half of the arguments or more are the same."""
    calls, others = item.expected_calls, other.expected_calls
    if [call.function for call in calls] != [call.function for call in others]:
        return False
    same = every = 0
    for one, two in zip(calls, others, strict=True):
        names = one.arguments.keys() | two.arguments.keys()
        every += len(names)
        same += sum(_same(one.arguments.get(name, ""), two.arguments.get(name, "")) for name in names)
    return 2 * same >= every


# --- intents -------------------------------------------------------------------------------------------------


def _by_intent(items: Iterable[Item]) -> dict[tuple[str, str], list[Item]]:
    """The items of each intent, the five dialects as one language."""
    found: dict[tuple[str, str], list[Item]] = {}
    for item in items:
        if item.intent is not None:
            language = "ar" if item.dialect in DIALECTS else item.language or item.dialect or ""
            found.setdefault((item.intent, language), []).append(item)
    return found


def _missing(group: Iterable[Item]) -> list[str]:
    """The dialects that an intent lacks, where it has several."""
    has = {item.dialect for item in group}
    return [name for name in DIALECTS if name not in has] if len(has.intersection(DIALECTS)) > 1 else []


def _intents(items: Iterable[Item]) -> Iterator[Finding]:
    for (intent, language), group in _by_intent(items).items():
        missing = _missing(group) if language == "ar" else []
        if missing:
            yield _finding(group[0], "incomplete_intent", "intent", intent=shown(intent), missing=", ".join(missing))
        model = _shared(group[0])
        for item in group[1:]:
            for field, value in _shared(item).items():
                if not _same(value, model[field], too_deep=True):
                    place = "available_functions" if field == "tools" and item.tools is None else field
                    yield _finding(item, "unlike_intent", place, other=shown(group[0].id))


def _shared(item: Item) -> dict[str, Any]:
    """What the items of an intent must have in common; what is accepted besides may differ, as spelling does."""
    calls = [(call.function, call.arguments, call.result) for call in item.expected_calls]
    return {
        "category": item.category,
        "tools": (item.offered, item.tools),
        "context": item.context,
        "expected_calls": (item.ordered, calls),
    }


# --- dialects ------------------------------------------------------------------------------------------------


def _own(line: Line) -> list[str]:
    return [marker.word for marker in line.markers if line.dialect in marker.dialects]


def _line_findings(line: Line) -> Iterator[Finding]:
    """What is wrong with the words of a line; a word is named once."""
    if line.dialect != "msa" and not _own(line):
        yield _finding(line.item, "no_dialect_marker", "instruction", dialect=line.dialect)
    for marker in dict.fromkeys(line.markers):
        if marker.sure and line.dialect not in marker.dialects:
            [home] = marker.dialects
            rule = "msa_leakage" if home == "msa" else "foreign_marker"
            yield _finding(line.item, rule, "instruction", word=shown(marker.word), home=home, dialect=line.dialect)


def _figures(lines: list[Line]) -> DialectFigures:
    own = [_own(line) for line in lines]
    return DialectFigures(
        items=len(lines),
        marked=sum(map(bool, own)),
        markers=sum(map(len, own)),
        distinct=len({word for words in own for word in words}),
        msa_words=sum("msa" in marker.dialects for line in lines for marker in line.markers),
    )


# --- how many there are --------------------------------------------------------------------------------------


def _overview(items: Sequence[Item], lines: list[Line]) -> SetOverview:
    cells: dict[str, Counter[str]] = {name: Counter() for name in DIALECTS}
    for item in items:
        cells.setdefault(item.dialect or "", Counter())[item.category] += 1
    arabic = [group for (_, language), group in _by_intent(items).items() if language == "ar"]
    complete = sum({item.dialect for item in group}.issuperset(DIALECTS) for group in arabic)
    return SetOverview(
        cells={name: dict(counts) for name, counts in cells.items()},
        complete_intents=complete,
        partial_intents=sum(bool(_missing(group)) for group in arabic),
        dialects={name: _figures([line for line in lines if line.dialect == name]) for name in DIALECTS},
    )


def _unbalanced(
    overview: SetOverview, per_dialect: int, per_category: int, categories: Iterable[str]
) -> Iterator[Finding]:
    totals: Counter[str] = Counter(dict.fromkeys(categories, 0))
    for counts in overview.cells.values():
        totals.update(counts)
    dialects = {name: sum(overview.cells[name].values()) for name in DIALECTS}
    for field, counted, floor in (("dialect", dialects, per_dialect), ("category", totals, per_category)):
        yield from _below(field, counted, floor)


def _below(field: str, counted: Mapping[str, int], floor: int) -> Iterator[Finding]:
    for name, count in counted.items():
        if count < floor:
            words = {"name": f"The {field} {shown(name)}", "count": f"{count:,}", "floor": f"{floor:,}"}
            yield _finding(None, "unbalanced", field, **words)
