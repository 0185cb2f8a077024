"""Members by a name that each of them bears."""

from __future__ import annotations

from arabic_agent_eval.groups import grouped


def test_named_groups_come_first_and_none_is_empty():
    """Groups stand in the order that is given, then as they are met; members keep theirs; no group is empty."""
    found = grouped(["dal", "ba1", "ba2", "alif", "dal2"], lambda word: word[0], ["a", "b", "c"])
    assert list(found.items()) == [("a", ["alif"]), ("b", ["ba1", "ba2"]), ("d", ["dal", "dal2"])]
