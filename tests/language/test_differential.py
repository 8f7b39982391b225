"""Random expressions by columns, by rows and in DuckDB: 200 here, many more in the campaign."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator

import duckdb
import pytest

from seustream.compiler.language.functions import FUNCTIONS
from tests.chances import random_cases
from tests.language import asking, core, judge
from tests.language.differential import ROWS, check, equal, same
from tests.language.generate import COLUMNS, Writer, literal, table


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with asking.connection() as connection:
        yield connection


@random_cases(200)
def test_random_expressions_agree(connection: duckdb.DuckDBPyConnection, chance: random.Random):
    found = check(chance, connection)
    assert found.difference is None, str(found)


def test_most_expressions_are_bound_and_judged(connection: duckdb.DuckDBPyConnection):
    found = [check(random.Random(seed), connection) for seed in range(1_000, 1_060)]
    assert sum(each.bound for each in found) > 50
    assert sum(each.asked for each in found) > 20
    assert sum(each.faults for each in found) > 60
    assert len(set().union(*(each.entries for each in found))) > 40


def first_difference(
    connection: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    **changes: object,
) -> str | None:
    """Returns the first difference that is found with a broken entry in the registry."""
    changed = dataclasses.replace(FUNCTIONS[name], **changes)  # type: ignore[arg-type]
    monkeypatch.setitem(FUNCTIONS, name, changed)
    found = (check(random.Random(seed), connection).difference for seed in range(2_000, 2_400))
    return next((difference for difference in found if difference is not None), None)


def test_a_wrong_column_is_found(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
):
    found = first_difference(
        connection, monkeypatch, "coalesce", columns=lambda pc, *values: pc.coalesce(*values[::-1])
    )
    assert found is not None
    assert "by columns" in found


def test_what_rows_and_columns_have_wrong_alike_is_found(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
):
    found = first_difference(
        connection, monkeypatch, "nullif", row=lambda a, b: a, columns=lambda pc, a, b: a
    )
    assert found is not None
    assert "DuckDB" in found


def test_a_seed_makes_the_same_expression_again():
    def made(seed: int) -> tuple[str, object]:
        rng = random.Random(seed)
        return Writer(rng).value(5), table(rng, 3)

    assert repr(made(7)) == repr(made(7))
    assert made(7)[0] != made(8)[0]


def test_constants_have_their_type_and_value():
    rng = random.Random("literals")
    for of in dict.fromkeys(COLUMNS.values()):
        for row in table(rng, 20):
            [value] = [row[name] for name, other in COLUMNS.items() if other == of][:1]
            value = core.read(value, of)
            text = literal(value, of)
            bound = core.bind(text, {})
            [found] = core.by_rows(bound, [{}], core.Faults())
            assert same(found, value), text
            assert bound.type == of, text


def test_columns_reach_duckdb(connection: duckdb.DuckDBPyConnection):
    rows = table(random.Random("columns"), ROWS)
    for name, of in COLUMNS.items():
        values = [core.read(row[name], of) for row in rows]
        e = core.bind(name, COLUMNS)
        asking.load(connection, [e], [{name: value} for value in values])  # type: ignore[list-item]
        judged = asking.ask(connection, judge.sql(e), of)
        assert all(equal(a, b) for a, b in zip(values, judged, strict=True)), name
