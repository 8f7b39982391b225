"""Tests 500 random statements of X-SQL, nested in each other, against DuckDB."""

from __future__ import annotations

import random

from hypothesis import note

from tests.chances import random_cases
from tests.system.statement_cases import StatementCase
from tests.system.statements import Judge, check


def test_random_statements() -> None:
    """All run in one process; a case that fails is shown as small as it can be."""
    judge, rows = Judge(), list[int]()

    @random_cases(500)
    def agree(chance: random.Random) -> None:
        case = StatementCase(chance)
        note(f"{case.text}\n{case.judged}")
        rows.append(check(case, judge))

    agree()
    assert len(rows) >= 500
    assert sum(rows) > 5_000
