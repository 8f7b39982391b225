"""Collections: the time-table example of section 3.1, keys, events, and a version history."""

from __future__ import annotations

import random
from typing import Any

import pytest

from seustream.engine.temporal.elements import FOREVER
from tests.engine.temporal.reference.collection import (
    Change,
    Collection,
    CollectionRow,
    KeyRefused,
    TableCollection,
    TimeCollection,
)
from tests.engine.temporal.reference.elements import insertion
from tests.engine.temporal.reference.operators import ElementJoin
from tests.engine.temporal.running import Run, insertions, random_stream, schemas

TABLE = schemas(R=[["k", "INTEGER"], ["v", "INTEGER"]], S=[["k", "INTEGER"]])
FIVE = """where window.table($R, $R.k)
select [s = agg.sum($R.v), n = agg.count($R.v), a = agg.avg($R.v), lo = agg.min($R.v), hi = agg.max($R.v)]"""


@pytest.mark.acceptance(21)
def test_the_example() -> None:
    one = Run(FIVE, TABLE)
    for key, value, ts, te in [
        (1, 10, 2, FOREVER),
        (2, 3, 2, FOREVER),
        (1, 4, 5, FOREVER),
        (-2, 0, 8, 12),
        (-1, 0, 9, 9),
    ]:
        one.feed("R", insertion(ts, te, key, value))
    assert one.finish() == [
        (2, 5, 13, 2, 6.5, 3, 10),
        (5, 8, 7, 2, 3.5, 3, 10),
        (8, 9, 7, 2, 3.5, 3, 10),
        (9, 12, 3, 1, 3.0, 3, 10),
    ]


@pytest.mark.acceptance(21)
def test_key_0_and_unknown_deletes_are_counted() -> None:
    one = Run(FIVE, TABLE)
    one.feed("R", insertion(1, 9, 0, 5), insertion(2, 9, -7, 5), insertion(3, 9, 7, 5))
    assert [row[:3] for row in one.finish()] == [(3, 9, 5)]
    assert one.network.bad_keys == 1
    assert one.network.unknown_deletes == 1


class Heard:
    def __init__(self) -> None:
        self.events: list[Any] = []

    def changed(self, event: str, changes: tuple[Change, ...]) -> None:
        self.events.append((event, [(c.sign, c.row.values, c.start, c.end) for c in changes]))

    def reorganised(self, now: int) -> None:
        self.events.append(("reorganise", now))


def row(ts: int, te: int, *values: int) -> CollectionRow:
    return CollectionRow(ts, te, values)


@pytest.mark.acceptance(23)
def test_events_come_in_order() -> None:
    table = TableCollection(0)
    heard = Heard()
    table.attach(heard)
    for r in (row(2, 20, 1, 10), row(5, 30, 1, 4), row(8, 12, -1, 0), row(9, 15, -1, 0)):
        table.reorganise(r.ts)
        table.insert(r)
    table.reorganise(15)
    assert heard.events == [
        ("reorganise", 2),
        ("insert", [(1, (1, 10), 2, 20)]),
        ("reorganise", 5),
        ("update", [(-1, (1, 10), 5, 20), (1, (1, 4), 5, 30)]),
        ("reorganise", 8),
        ("delete", [(-1, (1, 4), 12, 30)]),
        ("reorganise", 9),
        ("update", [(1, (1, 4), 12, 15)]),
        ("reorganise", 15),
    ]
    assert len(table) == 0


@pytest.mark.acceptance(23)
def test_the_index_hears_before_the_algebra() -> None:
    """The aggregate at an instant includes the changes of the index at that instant."""
    one = Run("where window.table($R, $R.k) select [s = agg.sum($R.v)]", TABLE)
    one.feed("R", insertion(1, 9, 1, 5), insertion(4, 9, 1, 6), insertion(6, 9, 2, 1))
    assert one.rows() == [(1, 4, 5), (4, 6, 6)]


