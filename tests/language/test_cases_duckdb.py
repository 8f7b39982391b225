"""Each case of `cases.txt` in DuckDB, if it has the same meaning there."""

from decimal import Decimal
from itertools import groupby

import duckdb
import pytest

from tests.language import casefile, duck
from tests.language.casefile import Case

SECTIONS = {
    section: [case for case in cases if case.error is None and case.without_duckdb is None]
    for section, cases in groupby(casefile.read(), lambda case: case.section)
}


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    return duck.connect()


@pytest.mark.parametrize("section", [name for name, cases in SECTIONS.items() if cases])
def test_duckdb_agrees(connection: duckdb.DuckDBPyConnection, section: str):
    found = [duck.difference(connection, case) for case in SECTIONS[section]]
    assert [each for each in found if each is not None] == []


def test_duckdb_is_asked_most_cases():
    assert sum(map(len, SECTIONS.values())) >= 1250


@pytest.mark.parametrize(
    ("lines", "differs"),
    [
        ("row: i int = 7\nexpr: i / 2\ntype: double\nvalue: 3.0", "expected 3.0, DuckDB: 3.5"),
        ("row: u varchar = 'a'\nexpr: u\ntype: varchar\nvalue: 'b'", "DuckDB: 'a'"),
        ("expr: NULL\ntype: int\nvalue: 1", "DuckDB: None"),
        ("expr: 1\ntype: int\nfault: overflow @ 1:1", "DuckDB: 1"),
        ("expr: nothing(1)\ntype: int\nfault: overflow @ 1:1", "Catalog Error"),
        ("expr: 1 = 1\ntype: int\nvalue: 1", "DuckDB: True"),
        ("expr: '1'\ntype: int\nvalue: 1", "DuckDB: '1'"),
        ("rows: x int; 1; 2\nexpr: array_agg(x)\ntype: list(int)\nvalue: [2, 1]", "[1, 2]"),
        ("expr: 1.4142135623731\ntype: double\nvalue: ~1.4142135623730951", "DuckDB"),
    ],
)
def test_a_difference_is_seen(connection: duckdb.DuckDBPyConnection, lines: str, differs: str):
    [case] = casefile.parse(f"== S\n# t\n{lines}")
    found = duck.difference(connection, case)
    assert found is not None
    assert differs in found


def test_values_reach_duckdb(connection: duckdb.DuckDBPyConnection):
    """For every type, DuckDB's column has the value written in the row."""
    cases = casefile.parse(
        """== S
# t
row: a smallint = 1, b real = 0.1, c decimal(20,20) = 0.00000000000000000001, d varchar = 'it''s', e date = 2024-02-29, f time = 13:14:15.678, g timestamp = 2024-02-29 13:14:15.678, h interval = -5 min, k boolean = TRUE
expr: a
type: int
value: 1
"""
    )
    [case] = cases
    for (name, type_), value in zip(case.columns, case.rows[0], strict=True):
        [asked] = casefile.parse(f"== S\n# t\nexpr: {name}\ntype: int\nvalue: 1")
        asked = Case(
            asked.section, asked.name, asked.line, name, case.columns, case.rows, type=type_
        )
        found = duck.ask(connection, asked)
        assert duck.same(found, value, type_), (name, found)  # type: ignore[arg-type]


def test_a_real_has_24_bits():
    assert duck.same(0.10000000149011612, 0.1, "real")
    assert not duck.same(0.1, 0.1, "real")
    assert duck.same(Decimal("0.1"), 0.1, "double")
