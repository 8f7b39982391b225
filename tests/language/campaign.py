"""Random expressions, many of them.

    python -m tests.language.campaign [--cases N] [--first SEED] [--seconds S] [--jobs N] [--record]

Each is computed by columns, by rows and, where it has the same meaning there, in DuckDB. What was
reached is told at the end; a difference is told at once, with its seed, and fails the run.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter

from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.functions import FUNCTIONS
from tests.campaigns import Work, add_options
from tests.language import asking
from tests.language.differential import check


def main(arguments: list[str] | None = None) -> int:
    """Runs the campaign; returns 1 if anything differs or an entry of the registry was never
    reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000, help="how many expressions")
    add_options(parser)
    options = parser.parse_args(arguments)
    work, connection = Work("expressions", options), asking.connection()
    differ = 0
    reached: Counter[str] = Counter()
    for seed in work.cases(options.cases if options.record else work.first + options.cases):
        found = check(random.Random(seed), connection)
        work.found += Counter(bound=found.bound, asked=found.asked, faults=found.faults)
        reached.update(found.entries)
        if found.difference is not None:
            print(f"seed {seed}: {found}", flush=True)
            differ = 1
            break
    work.close(options.cases if options.record else None)
    print(f"expressions: {dict(work.found)}, {differ} differ")
    missing = sorted({*FUNCTIONS, *AGGREGATES} - set(reached))
    if work.count >= 10_000 and missing:
        print(f"never reached: {', '.join(missing)}")
        return 1
    return differ


if __name__ == "__main__":
    sys.exit(main())
