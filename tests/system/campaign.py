"""Many random cases: `python -m tests.system.campaign --cases 20000 --first 1000000`.

Spread over processes; every failing seed is printed and can be run alone with --cases 1.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import sys
import time

from tests.system.differential import Difference, run_case


def attempt(seed: int) -> tuple[int, int, str]:
    try:
        return seed, run_case(seed), ""
    except Difference as error:
        return seed, 0, str(error)
    except Exception as error:  # a crash is a finding too, with its seed
        return seed, 0, f"seed {seed}: {type(error).__name__}: {error}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=1_000_000, help="first seed")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.cases)
    begin, done, results, misfits, failures = time.monotonic(), 0, 0, 0, []
    with concurrent.futures.ProcessPoolExecutor(options.processes) as pool:
        for seed, found, problem in pool.map(attempt, seeds, chunksize=25):
            done += 1
            misfits += found < 0
            results += max(found, 0)
            if problem:
                failures.append(seed)
                print(problem, flush=True)
            if done % 500 == 0:
                rate = done / (time.monotonic() - begin)
                print(
                    f"{done}/{len(seeds)} cases, {len(failures)} differ, {rate:.0f}/s", flush=True
                )
    print(
        f"{done} cases from seed {options.first}: {results} results compared on 2 devices x 2 plans,"
        f" {misfits} sets too large for one device"
    )
    print(f"{done - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
