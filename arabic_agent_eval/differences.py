"""Why an actual value is not the expected one: one cause for each pair, from the cheapest test to the dearest.

A cause never changes a score. Among several that hold, one that the ladder already forgives (``spelling``,
``latin_case``) never hides one that it does not; then the cause that is hardest to see by eye is named, in the
order of ``_TELLING``. The decision order for the other script is: known names and words, sound, part of the words.
"""

from __future__ import annotations

import html
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from itertools import chain
from typing import Any, Final, get_args
from urllib.parse import unquote

from arabic_agent_eval.causes import Cause
from arabic_agent_eval.lexicon import fold_short, load_lexicon, placeholder_forms
from arabic_agent_eval.strictjson import MalformedJSON, decode, number_text, too_deep
from arabic_agent_eval.text import (
    FOLDS,
    fold_diacritics,
    fold_digits,
    fold_invisible,
    fold_letters,
    fold_unicode,
)
from arabic_agent_eval.text import normalize_arabic as normalize
from arabic_agent_eval.wording import compare_names, compare_numbers, compare_wording, in_other_script

CAUSES: Final[tuple[str, ...]] = get_args(Cause)

_LONG = 2_000  # characters; beyond, only the folds and a glance at the words
_HUGE = 20_000  # beyond, the beginning speaks for the whole
_CACHED = 300
_TELEPHONE = 7  # digits: a number this long is a string of figures, whatever groups it is written in
_REVERSIBLE = 4

_ALONE: Final[tuple[Cause, ...]] = (
    "whitespace", "diacritics", "digits", "invisible_character", "letter_variant", "punctuation", "unicode_form",
    "hamza",
)  # fmt: skip
_DROPPED = ("hamza", "punctuation", "unicode_form", "latin_case", "spelling", "letter_variant", "digits",
            "diacritics", "invisible_character", "whitespace")  # fmt: skip
_TELLING: Final[tuple[Cause, ...]] = (
    "unicode_form", "invisible_character", "letter_variant", "hamza", "digits", "diacritics", "punctuation",
    "whitespace", "spelling", "latin_case",
)  # fmt: skip
"""Of several folds that are needed, the first here is named: what the ladder forgives comes last."""


def explain(expected: Any, actual: Any) -> Cause:
    """Name the one cause why two JSON values that did not fully match differ.

    Args:
        expected: the right value, never null.
        actual: what came instead; None when the argument is absent.

    No input raises. The result is one of :data:`CAUSES`; ``wrong_value`` when nothing else explains the difference.
    """
    if isinstance(expected, str) and isinstance(actual, str):
        return _explain_texts(expected, actual)
    if too_deep(expected) or too_deep(actual):
        return "wrong_value"
    return _explain(expected, actual)


def _explain(expected: Any, actual: Any) -> Cause:
    if actual is None or (_is_container(actual) and not actual):
        return "wrong_type" if _is_container(expected) and not expected and actual is not None else "missing"
    if _is_container(expected) or _is_container(actual):
        return _explain_containers(expected, actual)
    if isinstance(expected, bool) or isinstance(actual, bool):
        return _explain_truth(_text(expected), _text(actual))
    return _explain_texts(_text(expected), _text(actual))


def _explain_texts(expected: str, actual: str) -> Cause:
    if len(expected) + len(actual) < _CACHED:
        return _explain_short(expected, actual)
    return _compare_texts(expected, actual)


@lru_cache(maxsize=50_000)
def _explain_short(expected: str, actual: str) -> Cause:
    return _compare_texts(expected, actual)


def _compare_texts(expected: str, actual: str) -> Cause:
    if not normalize(fold_invisible(actual)):
        return "missing" if expected.strip() or not actual.strip() else "wrong_value"
    if not expected.strip():
        return "wrong_value"
    if cause := _forgiven(expected, actual):
        return cause
    if max(len(expected), len(actual)) > _LONG:
        return _compare_long(expected, actual)
    return _by_folds(expected, actual) or _by_meaning(expected, actual)


# --- values that are not two texts ---------------------------------------------------------------------------


def _is_container(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple)


