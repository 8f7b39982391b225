"""Many random queries and streams, every fourth with elements that may be missing: `python -m tests.engine.pattern.campaign --cases N --seed S`."""

from __future__ import annotations

import argparse
import random
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.engine.pattern.differential import check
from tests.engine.pattern.test_variants import check as check_ways


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    begun = time.monotonic()
    failures = matches = 0
    seeds = range(arguments.seed, arguments.seed + arguments.cases)
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for found in pool.map(_one, seeds, chunksize=100):
            if isinstance(found, str):
                failures += 1
                print(found, file=sys.stderr)
            else:
                matches += found
    took = time.monotonic() - begun
    print(f"{arguments.cases:,} cases, {matches:,} matches, {failures} failures, {took:.0f} s")
    return 1 if failures else 0


def _one(seed: int) -> int | str:
    try:
        return check_ways(seed) or 0 if seed % 4 == 0 else check(random.Random(seed))
    except AssertionError as error:
        return f"seed {seed}: {error}"
    except Exception as error:
        return f"seed {seed}: {type(error).__name__}: {error}"


if __name__ == "__main__":
    sys.exit(main())
