"""The smallest difference between two models that ``core`` can detect, by simulation: ``python -m authoring.power``.

Two models answer the items. Whether an answer is right depends on how hard its intent is, how hard it is in this
dialect, and how good the model is; the models share the hardness. Their true difference is raised until the test of
``aae compare`` finds it in 80 of 100 repetitions. Printed for several assumptions, since nobody knows the true ones.
"""

from __future__ import annotations

import argparse
import sys
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from arabic_agent_eval.bundled import find_items
from arabic_agent_eval.items import CATEGORIES, DIALECTS, Item, ItemSet
from arabic_agent_eval.statistics import paired_difference

POWER: Final = 0.8
LEVEL: Final = 0.05
SCORES: Final = (0.6, 0.8, 0.9)
"""The true score of the weaker model."""
SPREADS: Final = {"alike": (1.0, 0.5), "apart": (2.0, 1.0)}
"""How far items lie apart in hardness, on the logit scale: between intents, and between lines of an intent."""

_Floats = NDArray[np.float64]


class Trial:
    """Items as arrays, and what two models answer to them."""

    def __init__(self, items: list[Item], spread: tuple[float, float]) -> None:
        self.size = len(items)
        names = [item.intent or item.id for item in items]
        self.clusters = np.unique(names, return_inverse=True)[1]
        self.strata = [item.category for item in items]
        self.weights = {name: CATEGORIES[name].weight for name in dict.fromkeys(self.strata)}
        self.spread = spread

    def hardness(self, random: np.random.Generator) -> _Floats:
        """How hard each item is."""
        intents = random.normal(0, self.spread[0], int(self.clusters.max()) + 1)
        return np.asarray(intents[self.clusters] + random.normal(0, self.spread[1], self.size))

    def finds(self, ability: tuple[float, float], random: np.random.Generator) -> bool:
        """Whether one comparison finds a difference."""
        hard = self.hardness(random)
        a, b = (random.random(self.size) < special.expit(one - hard) for one in ability)
        found = paired_difference(
            a.astype(float), b.astype(float), self.clusters, strata=self.strata, weights=self.weights,
            resamples=1000, seed=int(random.integers(1 << 30)),
        )  # fmt: skip
        return found.p_value <= LEVEL

    def ability_for(self, score: float) -> float:
        """The ability with which a model's expected score is this."""
        hard = np.random.default_rng(0).normal(0, float(np.hypot(*self.spread)), 20_000)
        low, high = -10.0, 10.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if special.expit(middle - hard).mean() < score else (low, middle)
        return low

    def smallest(self, score: float, rounds: int, random: np.random.Generator) -> float:
        """The smallest true difference, in steps of half a point, that is found often enough."""
        for step in range(1, 81):
            difference = step * 0.005
            if score + difference >= 1:
                break
            ability = self.ability_for(score), self.ability_for(score + difference)
            if np.mean([self.finds(ability, random) for _ in range(rounds)]) >= POWER:
                return difference
        return float("nan")


def main() -> None:
    """Print a table for the whole set and for one dialect."""
    parser = argparse.ArgumentParser(prog="python -m authoring.power", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200, help="comparisons for each difference")
    rounds = parser.parse_args().rounds
    items = list(ItemSet.read(find_items("core")).values())
    several = {"all": items, **{name: [item for item in items if item.dialect == name] for name in DIALECTS}}
    for name, members in several.items():
        if name in list(DIALECTS)[1:]:
            continue  # all dialects have the same intents and sizes, so one stands for each
        for spread, numbers in SPREADS.items():
            trial, random = Trial(members, numbers), np.random.default_rng(1)
            found = [f"{trial.smallest(score, rounds, random):.3f}" for score in SCORES]
            sys.stdout.write(f"{name if name == 'all' else 'one dialect'} | {len(members)} | {spread} | "
                             f"{' | '.join(found)}\n")  # fmt: skip
            sys.stdout.flush()


if __name__ == "__main__":
    main()