def _text(value: Any) -> str:
    """The text of a scalar (ruling 1)."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return number_text(value) if isinstance(value, int | float) else repr(value)


def _explain_truth(expected: str, actual: str) -> Cause:
    """A boolean on at least one side."""
    truths = load_lexicon().truths
    if not normalize(fold_invisible(actual)):
        return "missing"
    if cause := _forgiven(expected, actual) or _by_folds(expected, actual):
        return cause
    wanted, got = truths.get(fold_short(expected[:_CACHED])), truths.get(fold_short(actual[:_CACHED]))
    if wanted is not None and wanted == got:
        return "wrong_type"
    return "placeholder" if _is_placeholder(actual) else "wrong_value"


def _explain_containers(expected: Any, actual: Any) -> Cause:
    if isinstance(actual, str) and not normalize(fold_invisible(actual)):
        return "missing"
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        pairs = [(member, actual.get(key)) for key, member in expected.items() if member is not None]
        return _explain_worst(pairs)
    if isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        if len(expected) != len(actual):
            return "wrong_type" if _same_content(expected, actual) else "wrong_value"
        pairs = list(zip(expected, actual, strict=True))
        moved = len(pairs) <= _LONG and _worst(pairs)[0] == 0 and _are_moved(expected, actual)
        return "reworded" if moved else _explain_worst(pairs)
    if isinstance(actual, str) and _is_placeholder(actual):
        return "placeholder"
    return "wrong_type" if _same_content(expected, actual) else "wrong_value"


def _explain_worst(pairs: list[tuple[Any, Any]]) -> Cause:
    """The cause of the first pair on the lowest rung, so that a forgiven difference hides no other."""
    expected, actual = _worst(pairs)[1]
    return "wrong_value" if expected is None else _explain(expected, actual)


def _worst(pairs: Iterable[tuple[Any, Any]]) -> tuple[float, tuple[Any, Any]]:
    """The first pair on the lowest rung, and that rung."""
    worst: tuple[float, tuple[Any, Any]] = (1.0, (None, None))
    for pair in pairs:
        rung = _rung(*pair)
        if rung < worst[0] or worst[1][0] is None:
            worst = rung, pair
        if not rung:
            break
    return worst


def _rung(expected: Any, actual: Any) -> float:
    """The ladder (rulings 5 and 6) as far as this module needs it: which member is worst."""
    if expected is None or actual is None:
        return float(expected is None and actual is None)
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        members = ((member, actual.get(key)) for key, member in expected.items() if member is not None)
        return _worst(members)[0]
    if isinstance(expected, list | tuple) and isinstance(actual, list | tuple) and len(expected) == len(actual):
        return _worst(zip(expected, actual, strict=True))[0]
    if _is_container(expected) or _is_container(actual):
        return 0.0
    wanted, got = _text(expected).strip(), _text(actual).strip()
    if wanted == got:
        return 1.0
    return {"spelling": 0.9, "latin_case": 0.8, None: 0.0}[_forgiven(wanted, got)]


def _content(value: Any) -> Any:
    """A hashable form in which values of the same content are equal, whatever their type and spelling."""
    if isinstance(value, Mapping):
        return frozenset((str(key), _content(member)) for key, member in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(_content, value))
    text = _text(value)
    return (fold_short(text) or text) if len(text) <= _LONG else text


def _are_moved(one: Iterable[Any], other: Iterable[Any]) -> bool:
    """Tell whether two lists have the same members in another order."""
    members, others = [_content(member) for member in one], [_content(member) for member in other]
    return members != others and Counter(members) == Counter(others)


def _same_content(one: Any, other: Any) -> bool:
    """Tell whether a container and another value hold the same, written as different JSON types."""
    return any(
        _content(container) in {_content(reading) for reading in _readings(value, container)}
        for container, value in ((one, other), (other, one))
        if _is_container(container)
    ) or (not _is_container(one) and isinstance(other, Mapping) and _content(one) in map(_content, other.values()))


def _readings(value: Any, like: Any) -> list[Any]:
    """What a value of another type may stand for, given the container that it should be like."""
    readings: list[Any] = [] if isinstance(like, Mapping) else [[value]]
    if isinstance(like, Mapping) and len(like) == 1:
        readings = [{next(iter(like)): value}]
    if isinstance(value, Mapping) and not isinstance(like, Mapping):
        readings.append(list(value.values()))
    if isinstance(value, str):
        if value.lstrip()[:1] in {"[", "{"}:
            with suppress(MalformedJSON):
                readings.append(decode(value.strip()))
        if len(value) <= _LONG and not isinstance(like, Mapping):
            inner = value.strip(" []{}()")
            readings += [
                [part.strip("\"'«»“” ") for part in re.split(pattern, inner)]
                for pattern in (r"[,،;؛|\n]", r"[,،;؛|\n]| (?:و|and )(?=\S)")
            ]
    return readings


# --- folds ---------------------------------------------------------------------------------------------------


def _forgiven(expected: str, actual: str) -> Cause | None:
    """What the ladder forgives (ruling 5); spelling before case."""
    normal = normalize(expected)
    if normal and normal == normalize(actual):
        if fold_letters(expected).strip() != fold_letters(actual).strip() and _lower(expected) == _lower(actual):
            return "latin_case"
        return "spelling"
    return "latin_case" if _lower(expected) == _lower(actual) else None


def _lower(text: str) -> str:
    return text.strip().lower()


def _by_folds(expected: str, actual: str) -> Cause | None:
    """The most telling fold of a minimal set that makes the texts equal; None when all folds together do not."""
    if (folded := fold_short(expected)) != (other := fold_short(actual)):
        marks = not (folded.isascii() and other.isascii()) and _plain(folded) == _plain(other)
        return "diacritics" if marks else None
    for name in _ALONE:
        if FOLDS[name](expected).strip() == FOLDS[name](actual).strip():
            return None if name == "punctuation" and _signs(expected) != _signs(actual) else name
    needed = list(FOLDS)
    for dropped in _DROPPED:
        rest = [fold for fold in needed if fold != dropped]
        if _apply(rest, expected) == _apply(rest, actual):
            needed = rest
    if not folded or ("punctuation" in needed and _signs(expected) != _signs(actual)):
        return None
    return _most_telling(needed or ["spelling"])


def _apply(names: Iterable[str], text: str) -> str:
    for name in names:
        text = FOLDS[name](text)
    return text.strip()


def _plain(text: str) -> str:
    """Latin letters without their marks."""
    return "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))


def _signs(text: str) -> list[str]:
    """What the folds drop although it is no mere punctuation: currency signs, emoji, the sharp of C#, controls."""
    return [char for char in fold_unicode(text) if char == "#" or _is_sign(char)]


