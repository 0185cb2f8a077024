"""Texts that are nearly the same: what is found, also where not every pair is compared."""

from __future__ import annotations

import random

import pytest

from arabic_agent_eval import likeness
from arabic_agent_eval.likeness import Likeness

WORDS = [
    "قطار",
    "مطار",
    "فندق",
    "موعد",
    "طبيب",
    "فاتورة",
    "حساب",
    "رسالة",
    "طقس",
    "مدينة",
    "شارع",
    "مطعم",
    "حجز",
    "غرفة",
    "تذكرة",
    "رحلة",
    "صباح",
    "مساء",
    "جمعة",
    "سبت",
]
NEAR = [
    ("قطار الصباح إلى طنجة", "قطار الصباح إلى طنجة", True),
    ("قطار الصباح إلى طنجة من فضلك", "من فضلك قطار الصباح إلى طنجة", False),
    ("احجز غرفة في فندق الواحة ليلتين يوم الخميس", "احجز غرفة في فندق الواحة ليلتين يوم الخميسس", False),
    ("احجز غرفة في فندق الواحة", "ادفع فاتورة الماء اليوم", None),
    ("قطار", "مطار", None),
]


@pytest.mark.parametrize("most", [likeness.ALL_PAIRS, 0])
@pytest.mark.parametrize(("one", "other", "equal"), NEAR)
def test_near_texts_are_found(monkeypatch, most, one, other, equal):
    """Equal texts, other orders of words and slips are found with every pair compared and by rare words alike."""
    monkeypatch.setattr(likeness, "ALL_PAIRS", most)
    texts: Likeness[str] = Likeness()
    texts.add(one, "one")

    assert next(texts.like(other), None) == (None if equal is None else ("one", equal))


def test_rare_words_find_what_all_pairs_find(monkeypatch):
    """With one word in ten exchanged, every text is found again by its rarest words."""
    monkeypatch.setattr(likeness, "ALL_PAIRS", 0)
    chance = random.Random(5)
    lines = [[*chance.choices(WORDS, k=9), f"رقم{place}"] for place in range(60)]
    texts: Likeness[int] = Likeness()
    for place, line in enumerate(lines):
        texts.add(" ".join(line), place)

    for place, line in enumerate(lines):
        changed = [*line[:4], *line[5:]]
        assert place in [owner for owner, _ in texts.like(" ".join(changed))]


def test_comparisons_are_bounded(monkeypatch):
    """However many texts share their words, one is compared with a bounded number of them."""
    monkeypatch.setattr(likeness, "ALL_PAIRS", 10)
    compared = []
    monkeypatch.setattr(likeness, "extract_iter", lambda _, choices, **__: compared.append(len(choices)) or ())
    texts: Likeness[int] = Likeness()
    for place in range(500):
        assert list(texts.like(f"{' '.join(WORDS)} {place}")) == []
        texts.add(f"{' '.join(WORDS)} {place}", place)

    assert max(compared) <= 8 * 25
