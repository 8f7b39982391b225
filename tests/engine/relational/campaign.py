"""Random groups of windows, frames and parts of queries against DuckDB.

python -m tests.engine.relational.campaign [--cases N] [--first SEED] [--seconds S] [--jobs N] [--record]
"""

from __future__ import annotations

import contextlib
import io
from collections import Counter

from tests.campaigns import run_cases
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


def one(seed: int) -> Counter[str]:
    """Runs the checks in turn; tells which."""
    check, said = CHECKS[seed % len(CHECKS)], io.StringIO()
    name = f"{check.__module__.rpartition('.')[2]}.{check.__name__}"
    try:
        with contextlib.redirect_stdout(said):
            check(seed)
    except Exception as error:
        error.add_note(f"{name}({seed})\n{said.getvalue()}")
        raise
    return Counter({name.removeprefix("test_"): 1})


if __name__ == "__main__":
    raise SystemExit(run_cases("groups", 5_000, one, about=__doc__))