def _is_sign(char: str) -> bool:
    return unicodedata.category(char) in {"Sc", "So", "Cc", "Cs", "Co", "Cn"} and not char.isspace()


def _most_telling(names: Iterable[str]) -> Cause:
    found = set(names)
    return next(cause for cause in _TELLING if cause in found)


def _compare_long(expected: str, actual: str) -> Cause:
    """Folds on the part that differs, then whether one holds the other or stands in the other script."""
    one, other = _differing(expected, actual)
    if max(len(one), len(other)) <= _LONG:
        return _by_folds(one, other) or _glance(expected, actual)
    if max(len(one), len(other)) > _HUGE:
        # Folding may shorten one side more than the other, so the ends of the two beginnings need not agree.
        heads = fold_short(one[:_LONG]), fold_short(other[:_LONG])
        size = min(map(len, heads)) * 9 // 10
        alike = min(len(one), len(other)) * 4 > max(len(one), len(other))
        same = alike and size > 0 and heads[0][:size] == heads[1][:size]
        return (_head_cause(one, other) if same else None) or _glance(expected, actual)
    return _by_folds(one, other) or _glance(expected, actual)


def _head_cause(one: str, other: str) -> Cause | None:
    heads = one[:_LONG], other[:_LONG]
    return next((name for name in _ALONE if _agree(FOLDS[name](heads[0]), FOLDS[name](heads[1]))), None)


