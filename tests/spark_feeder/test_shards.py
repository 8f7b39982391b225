"""A shard by itself: the order of its rows, its counts, its state. `test_stateful` compares its
results."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pyarrow as pa
import pytest

from seustream.compiler.logical.levels import part
from seustream.compiler.pipeline import compile_text
from seustream.engine.stream.snapshot import SnapshotDamaged
from seustream.spark_feeder.shards import KeyedGraph, MicroBatch, ShardPart, ShardRun, write

TEXT = """
CREATE STREAM R (a int, b int);
CREATE STREAM S (d int, e int);
REGISTER QUERY pairs AS SELECT R.b, S.e FROM R, S WHERE R.a = S.d WINDOW RANGE 10;
REGISTER QUERY parts AS SELECT R.b / R.a AS n FROM R WINDOW NOW;
"""


def graph(query: str = "pairs", text: str = TEXT) -> KeyedGraph:
    c = compile_text(text)
    return KeyedGraph(replace(c, program=part(c.program, query)), query)


def rows(*given: tuple[int, int, int], names: str = "ab") -> bytes:
    columns = list(zip(*given, strict=True))
    return write(
        pa.table(
            {
                "ts": pa.array(columns[0], pa.int64()),
                names[0]: pa.array(columns[1], pa.int32()),
                names[1]: pa.array(columns[2], pa.int32()),
            }
        )
    )


def batch(*parts: tuple[str, bytes | None, int | None]) -> MicroBatch:
    return MicroBatch.of(
        ShardPart(stream, task, 0, top, some) for task, (stream, some, top) in enumerate(parts)
    )


def found(tables: list[pa.Table]) -> list[tuple[int, ...]]:
    return [row for t in tables for row in zip(*(c.to_pylist() for c in t.columns), strict=True)]


def test_parts_are_in_the_order_of_times_then_tasks_whatever_came_first() -> None:
    parts = [
        ShardPart("R", 0, 0, None, rows((5, 1, 1), (3, 1, 2))),
        ShardPart("R", 0, 1, 5, rows((3, 1, 3))),
        ShardPart("R", 2, 0, 9, rows((3, 1, 4))),
        ShardPart("S", 3, 0, None, None),
    ]
    for some in permutations(parts):
        made = MicroBatch.of(some)
        assert made.rows["R"]["b"].to_pylist() == [2, 3, 4, 1]
        assert made.highest == {"R": 9, "S": None}
        assert "S" not in made.rows
    again = MicroBatch.unpack(made.pack())
    assert again == made


def test_a_run_is_made_of_a_base_and_a_log() -> None:
    """A run restored from a base, a log, or both goes on with the same results."""
    first = batch(("R", rows((10, 7, 1)), 10), ("S", rows((11, 7, 2), names="de"), 11))
    second = batch(("R", rows((15, 7, 3)), 15), ("S", rows((18, 7, 4), names="de"), 18))
    third = batch(("R", rows((20, 7, 5)), 20), ("S", None, 30))
    runs = {"kept": ShardRun(graph())}
    kept = runs["kept"]
    before = list(kept.take(first))
    base = kept.pack()
    before += list(kept.take(second))
    runs["base and log"] = ShardRun(graph(), base, [second.pack()])
    runs["base"] = ShardRun(graph(), kept.pack())
    runs["log"] = ShardRun(graph(), None, [first.pack(), second.pack()])
    rest = {}
    for name, run in runs.items():
        rest[name] = found(list(run.take(third))) + found(list(run.end()))
        assert run.ended
    assert [row[:2] for row in found(before)] == [(1, 2), (3, 2)]
    assert [row[:2] for row in rest["kept"]] == [(1, 4), (3, 4), (5, 2), (5, 4)]
    assert all(rows == rest["kept"] for rows in rest.values())
    damaged = base[:40] + bytes([base[40] ^ 1]) + base[41:]
    with pytest.raises(SnapshotDamaged):
        ShardRun(graph(), damaged)


def test_counts_are_those_since_the_last_ones() -> None:
    run = ShardRun(graph("parts"))
    list(run.take(batch(("R", rows((10, 0, 1), (11, 1, 1)), 11))))
    counts = run.counts()
    assert counts.taken == {"R": 2}
    ((count, row),) = counts.faults.values()
    assert count == 1
    assert "10" in row
    list(run.take(batch(("R", rows((9, 1, 1), (12, 0, 1), (13, 0, 1)), 13))))
    counts = run.counts()
    assert counts.taken == {"R": 2}
    assert counts.late == {"R": 1}
    assert [count for count, _ in counts.faults.values()] == [2]
    again = ShardRun(graph("parts"), run.pack())
    assert not again.counts().taken


def test_graphs_of_other_queries_have_other_digests() -> None:
    same = graph()
    assert same.digest == graph().digest
    others = [
        graph("parts"),
        graph(text=TEXT.replace("RANGE 10", "RANGE 11")),
        graph(text=TEXT.replace("(d int, e int)", "(d int, e bigint)")),
        replace(same, slack=5),
        replace(same, late=True),
        replace(same, whole=frozenset({"S"})),
    ]
    assert len({same.digest, *(one.digest for one in others)}) == 7
