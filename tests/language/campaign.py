"""Random expressions, many of them: `python -m tests.language.campaign --cases 100000`.

Each is computed by columns, by rows and, where it has the same meaning there, in DuckDB. What was
reached is told at the end; a difference is told at once, with its seed, and fails the run.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter

from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.functions import FUNCTIONS
from tests.language import asking
from tests.language.differential import check

MOST_SHOWN = 40


def main(arguments: list[str] | None = None) -> int:
    """Runs the campaign; returns 1 if anything differs or an entry of the registry was never
    reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000, help="how many expressions")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args(arguments)
    connection, began = asking.connection(), time.monotonic()
    bound = asked = faults = differ = 0
    reached: Counter[str] = Counter()
    for seed in range(options.first, options.first + options.cases):
        found = check(random.Random(seed), connection)
        bound += found.bound
        asked += found.asked
        faults += found.faults
        reached.update(found.entries)
        if found.difference is not None:
            differ += 1
            if differ <= MOST_SHOWN:
                print(f"seed {seed}: {found}", flush=True)
    missing = sorted({*FUNCTIONS, *AGGREGATES} - set(reached))
    print(
        f"{options.cases} expressions, {bound} bound, {asked} asked in DuckDB, {faults} faults,"
        f" {differ} differ; {time.monotonic() - began:.0f} s"
    )
    if options.cases >= 10_000 and missing:
        print(f"never reached: {', '.join(missing)}")
        return 1
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
