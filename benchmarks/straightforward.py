"""The comparison of one call as one would write it from the specification, without a thought for speed.

It exists to be measured against. The tests check that it gives the same numbers as the package.
"""

from __future__ import annotations

from typing import Any


def has_arabic(value: object) -> bool:
    """Whether a text, or any text inside a container, has a character of the two Arabic blocks."""
    if isinstance(value, list):
        return any(map(has_arabic, value))
    if isinstance(value, dict):
        return any(map(has_arabic, value.values()))
    return isinstance(value, str) and any("\u0600" <= c <= "\u06ff" or "\u0750" <= c <= "\u077f" for c in value)


def normalize(text: str) -> str:
    """The canonical normal form, a rule a line."""
    text = text.replace("\u0640", "")
    for alef in "آأإ":
        text = text.replace(alef, "ا")
    text = text.replace("ى", "ي").replace("ة", "ه")
    if not has_arabic(text):
        text = text.lower()
    return text.strip()


def text_of(value: object) -> str:
    """A scalar as canonical JSON writes it; enough for the values of the benchmark."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def rung(expected: object, actual: object) -> float:
    """The ladder of the specification, members of containers included."""
    if isinstance(expected, list) or isinstance(actual, list):
        if not isinstance(expected, list) or not isinstance(actual, list) or len(expected) != len(actual):
            return 0.0
        return min((rung(one, other) for one, other in zip(expected, actual, strict=True)), default=1.0)
    if isinstance(expected, dict) or isinstance(actual, dict):
        if not isinstance(expected, dict) or not isinstance(actual, dict):
            return 0.0
        return min((rung(value, actual.get(name)) for name, value in expected.items()), default=1.0)
    left, right = text_of(expected).strip(), text_of(actual).strip()
    if left == right:
        return 1.0
    if normalize(left) == normalize(right) and normalize(left):
        return 0.9
    return 0.8 if left.lower() == right.lower() else 0.0


def score_function_call(
    expected_fn: str, actual_fn: str | None, expected_args: dict[str, Any], actual_args: dict[str, Any]
) -> tuple[float, float, float]:
    """Function, arguments, Arabic."""
    if actual_fn is None:
        return 0.0, 0.0, 0.0
    function = 1.0 if expected_fn in {"*", actual_fn} else 0.0
    rungs = []
    for name, value in expected_args.items():
        actual = actual_args.get(name)
        rungs.append(0.0 if actual is None else 1.0 if value == "*" else rung(value, actual))
    argument = sum(rungs) / len(rungs) if rungs else 1.0
    arabic = [name for name, value in expected_args.items() if value != "*" and has_arabic(value)]
    kept = [name for name in arabic if has_arabic(actual_args.get(name))]
    return function, argument, len(kept) / len(arabic) if arabic else 1.0
