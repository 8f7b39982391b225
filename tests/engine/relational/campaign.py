"""Random groups of windows, frames and parts of queries against DuckDB: `python -m
tests.engine.relational.campaign --cases 5000 --seed 0`. Prints each case that differs."""

from __future__ import annotations

import argparse
import contextlib
import io
import time

from tests.engine.relational import (
    test_growth_and_times,
    test_over,
    test_periods_and_closed,
    test_rank_changes,
    test_ranks,
    test_subqueries,
)

CHECKS = (
    test_periods_and_closed.check,
    test_periods_and_closed.check_first,
    test_growth_and_times.check_changes,
    test_periods_and_closed.check_join,
    test_over.check,
    test_over.check_places,
    test_ranks.check,
    test_ranks.check_windows,
    test_ranks.check_whole,
    test_rank_changes.check,
    test_subqueries.check,
)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cases", type=int, default=5000)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    begin, wrong = time.process_time(), 0
    for seed in range(chosen.seed, chosen.seed + chosen.cases):
        check, said = CHECKS[seed % len(CHECKS)], io.StringIO()
        try:
            with contextlib.redirect_stdout(said):
                check(seed)
        except Exception as error:  # any error counts as a difference
            wrong += 1
            print(f"{check.__module__}.{check.__name__}({seed})\n{said.getvalue()}\n{error!r}")
    spent = time.process_time() - begin
    print(f"{chosen.cases} cases, {wrong} differ, {spent:.0f} s of processor time")
    return min(wrong, 1)


if __name__ == "__main__":
    raise SystemExit(main())