class Follower:
    """Follows a table and looks at it at each event, when the change must be visible."""

    def __init__(self, table: TableCollection) -> None:
        self.table = table
        self.events: list[Any] = []

    def changed(self, event: str, changes: tuple[Change, ...]) -> None:
        told = [(c.sign, c.row.values[1], c.start, c.end) for c in changes]
        self.events.append((event, told, lives(self.table)))

    def reorganised(self, now: int) -> None:
        self.events.append(("reorganise", now, lives(self.table)))


def lives(table: TableCollection) -> dict[int, tuple[int, int, int]]:
    return {abs(r.values[0]): (r.values[1], r.ts, r.te) for r in table.scan()}


@pytest.mark.acceptance(23)
@pytest.mark.parametrize("seed", range(60))
def test_events_of_random_changes(seed: int) -> None:
    """Follows `put` in the text by hand: the events, and that the table has the change by then."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    table = TableCollection(0)
    heard = Follower(table)
    table.attach(heard)
    rows: dict[int, tuple[int, int, int]] = {}
    want: list[Any] = []
    now = 0
    for _ in range(30):
        now += chance.randint(0, 3)
        te = now + chance.choice((0, 1, 5, chance.randint(0, 12)))
        key, value = chance.choice((-3, -2, -1, 1, 2, 3)), chance.randint(-9, 9)
        rows = {k: r for k, r in rows.items() if r[2] > now}
        want.append(("reorganise", now, dict(rows)))
        table.reorganise(now)
        table.insert(row(now, te, key, value))
        old = rows.get(abs(key))
        if key < 0 and old is None:
            continue
        told: list[tuple[int, int, int, int]]
        if key < 0 and old is not None:
            rows[-key] = (old[0], now, te)
            event = "delete" if te < old[2] else "update"
            told = [(-1, old[0], te, old[2])] if te < old[2] else [(1, old[0], old[2], te)]
            told = [each for each in told if each[2] != each[3]]
        elif old is not None:
            rows[key] = (value, now, te)
            event, told = "update", [(-1, old[0], now, old[2]), (1, value, now, te)]
        else:
            rows[key] = (value, now, te)
            event, told = "insert", [(1, value, now, te)]
        want.append((event, told, dict(rows)))
    assert heard.events == want


class Counts:
    """Follows the collections of a join: the number of results at each insert."""

    def __init__(self, join: ElementJoin) -> None:
        self.join = join
        self.inserts: list[int] = []

    def changed(self, event: str, changes: tuple[Change, ...]) -> None:
        assert event == "insert"
        self.inserts.append(self.join.pushed)

    def reorganised(self, now: int) -> None: ...


@pytest.mark.acceptance(23)
@pytest.mark.parametrize("seed", range(30))
def test_an_insert_is_heard_before_its_tuple_is_joined(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    catalogue = schemas(A=[["k", "INTEGER"]], B=[["k", "INTEGER"]])
    one = Run("where $A.k == $B.k select [k = $A.k]", catalogue)
    (join,) = (op for op in one.network.operators if isinstance(op, ElementJoin))
    heard = Counts(join)
    for collection in join.collections:
        collection.attach(heard)
    streams = {s: random_stream(chance, lambda c: (c.randint(0, 2),), 15) for s in "AB"}
    order = [(x.ts, x.te, i, x.values) for i, s in enumerate("AB") for x in insertions(streams[s])]
    order.sort(key=lambda each: each[:3])
    want, pairs = [], 0
    for at, (ts, te, side, values) in enumerate(order):
        want.append(pairs)
        if te > ts:
            pairs += sum(
                other != side and there > ts and same == values
                for _, there, other, same in order[:at]
            )
    for stream, elements in streams.items():
        one.feed(stream, *elements)
    one.finish()
    assert heard.inserts == want
    assert join.pushed == pairs


def test_time_collections_keep_duplicates() -> None:
    kept: Collection = TimeCollection()
    heard = Heard()
    kept.attach(heard)
    for _ in range(2):
        kept.insert(row(1, 5, 7))
    assert [r.values for r in kept.scan()] == [(7,), (7,)]
    assert kept.get(0) == kept.get(1) == row(1, 5, 7)
    kept.reorganise(4)
    assert len(kept) == 2
    kept.reorganise(5)
    assert len(kept) == 0
    assert kept.get(0) is None


def test_scan_is_in_key_order_after_an_update() -> None:
    table = TableCollection(0)
    for r in (row(1, 9, 1, 0), row(2, 9, 2, 0), row(3, 9, 1, 1)):
        table.insert(r)
    assert [r.ts for r in table.scan()] == [2, 3]
    with pytest.raises(KeyRefused):
        table.insert(row(4, 9, 0, 0))
    with pytest.raises(KeyRefused):
        table.refuse(row(4, 9, 0, 0))


@pytest.mark.acceptance(24)
def test_an_update_that_fails_the_predicate_removes_its_row() -> None:
    one = Run(
        "where window.table($R, $R.k), $R.v > 3 select [n = agg.count($R.v), s = agg.sum($R.v)]",
        TABLE,
    )
    one.feed("R", insertion(1, 20, 1, 5), insertion(2, 20, 2, 9), insertion(4, 20, 1, 2))
    one.feed("R", insertion(6, 20, 3, 1), insertion(8, 20, -2, 0))
    assert one.finish() == [(1, 2, 1, 5), (2, 4, 2, 14), (4, 6, 1, 9), (6, 8, 1, 9), (8, 20, 1, 9)]
    assert one.network.unknown_deletes == 0


@pytest.mark.acceptance(24)
def test_and_in_a_join() -> None:
    one = Run("where window.table($R, $R.k), $R.v > 3, $R.k == $S.k select [v = $R.v]", TABLE)
    one.feed("R", insertion(1, 20, 1, 5), insertion(4, 20, 1, 2), insertion(9, 20, 1, 7))
    one.feed("S", insertion(2, 3, 1), insertion(5, 6, 1), insertion(10, 11, 1))
    assert one.finish() == [(2, 3, 5), (10, 11, 7)]


def test_a_table_without_a_stateful_operator_has_no_effect() -> None:
    one = Run("where window.table($R, $R.k) select [v = $R.v]", TABLE)
    one.feed("R", insertion(1, 5, -1, 5), insertion(2, 6, 0, 6))
    assert one.finish() == [(1, 5, 5), (2, 6, 6)]


@pytest.mark.acceptance(22)
@pytest.mark.parametrize("seed", range(60))
def test_updates_and_deletes_against_a_version_history(seed: int) -> None:
    """The history keeps, for each key and instant, the value that was valid in the end."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    query = """where window.table($R, $R.k)
    select [n = agg.count($R.v), s = agg.sum($R.v), a = agg.avg($R.v)]"""
    one = Run(query, TABLE)
    history: dict[int, dict[int, int]] = {key: {} for key in (1, 2, 3)}
    ends: dict[int, tuple[int, int]] = {}
    now = 0
    for _ in range(chance.randint(1, 20)):
        now += chance.randint(1, 3)
        key, te = chance.randint(1, 3), now + chance.randint(0, 9)
        if chance.random() < 0.4:
            one.feed("R", insertion(now, te, -key, 0))
            if key in ends and ends[key][0] > now:
                value = ends[key][1]
                _stands(history[key], now, te, value)
                ends[key] = (te, value)
        else:
            value = chance.randint(-5, 5)
            one.feed("R", insertion(now, te, key, value))
            _stands(history[key], now, te, value)
            ends[key] = (te, value)
    rows = one.finish()
    for t in range(now + 12):
        live = [values[t] for values in history.values() if t in values]
        found = [row[2:] for row in rows if row[0] <= t < row[1]]
        want = [(len(live), sum(live), sum(live) / len(live))] if live else []
        assert found == want, t


def _stands(values: dict[int, int], ts: int, te: int, value: int) -> None:
    for t in [t for t in values if t >= ts]:
        del values[t]
    values.update(dict.fromkeys(range(ts, te), value))
