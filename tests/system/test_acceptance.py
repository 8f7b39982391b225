"""Checks that each of the 51 acceptance statements of StreamAPAS has a test that bears its number.

`pytest tests -m acceptance` runs them; this finds a statement that no test shows any more.
"""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
AMENDED = {2, 5, 6, 8, 34, 35}
"""Operators and casts of APAS alone, which now mean the same in all languages, as the cases in
`tests/language` show; schemas that change under a query, and its special messages: a stream that
queries read keeps its columns (decision 0145)."""


def test_every_statement_has_its_test() -> None:
    shown: set[int] = set()
    for path in TESTS.rglob("test_*.py"):
        for found in re.findall(r"mark\.acceptance\(([\d, ]+)\)", path.read_text("utf-8")):
            shown |= {int(number) for number in found.split(",")}
    assert not shown & AMENDED
    assert shown | AMENDED == set(range(1, 52))
