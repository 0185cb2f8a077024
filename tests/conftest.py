"""What all tests share: case tables, the shared data, and a Hypothesis profile that never fails by the clock."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("project", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("project")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a job in the background, and every child inherits it
    signal.signal(signal.SIGINT, signal.default_int_handler)

CASES = Path(__file__).parent / "cases"
SHARED = Path(__file__).parents[2] / "shared" / "data"


def read_cases(name: str) -> list[Any]:
    """The table of cases in ``tests/cases/NAME.json``, as parameters named by their ids."""
    rows = json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))
    return [pytest.param(row, id=row["id"]) for row in rows]


@pytest.fixture
def shared() -> Path:
    """The folder of data that is not part of the project."""
    if not SHARED.is_dir():
        pytest.skip("the shared data is not here")
    return SHARED
