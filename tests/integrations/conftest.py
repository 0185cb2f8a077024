"""What tests of the doors share."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(autouse=True, scope="module")
def _collected():
    """What a host leaves open is collected while its own warnings are still ignored, and not in another test."""
    yield
    gc.collect()
