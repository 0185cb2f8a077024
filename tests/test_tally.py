"""Counting: each epoch once, outcomes in any order, and merging parts as if there had been one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arabic_agent_eval.diagnosis import Loss
from arabic_agent_eval.tally import EpochSet, ItemFacts, Ledger, Outcome, Tally

FACTS = ItemFacts("multi_step", "msa", True)
epochs = st.integers(0, 12)


def outcome(value, lost=()):
    return Outcome(FACTS, value, value, value, tuple(lost))


@given(st.lists(epochs, min_size=1))
def test_epochs_are_a_set(numbers):
    """A number is new exactly once, whatever the order."""
    seen, plain = EpochSet(numbers[0]), {numbers[0]}

    for number in numbers[1:]:
        assert seen.add(number) is (number not in plain)
        plain.add(number)


def test_epochs_in_order_take_no_memory():
    """Runs are kept as their ends, also where they were closed late."""
    seen = EpochSet(0)

    for number in [2, 3, 5, 1, 4, *range(6, 1000)]:
        assert seen.add(number)

    assert not seen._apart
    assert (seen._start, seen._end) == (0, 1000)


pairs = st.tuples(st.sampled_from("abc"), st.integers(0, 3))


@given(st.lists(pairs), st.lists(st.sampled_from("abcd")), st.lists(pairs))
def test_a_ledger_is_a_set_of_pairs(before, first, again):
    """Many answers at once are refused exactly when one of them was there, and the pair named was."""
    ledger, plain = Ledger(), set()
    for pair in before:
        assert ledger.add(*pair) is (pair not in plain)
        plain.add(pair)
    many = [*((name, 0) for name in first), *again]

    twice = ledger.add_all(first, again)

    fresh = len(plain | set(many)) == len(plain) + len(many)
    assert (twice is None) is fresh
    assert twice is None or twice in plain or many.count(twice) > 1


counted = st.tuples(st.sampled_from("abcd"), st.sampled_from([0.0, 0.5, 1.0]), st.integers(1, 3))
failed = st.tuples(st.sampled_from("abcde"), st.sampled_from(["timeout", "quota"]), st.integers(1, 2))


@given(st.lists(counted), st.lists(failed), st.integers(0, 20), st.integers(0, 20))
def test_merging_is_counting_on(outcomes, failures, cut, other_cut):
    """Two parts of a file that are merged equal the whole, and so does counting in another order."""
    whole, back, parts = Tally(), Tally(), (Tally(), Tally())
    for place, (name, value, times) in enumerate(outcomes):
        whole.add(name, outcome(value), times)
        parts[place >= cut].add(name, outcome(value), times)
    for place, (name, reason, times) in enumerate(failures):
        whole.add_unscored(name, reason, times)
        parts[place >= other_cut].add_unscored(name, reason, times)
    for name, value, times in reversed(outcomes):
        back.add(name, outcome(value), times)

    parts[0].merge(parts[1])

    assert parts[0].outcomes == whole.outcomes == back.outcomes
    assert parts[0].unscored == whole.unscored
    assert parts[0].answered() == whole.answered() == len({name for name, *_ in [*outcomes, *failures]})


def test_one_answer_is_kept_as_it_is():
    """An item with one answer takes no counter; several equal ones are counted."""
    tally = Tally()
    tally.add("a", outcome(1.0))
    tally.add("b", outcome(1.0))
    tally.add("b", outcome(1.0))

    assert tally.outcomes == {"a": outcome(1.0), "b": {outcome(1.0): 2}}


def loss(cause="missing", argument="city", points=0.1, axis="argument_accuracy", **more):
    return Loss(cause, axis, points, 0, argument, **more)


def test_losses_are_summed_by_cause_and_axis():
    """An outcome keeps cause, axis and the exact sum of the points, in one order."""
    losses = [loss(points=0.1) for _ in range(10)] + [loss("digits", points=0.2), loss(axis="arabic_preservation")]

    found = Tally().add_losses("a", losses)

    assert found == (
        ("digits", "argument_accuracy", 0.2),
        ("missing", "arabic_preservation", 0.1),
        ("missing", "argument_accuracy", 1.0),
    )


def test_an_argument_counts_once_an_answer():
    """An argument that lost on two axes, or in two calls, is one answer that lost there; whole calls have none."""
    tally = Tally()
    tally.add_losses("a", [loss(), loss(axis="arabic_preservation"), loss("no_call", None)])
    tally.add_losses("b", [loss()])

    assert tally.arguments == {("missing", "city"): 2}


def test_examples_are_the_first_three_items():
    """A cause keeps one example of each of the first three items in which it occurred, and merging keeps that."""
    tally, later = Tally(), Tally()
    for name in "aab":
        tally.add_losses(name, [loss(expected=name, actual=None), loss(expected="again")])
    for name in "bcde":
        later.add_losses(name, [loss(expected="later", actual=name), loss("digits")])

    tally.merge(later)

    assert [(one.item_id, one.expected) for one in tally.examples["missing"]] == [
        ("a", "a"),
        ("b", "b"),
        ("c", "later"),
    ]
    assert tally.examples["missing"][0].actual == "(nothing)"
    assert [one.item_id for one in tally.examples["digits"]] == ["b", "c", "d"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "(nothing)"),
        ("جدة", "جدة"),
        ("", ""),
        (["جدة", 1.5, None], '["جدة",1.5,null]'),
        ("أ\u200fب\n\x1b[31m", "أ⟨U+200F⟩ب⟨U+000A⟩⟨U+001B⟩[31m"),
        ("س" * 80, "س" * 80),
        ("س" * 81, "س" * 80 + "…"),
        ("\n" * 81, "⟨U+000A⟩" * 80 + "…"),
        ({1j}, "{1j}"),
        (2**70, "1180591620717411303424"),
    ],
)
def test_examples_are_short_and_harmless(value, shown):
    """A value is shown as text or JSON, cut to 80 characters, with whatever is invisible named."""
    tally = Tally()
    tally.add_losses("a", [loss(expected=value, actual=value)])

    [found] = tally.examples["missing"]
    assert (found.expected, found.actual) == (shown, shown)
