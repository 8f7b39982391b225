"""Tests the content of rows: the same in any order and cut, and another for any other rows."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from seustream.cosim.bridge.content import Content, content_of, epoch_content

KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "smallint": (pa.int16(), [None, 0, -1, 256]),
    "bigint": (pa.int64(), [None, 0, -1, 1 << 40]),
    "int": (pa.int32(), [None, 0, -1, 1 << 20]),
    "real": (pa.float32(), [None, 0.0, -1.5, 1e30]),
    "decimal": (pa.decimal128(38, 2), [None, Decimal(0), Decimal("-0.01"), Decimal("1e30")]),
    "double": (pa.float64(), [None, 0.0, -1.5, 1e300]),
    "boolean": (pa.bool_(), [None, True, False]),
    "text": (pa.string(), [None, "", "a", "ab", "ba", "\x00", "x" * 300, "x" * 301, "é"]),
    "date": (pa.date32(), [None, datetime.date(1970, 1, 1), datetime.date(2026, 1, 1)]),
    "timestamp": (pa.timestamp("us"), [None, datetime.datetime(2026, 1, 1)]),
    "time": (pa.time32("ms"), [None, datetime.time(1), datetime.time(2)]),
}


def table(chance: random.Random, count: int) -> pa.Table:
    columns = {"ts": pa.array([chance.randrange(50) for _ in range(count)], pa.int64())}
    for name, (kind, values) in KINDS.items():
        columns[name] = pa.array([chance.choice(values) for _ in range(count)], kind)
    return pa.table(columns)


@pytest.mark.parametrize("seed", range(5))
def test_any_order_and_cut_is_the_same(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    rows = table(chance, chance.choice((1, 50, 20_000)))
    whole = content_of(rows)
    assert Content.parse(str(whole)) == whole
    assert content_of(rows.take(np.random.default_rng(seed).permutation(rows.num_rows))) == whole
    at = chance.randrange(rows.num_rows + 1)
    assert content_of(rows.slice(0, at)) + content_of(rows.slice(at)) == whole
    assert content_of(pa.concat_tables([rows.slice(at), rows.slice(0, at)])) == whole


@pytest.mark.parametrize("name", KINDS)
def test_any_other_value_is_another_content(name: str) -> None:
    """Holds also in the place of a NULL, whose bytes may be anything."""
    kind, values = KINDS[name]
    found = {str(content_of(pa.table({"ts": [1], "x": pa.array([v], kind)}))) for v in values}
    assert len(found) == len(values)
    pairs = {
        str(content_of(pa.table({"x": pa.array([v, w], kind), "y": pa.array([w, v], kind)})))
        for v in values
        for w in values
        if values.index(v) < values.index(w)
    }
    assert len(pairs) == len(values) * (len(values) - 1) // 2


def test_rows_are_counted_and_not_only_distinguished() -> None:
    one = pa.table({"ts": [1, 1, 2]})
    other = pa.table({"ts": [1, 2, 2]})
    assert content_of(one) != content_of(other)
    # Values that change places between columns make other rows.
    assert content_of(pa.table({"a": [1], "b": [2]})) != content_of(pa.table({"a": [2], "b": [1]}))


def test_an_epoch_is_its_streams() -> None:
    some, none = content_of(pa.table({"ts": [1]})), Content()
    assert epoch_content({"R": some, "S": none}) == epoch_content({"R": some})
    assert epoch_content({"R": some}) != epoch_content({"S": some})
    assert epoch_content({}) == epoch_content({"S": none})


def test_random_rows_do_not_meet() -> None:
    """Compares 300 tables that differ in one value."""
    found = {
        content_of(pa.table({"ts": np.arange(20), "x": np.where(np.arange(20) == i % 20, i, 0)}))
        for i in range(300)
    }
    assert len(found) == 300
