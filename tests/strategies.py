"""What Hypothesis draws from: values, calls and items as models and files write them, mixed scripts included."""

from __future__ import annotations

from typing import Any

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