def _agree(one: str, other: str) -> bool:
    size = min(len(one), len(other)) * 9 // 10
    return size > 0 and one[:size] == other[:size]


def _differing(one: str, other: str) -> tuple[str, str]:
    """Both texts without what they share at the ends, widened a little so that words and marks stay whole."""
    size = min(len(one), len(other))
    start = max(0, _shared(lambda n: one[:n] == other[:n], size) - 100)
    end = max(0, _shared(lambda n: one[len(one) - n :] == other[len(other) - n :], size - start) - 100)
    return one[start : len(one) - end], other[start : len(other) - end]


def _shared(agrees: Callable[[int], bool], size: int) -> int:
    """The largest number up to the size for which the two ends agree, by bisection."""
    low, high = 0, size
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if agrees(middle) else (low, middle - 1)
    return low


def _glance(expected: str, actual: str) -> Cause:
    short, long = sorted((normalize(expected), normalize(actual)), key=len)
    place = long.find(short)
    if short and place >= 0 and not (long[:place][-1:].isalnum() or long[place + len(short) :][:1].isalnum()):
        return "extra_words"
    return "latin_script" if in_other_script(expected[:_LONG], actual[:_LONG]) else "wrong_value"


# --- decoders ------------------------------------------------------------------------------------------------

_ESCAPE = re.compile(
    r"\\+u\{?([0-9a-fA-F]{4,6})\}?|\\+x([0-9a-fA-F]{2})|(?:\\+|(?<![A-Za-z]))[uU]\+?(0[67][0-9a-fA-F]{2})"
)
_SHORT_ESCAPE = re.compile(r"\\+([nrtbf\"'/\\])")
_SHORT = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


def _unescape(text: str) -> Iterator[str]:
    """The readings of a text that holds escape codes of JSON or Python, HTML or URLs."""
    if "\\" in text or "u06" in text or "u+06" in text.lower():
        plain = _ESCAPE.sub(lambda found: _character(found[1] or found[2] or found[3]), text)
        plain = _SHORT_ESCAPE.sub(lambda found: _SHORT.get(found[1], found[1]), plain)
        yield plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if "&" in text:
        yield html.unescape(text)
    if "%" in text:
        yield unquote(text.replace("+", " "))


def _character(code: str) -> str:
    number = int(code, 16)
    return chr(number) if number <= sys.maxunicode else "\ufffd"


@cache
def _bytes_of(encoding: str) -> dict[int, int]:
    """Character → byte of a one-byte encoding; a byte that it does not define stands for itself."""
    table = {}
    for byte in range(256):
        try:
            table[ord(bytes([byte]).decode(encoding))] = byte
        except UnicodeDecodeError:
            table[byte] = byte
    return table


_READ_AS = ("cp1252", "latin-1", "mac_roman", "cp1256")


def _misread(text: str) -> Iterator[str]:
    """The texts that were, perhaps, read in the wrong encoding to give this one."""
    for encoding in _READ_AS:
        try:
            data = text.translate(_bytes_of(encoding)).encode("latin-1")
        except UnicodeEncodeError:
            continue
        for right in ("utf-8", *({"cp1256", "iso8859-6"} if encoding != "cp1256" else {"cp1252"})):
            try:
                yield data.decode(right)
            except UnicodeDecodeError:
                continue


def _decoded(expected: str, actual: str) -> Cause | None:
    """Escape codes, then a wrong encoding, once or twice; only when the decoded text is the expected one."""
    goal = fold_short(expected)
    if not goal or (actual.isascii() and not any(sign in actual for sign in "\\&%?uU")):
        return None
    unescaped = [text for text in _unescape(actual) if text != actual]
    if any(fold_short(text) == goal for text in [*unescaped, *chain.from_iterable(map(_unescape, unescaped))]):
        return "escaped_text"
    if _is_lost(expected, actual):
        return "mojibake"
    once = [text for start in (actual, *unescaped) if not start.isascii() for text in _misread(start)]
    twice = (text for start in dict.fromkeys(once) for text in _misread(start))
    # A reading without the first letter of the goal is not worth folding.
    likely = (text for text in chain(once, twice) if goal[0] in fold_letters(text).lower())
    return "mojibake" if any(fold_short(text) == goal for text in likely) else None


