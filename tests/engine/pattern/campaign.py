"""Many random queries and streams, every fourth with elements that may be missing.

python -m tests.engine.pattern.campaign [--cases N] [--first SEED] [--seconds S] [--jobs N] [--record]
"""

from __future__ import annotations

import random
from collections import Counter

from tests.campaigns import run_cases
from tests.engine.pattern.differential import check
from tests.engine.pattern.test_variants import check as check_ways

_FIRST = 1_000_000
"""Seeds below are those of tests."""


def one(number: int) -> Counter[str]:
    """Runs a case; returns the number of matches."""
    seed = _FIRST + number
    found = check_ways(seed) or 0 if seed % 4 == 0 else check(random.Random(seed))
    return Counter(matches=found)


if __name__ == "__main__":
    raise SystemExit(run_cases("patterns", 100_000, one, about=__doc__))
