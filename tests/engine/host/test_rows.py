"""The row store: finds rows by sequence number, and frees dropped rows."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from seustream.engine.host.rows import IN_DEVICE, RowStore, reach_back
from seustream.hdl.device import Retention

SCHEMA = pa.schema([("ts", pa.int64()), ("a", pa.int32()), ("t", pa.string())])


def rows(first: int, count: int, step: int = 1) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        {
            "ts": pa.array([n * step for n in numbers], pa.int64()),
            "a": pa.array([None if n % 5 == 0 else n for n in numbers], pa.int32()),
            "t": [f"text {n:08}" for n in numbers],
        },
        schema=SCHEMA,
    )


def append(store: RowStore, count: int, step: int = 1) -> None:
    first = store.first + len(store)
    added = rows(first, count, step)
    position = np.arange(first, first + count)
    copies = [position * 2 + copy for copy in range(len(store.position))]
    store.append(added, np.asarray(added.column("ts")), copies)


def test_append() -> None:
    store = RowStore(SCHEMA, 2)
    assert (len(store), store.first + len(store)) == (0, 0)
    append(store, 3)
    append(store, 2, step=1)
    assert (len(store), store.first + len(store)) == (5, 5)
    assert store.timestamp[:].tolist() == [0, 1, 2, 3, 4]
    assert [mine[:].tolist() for mine in store.position] == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
    assert all((left == IN_DEVICE).all() and len(left) == 5 for left in store.left)
    assert store.table.num_rows == 5


def test_columns_by_place_in_any_order_and_more_than_once() -> None:
    store = RowStore(SCHEMA, 1)
    append(store, 7)
    index = np.array([6, 0, 6, 1])
    found = store.columns({"a", "t", "TimeStamp"}, index)
    assert {name: column.to_pylist() for name, column in found.items()} == {
        "a": [6, None, 6, 1],
        "t": ["text 00000006", "text 00000000", "text 00000006", "text 00000001"],
        "TimeStamp": [6, 0, 6, 1],
    }
    assert all(isinstance(column, pa.Array) for column in found.values())
    none = store.columns({"a"}, np.empty(0, np.int64))["a"]
    assert (len(none), none.type) == (0, pa.int32())
    assert store.columns(set(), index) == {}


def test_columns_of_an_empty_store() -> None:
    none = RowStore(SCHEMA, 1).columns({"t"}, np.empty(0, np.int64))["t"]
    assert (len(none), none.type) == (0, pa.string())


def test_many_small_pushes_do_not_stay_many_chunks() -> None:
    store = RowStore(SCHEMA, 1)
    for _ in range(100):
        append(store, 1)
        store.columns({"a"}, np.array([0]))
    assert store.table.column("t").num_chunks <= 10
    assert store.columns({"t"}, np.array([99]))["t"].to_pylist() == ["text 00000099"]


def test_sequence_numbers_outlive_drops() -> None:
    store = RowStore(SCHEMA, 2)
    append(store, 10)
    store.left[1][7] = 3
    store.drop_before(4)
    assert (store.first, len(store), store.first + len(store)) == (4, 6, 10)
    assert store.index(np.array([4, 9])).tolist() == [0, 5]
    assert store.columns({"t"}, store.index(np.array([4])))["t"].to_pylist() == ["text 00000004"]
    assert [mine[:].tolist() for mine in store.position] == [
        [8, 10, 12, 14, 16, 18],
        [9, 11, 13, 15, 17, 19],
    ]
    assert store.left[1].tolist() == [IN_DEVICE] * 3 + [3] + [IN_DEVICE] * 2
    append(store, 2)
    assert store.timestamp[:].tolist() == list(range(4, 12))
    store.drop_before(0)
    assert len(store) == 8
    store.drop_before(8)
    assert (len(store), store.first + len(store)) == (0, 12)
    append(store, 1)
    assert store.columns({"TimeStamp"}, np.array([0]))["TimeStamp"].to_pylist() == [12]


def test_a_drop_frees_the_memory() -> None:
    """Both the bytes of the table and the bytes of the allocator shrink."""

    def allocated() -> int:
        pools = pa.default_memory_pool(), pa.system_memory_pool()
        return sum(pool.bytes_allocated() for pool in pools)

    before = allocated()
    store = RowStore(SCHEMA, 1)
    append(store, 20_000)
    store.columns({"t"}, np.array([0]))
    full, held = store.table.nbytes, allocated() - before
    assert full > 400_000
    assert held > 200_000
    store.drop_before(19_990)
    assert store.table.nbytes < 1000
    assert allocated() - before < held // 20
    assert store.left[0].base.nbytes <= 160
    for column in (store.timestamp, store.position[0]):
        assert column._held._data.nbytes <= 160


# --- what is still needed -------------------------------------------------------


def test_a_window_that_moves_holds_little_more_than_its_rows() -> None:
    store = RowStore(SCHEMA, 1)
    for _ in range(60):
        append(store, 5_000)
        if len(store) > 100_000:
            store.drop_before(len(store) - 100_000)
    held = sum(piece.rows.num_rows for piece in store._pieces) + sum(map(len, store._new))
    assert 100_000 <= held <= 115_000
    assert all("ts" not in piece.rows.column_names for piece in store._pieces)
    some = np.array([0, 40_000, 99_999])
    assert store.columns({"a", "ts"}, some)["ts"].to_pylist() == (store.first + some).tolist()
    assert store.columns({"t"}, some)["t"].to_pylist() == [
        f"text {store.first + n:08}" for n in some
    ]
    assert store.table.equals(rows(store.first, 100_000))


@pytest.mark.parametrize(
    ("keep", "now", "first"),
    [
        (Retention(None), 10**9, 0),
        (Retention(0), 90, 9),
        (Retention(0), 91, 10),
        (Retention(25), 95, 7),
        (Retention(20), 90, 7),
        (Retention(10**6), 95, 0),
        (Retention(-1, 3), 95, 7),
        (Retention(-1, 3), -50, 7),
        (Retention(-1, 30), 95, 0),
        (Retention(0, 3), 95, 7),
        (Retention(50, 3), 95, 5),
        (Retention(), 95, 10),
        (Retention(2**63 - 1), -(2**63), 0),
        (Retention(-1, 2), 2**63 - 1, 8),
    ],
)
def test_first_needed(keep: Retention, now: int, first: int) -> None:
    """Ten rows at times 0, 10 … 90."""
    store = RowStore(SCHEMA, 1)
    append(store, 10, step=10)
    assert store.first_needed(keep, now) == first


def test_nothing_is_needed_of_nothing() -> None:
    for keep in (Retention(None), Retention(5), Retention(-1, 5)):
        assert RowStore(SCHEMA, 1).first_needed(keep, 0) == 0


@pytest.mark.parametrize("seed", range(40))
def test_first_and_most_needed_by_definition(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    store = RowStore(SCHEMA, 1)
    ts = sorted(chance.randint(-20, 20) for _ in range(chance.randint(1, 30)))
    table = rows(0, len(ts)).set_column(0, "ts", pa.array(ts, pa.int64()))
    store.append(table, np.array(ts), [np.arange(len(ts))])
    keep = Retention(chance.choice((None, -1, 0, 4, 30)), chance.choice((0, 1, 5, 50)))

    def needed(place: int, last: int) -> bool:
        """Decides at the arrival of the row at place `last`."""
        if keep.range is None:
            return True
        return ts[last] - ts[place] <= keep.range or last - place < keep.rows

    last = len(ts) - 1
    want = next((i for i in range(last + 1) if needed(i, last)), len(ts))
    assert store.first_needed(keep, ts[last]) == want
    places = np.array(sorted(chance.sample(range(len(ts)), chance.randint(1, len(ts)))))
    most = max(sum(needed(i, int(p)) for i in range(int(p) + 1)) for p in places)
    assert store.most_needed(keep, places) == most


def test_reach_back_stops_at_the_first_timestamp() -> None:
    low, high = -(2**63), 2**63 - 1
    now = np.array([low, low + 5, 0, high])
    assert reach_back(now, 5).tolist() == [low, low, -5, high - 5]
    assert reach_back(now, high).tolist() == [low, low, -high, 0]
    assert reach_back(now, 0).tolist() == now.tolist()
