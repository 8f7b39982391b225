"""Columns and indexes over the rows of a source follow its store as rows come and go."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import DOUBLE, INT
from seustream.compiler.pipeline import compile_text
from seustream.engine.host.indexed import IndexedRows
from seustream.engine.host.rows import RowStore
from seustream.engine.kernels import native
from seustream.engine.stream.numbers import Key

SCHEMA = pa.schema([("ts", pa.int64()), ("a", pa.int32()), ("b", pa.int32())])
A = (x.ColumnReference(0, "a", INT, True, "R"), INT)
B = (x.ColumnReference(0, "b", INT, True, "R"), INT)


def bound(text: str) -> x.Expression:
    c = compile_text(f"CREATE STREAM R (a int, b int); SELECT a FROM R WHERE {text} WINDOW NOW;")
    return c.program.queries[0].where


@dataclass
class Some:
    """Admits rows whose b is one of some values."""

    values: tuple[int, ...]
    key: Key = B

    def admits(self, column: pa.Array) -> npt.NDArray[np.bool_]:
        return np.array([value in self.values for value in column.to_pylist()], np.bool_)


class Rows:
    """A store and the same rows in a list; random rows come and go."""

    def __init__(self, seed: int) -> None:
        print(f"seed {seed}")
        self.chance, self.store, self.plain = random.Random(seed), RowStore(SCHEMA, 1), []
        self.now = 0

    def step(self) -> None:
        count = self.chance.randrange(8)
        rows = [
            (self.now + n, self.chance.choice([None, 0, 1, 2]), self.chance.choice([None, 0, 3, 4]))
            for n in range(count)
        ]
        self.now += count
        columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
        ts = np.array(columns[0], np.int64)
        self.store.append(pa.table(columns, schema=SCHEMA), ts, [ts])
        self.plain += rows
        if self.chance.random() < 0.4:
            gone = self.chance.randrange(len(self.plain) + 1)
            self.store.drop_before(gone)
            del self.plain[:gone]


@pytest.mark.parametrize("seed", range(6))
def test_numbers_and_choices_are_those_of_the_rows_that_are_there(seed: int) -> None:
    """Holds even if no query looked while rows came and went."""
    rows = Rows(seed)
    indexed = IndexedRows(rows.store, 0, [bound("a > 0")], native.Codes(), [Some((3, 4))])
    for _ in range(60):
        rows.step()
        if rows.chance.random() < 0.3:
            continue
        indexed.follow()
        found = indexed.column(B)
        assert found is not None
        values, flags = found
        there = [1] * len(rows.plain) if flags is None else flags.tolist()
        mine = [v if f else None for v, f in zip(values.tolist(), there, strict=True)]
        assert mine == [b for _, _, b in rows.plain]
        assert indexed.admitted is not None
        assert indexed.admitted.tolist() == [
            int(a is not None and a > 0 and b in (3, 4)) for _, a, b in rows.plain
        ]


@pytest.mark.parametrize("seed", range(6))
def test_indexes_have_the_rows_that_conditions_allow(seed: int) -> None:
    """Finds them by the key, and by a range of values."""
    rows = Rows(100 + seed)
    indexed = IndexedRows(rows.store, 0, [bound("a < 2")], native.Codes())
    for _ in range(40):
        rows.step()
        if rows.chance.random() < 0.3:
            continue
        indexed.follow()
        first, end = rows.store.first, rows.store.first + len(rows.plain)
        allowed = [
            (first + n, b)
            for n, (_, a, b) in enumerate(rows.plain)
            if a is not None and a < 2 and b is not None
        ]
        chains, runs = indexed.chains((B,)), indexed.runs(B)
        for key in (0, 3, 9):
            probe, low, high = (np.array([n], np.int64) for n in (key, first, end))
            who, row = np.empty(500, np.int64), np.empty(500, np.int64)
            _, count = chains.probe(probe, None, 0, low, high, 0, (), who, row)
            assert sorted(row[:count].tolist()) == [n for n, b in allowed if b == key]
            _, count = runs.probe(probe - 1, probe, None, 0, low, high, 0, (), who, row)
            assert sorted(row[:count].tolist()) == [n for n, b in allowed if key - 1 <= b <= key]


def test_a_fault_is_in_doubt_as_long_as_its_row_is_held() -> None:
    store = RowStore(SCHEMA, 1)
    risky = bound("7 / a > 1")
    indexed = IndexedRows(store, 0, [risky], native.Codes())
    quotient = risky.left  # type: ignore[attr-defined]
    key = (quotient, quotient.type)
    for a in (1, 0, 2):
        ts = np.array([len(store)], np.int64)
        store.append(pa.table([ts, [a], [1]], schema=SCHEMA), ts, [ts])
        indexed.follow()
        assert (indexed.column(key) is None) == (a != 1)
    assert indexed.in_doubt() == [risky]
    store.drop_before(2)
    indexed.follow()
    assert indexed.in_doubt() == []
    assert indexed.column(key) is not None


@pytest.mark.parametrize("gone", [0, 2])
def test_a_first_null_that_comes_late(gone: int) -> None:
    """The column has no flags until then."""
    store = RowStore(SCHEMA, 1)
    rows = IndexedRows(store, 0, (), native.Codes())
    for first, values in ((0, [5, 6, 7]), (3, [8, None, 9])):
        ts = np.arange(first, first + 3)
        store.append(pa.table([ts, values, values], schema=SCHEMA), ts, [ts])
        rows.follow()
        found = rows.column(A)
        assert found is not None
        assert (found[1] is None) == (first == 0)
        if first == 0:
            store.drop_before(gone)
            rows.follow()
    assert found[0][[0, -3, -1]].tolist() == [5 + gone, 8, 9]
    assert found[1] is not None
    assert found[1].tolist() == [*[1] * (4 - gone), 0, 1]


def test_a_column_is_one_for_equal_expressions_and_another_in_another_type() -> None:
    store, ts = RowStore(SCHEMA, 1), np.arange(2)
    store.append(pa.table([ts, [1, 2], [3, 4]], schema=SCHEMA), ts, [ts])
    rows = IndexedRows(store, 0, (), native.Codes())
    whole, equal = rows.column(A), rows.column((x.ColumnReference(0, "a", INT, True, "R"), INT))
    doubles = rows.column((A[0], DOUBLE))
    assert whole is not None
    assert equal is not None
    assert doubles is not None
    assert np.shares_memory(whole[0], equal[0])
    assert whole[0].tolist() == [1, 2]
    assert doubles[0].tolist() == np.array([1.0, 2.0]).view(np.int64).tolist()
    again = rows.column(A)
    assert again is not None
    assert np.shares_memory(again[0], whole[0])


def test_numbers_are_kept_of_the_newest_rows_until_others_are_asked_for() -> None:
    store, codes = RowStore(SCHEMA, 1), native.Codes()
    rows = IndexedRows(store, 0, (), codes)
    for first in range(0, 40, 10):
        ts = np.arange(first, first + 10)
        store.append(pa.table([ts, ts + 100, ts], schema=SCHEMA), ts, [ts])
        rows.follow()
        newest = rows.at(A, ts - store.first)
        assert newest is not None
        assert newest[0].tolist() == (ts + 100).tolist()
        chains, found = rows.chains((A,)), np.empty(2, np.int64)
        chains.latest(np.array([100, first + 109]), None, np.full(2, first + 10), found)
        assert found.tolist() == [0, first + 9]
        assert len(rows._columns[A].values) == 10
    store.drop_before(5)
    rows.follow()
    older = rows.at(A, np.array([3, 34]))
    assert older is not None
    assert older[0].tolist() == [108, 139]
    assert len(rows._columns[A].values) == 35
