"""Every acceptance statement of the specification has a test with its number in the name."""

from __future__ import annotations

import re
from pathlib import Path

STATEMENTS = range(1, 48)


def test_every_statement_has_a_test() -> None:
    named: set[int] = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        for name in re.findall(r"^def test_statement((?:_\d\d)+)_", path.read_text(), re.M):
            named.update(map(int, name.strip("_").split("_")))
    assert named == set(STATEMENTS)
