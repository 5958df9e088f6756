"""What all tests share: where the real data is, and a quiet, small machine."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy and torch start their pools

settings.register_profile("orthotrace", deadline=None)  # no test is about time
settings.load_profile("orthotrace")


@pytest.fixture
def real_data() -> Path:
    """The folder of real imagery and extracts; skips where there is none."""
    told = os.environ.get("ORTHOTRACE_REAL_DATA")
    if not told or not Path(told).is_dir():
        pytest.skip("needs real data: set ORTHOTRACE_REAL_DATA to its folder")
    return Path(told)