def _is_lost(expected: str, actual: str) -> bool:
    """Tell whether every letter was replaced by a question mark or the replacement character."""
    marks = actual.strip()
    many = len(marks) >= _REVERSIBLE or len(marks) == len(expected.strip()) or "\ufffd" in marks
    return many and len(marks) > 1 and not marks.strip("?\ufffd ") and not expected.isascii()


# --- the order of the tests ----------------------------------------------------------------------------------


def _by_meaning(expected: str, actual: str) -> Cause:
    """What neither the ladder nor a fold explains."""
    if fold_short(expected) == fold_short(actual):  # only signs differ, which the folds do not see
        signs = _signs(expected), _signs(actual)
        added = fold_short(expected) and not all(signs) and "#" not in signs[0] + signs[1]
        return compare_names(expected, actual) or ("extra_words" if added else "wrong_value")
    tests: tuple[Callable[[str, str], Cause | None], ...] = (
        _seats, _spacing, compare_names, _placeholder, _decoded, compare_numbers, _reversed, compare_wording,
    )  # fmt: skip
    return next((cause for test in tests if (cause := test(expected, actual))), "wrong_value")


# Alef is tried last: a text may differ in a seat here and in a forgiven alef there.
_SEATS = tuple(str.maketrans(dict.fromkeys(seats, "ء")) for seats in ("ؤئ", "ؤئأإ"))


def _seats(expected: str, actual: str) -> Cause | None:
    """The hamza sits on another letter: مسؤول / مسئول."""
    plain = fold_diacritics(fold_unicode(expected)), fold_diacritics(fold_unicode(actual))
    for seats in _SEATS:
        one, other = plain[0].translate(seats), plain[1].translate(seats)
        if "ء" in one and "ء" in other and _equal_but_for_hamza(one, other):
            return "hamza"
    return None


def _equal_but_for_hamza(one: str, other: str) -> bool:
    kept = [name for name in FOLDS if name != "hamza"]
    return _apply(kept, one) == _apply(kept, other)


def _spacing(expected: str, actual: str) -> Cause | None:
    """Words joined or parted: عبد الله / عبدالله; a telephone number in groups. Short numbers keep their spaces."""
    one, other = fold_short(expected), fold_short(actual)
    if one.replace(" ", "") == other.replace(" ", "") and not _parts_numbers(one, other):
        return "whitespace"
    digits = [re.sub(r"[\s().-]", "", text) for text in (fold_digits(expected), fold_digits(actual))]
    same = digits[0] == digits[1] and len(digits[0].lstrip("+")) >= _TELEPHONE and digits[0].lstrip("+").isdecimal()
    if same and not re.search(r"\d\.\d", expected + actual):
        return "whitespace" if re.sub(r"\s", "", expected) == re.sub(r"\s", "", actual) else "punctuation"
    return None


def _parts_numbers(one: str, other: str) -> bool:
    """Tell whether the spaces that differ stand between digits: «5 6» is not «56»."""
    return re.findall(r"\d+", one) != re.findall(r"\d+", other) and len(one) < _TELEPHONE


def _is_placeholder(text: str) -> bool:
    return len(text) < _CACHED and not load_lexicon().placeholders.isdisjoint(placeholder_forms(text))


def _placeholder(expected: str, actual: str) -> Cause | None:
    return "placeholder" if _is_placeholder(actual) and not _is_placeholder(expected) else None


def _reversed(expected: str, actual: str) -> Cause | None:
    """All letters, or those of each word, in reverse; a lam-alef or a number may have kept its order."""
    one, other = fold_short(expected), fold_short(actual)
    if len(one) != len(other) or len(one) < _REVERSIBLE:
        return None
    whole = other[::-1]
    by_word = " ".join(word[::-1] for word in other.split(" "))
    kept = [re.sub(pattern, lambda found: found[0][::-1], whole) for pattern in (r"[\d.:/-]*\d", "ال")]
    return "reversed_text" if one in {whole, by_word, *kept} else None
