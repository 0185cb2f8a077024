"""What Hypothesis draws from: values, calls and items as models and files write them, mixed scripts included."""

from __future__ import annotations

import math
from collections import OrderedDict, UserDict
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import numpy as np
from hypothesis import strategies as st

LETTERS = "ابتثجحخدذرزسشصضطظعغفقكلمنهويىةآأإءؤئٱیک\u0640\u064b\u064e\u0651\u200f٠٣۳،aAbBZz019 -.,"

texts = st.one_of(
    st.text(LETTERS, max_size=8),
    st.sampled_from(["الرياض", "الرياص", "رياض", "مكة", "مكه", "VIP", "vip", "مكتب VIP", "مكتب vip"]),
    st.sampled_from(["", " ", "\u0640", "*"]),
    st.text(max_size=6),
)
scalars = st.one_of(
    texts,
    st.integers(-3, 3),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
)
values = st.recursive(
    st.one_of(scalars, st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abج"), inner, max_size=3)),
    max_leaves=5,
)
arguments = st.dictionaries(st.sampled_from(["city", "date", "n", "مدينة"]), values, max_size=3)
names = st.sampled_from(["book", "Book", "book ", "search", "*"])
calls = st.fixed_dictionaries({"function": names, "arguments": arguments})
categories = st.sampled_from(["simple_function_calling", "multi_step", "dialect_handling", "error_recovery"])


def call_lists(most: int = 4) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Lists of calls in which repetitions are likely."""
    pool = st.lists(calls, min_size=1, max_size=3)
    return pool.flatmap(lambda found: st.lists(st.one_of(st.sampled_from(found), calls), max_size=most))


@st.composite
def related(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Expected and actual calls that resemble each other: some the same, some changed, some moved."""
    expected = draw(call_lists())
    actual = [call if draw(st.booleans()) else draw(calls) for call in expected]
    if draw(st.booleans()):
        actual = draw(st.permutations(actual))
    return expected, list(actual) + draw(call_lists(2))


def perfect_value(draw: st.DrawFn, expected: Any, accepted: list[Any]) -> Any:
    """A value that is exactly right: the expected one, one that is accepted too, or anything for a wildcard."""
    if expected == "*":
        return draw(values.filter(lambda value: value is not None))
    return draw(st.sampled_from([expected, *(other for other in accepted if other is not None)]))


@st.composite
def answered(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Expected calls, with other accepted values, and a perfect answer to them: extra keys, nulls and all."""
    expected = draw(call_lists())
    actual = []
    for place, call in enumerate(expected):
        accept = {name: draw(st.lists(values, max_size=2)) for name in call["arguments"] if draw(st.booleans())}
        expected[place] = call | {"accept": accept}
        given = {
            name: perfect_value(draw, value, accept.get(name, []))
            for name, value in call["arguments"].items()
            if value is not None or draw(st.booleans())
        }
        name = draw(names) if call["function"] == "*" else call["function"]
        actual.append({"function": name, "arguments": draw(st.just({"more": 1}) | st.just({})) | given})
    return expected, actual


json_values = st.recursive(
    scalars | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=10,
)
"""Anything that JSON can say."""

sent_calls = st.one_of(
    calls,
    json_values,
    st.fixed_dictionaries({}, optional={"function": json_values | names, "arguments": json_values}),
    st.builds(lambda name, text: {"function": name, "arguments": text}, names, st.text('{}[]":\\,a1ج ', max_size=20)),
)
"""What stands in a list of calls when a model wrote it: calls, and whatever else."""


class Unruly:
    """An object that can be neither written nor compared."""

    def __str__(self) -> str:
        raise RuntimeError

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]


class Text(str):
    """Text of a subclass, as enumerations and arrays have it."""

    __slots__ = ()


_circle: list[Any] = []
_circle.append(_circle)

python_objects = st.recursive(
    st.one_of(
        values,
        st.builds(Text, texts),
        st.builds(Unruly),
        st.sampled_from([math.nan, -math.inf, 1j, b"x", {1, 2}, range(3), object, _circle, "\ud800"]),
        st.integers(6000, 6010).map(lambda size: 10**size),
        st.sampled_from([Decimal("1.5"), np.float64(2), np.int64(3), np.str_("جدة"), np.array([1, 2]), np.array([])]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner),
        st.dictionaries(st.sampled_from(["city", "n", 5, None, ("a",)]), inner, max_size=3),
        st.dictionaries(st.sampled_from(["city", "n"]), inner, max_size=3).map(MappingProxyType),
        st.dictionaries(st.sampled_from(["city", "n"]), inner, max_size=3).map(UserDict),
        st.dictionaries(st.sampled_from(["city", "n"]), inner, max_size=3).map(OrderedDict),
    ),
    max_leaves=6,
)
"""What a Python caller can hand over as arguments: objects that no JSON holds, some of which cannot be compared."""
