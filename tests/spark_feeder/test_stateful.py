"""The operator inside Spark, compared with one run at a bridge and with DuckDB: random streams,
random cuts into micro-batches and tasks, repeated tasks, lost processes. Spark itself is a stand-in
here, which keeps the states only of tasks that succeed; `test_keyed` uses Spark.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.logical.levels import part
from seustream.compiler.pipeline import Compilation, compile_text
from seustream.engine.graph import GraphRun
from seustream.spark_feeder import stateful
from seustream.spark_feeder.errors import FeedError
from seustream.spark_feeder.queries import keys_inside
from seustream.spark_feeder.shards import KeyedGraph, read
from seustream.spark_feeder.stateful import Packing, PackingRuns, ShardProcessor

Rows = Counter[tuple[Any, ...]]
STREAMS = """
CREATE STREAM R (a int, b int, c varchar(9));
CREATE STREAM S (d bigint, e int);
CREATE STREAM T (f int, g int);
"""
QUERIES = """
REGISTER QUERY pairs AS SELECT R.a, R.b, S.e FROM R, S WHERE R.a = S.d WINDOW RANGE 30;
REGISTER QUERY three AS SELECT R.b, S.e, T.g FROM R, S, T WHERE R.a = S.d AND S.d = T.f WINDOW RANGE 20;
REGISTER QUERY lefts AS SELECT R.a, R.b, S.e FROM R LEFT JOIN S ON R.a = S.d AND S.e > R.b WINDOW RANGE 25;
REGISTER QUERY fulls AS SELECT R.b, S.e FROM R FULL JOIN S ON R.a = S.d WINDOW RANGE 9;
REGISTER QUERY without AS SELECT R.a, R.b FROM R WHERE NOT EXISTS (SELECT 1 FROM S WHERE S.d = R.a) WINDOW RANGE 12;
REGISTER QUERY sums AS SELECT R.c, count(*) AS n, sum(R.b) AS total FROM R GROUP BY R.c WINDOW RANGE 40;
REGISTER QUERY hours AS SELECT R.a, window_end, count(*) AS n FROM R GROUP BY TUMBLE(ts, 50 milliseconds), R.a;
REGISTER QUERY once AS SELECT DISTINCT R.a, R.c FROM R WINDOW RANGE 60;
REGISTER QUERY ranked AS SELECT R.a, R.b, row_number() OVER (PARTITION BY R.a ORDER BY ts) AS n FROM R;
REGISTER QUERY rises AS PATTERN ANY x; ANY y FROM R TYPE BY c PARTITION BY a WHERE y.b > x.b WITHIN 40 ms
    RETURN x.a, x.b, y.b AS later;
CREATE STREAM J AS SELECT R.a, R.b, S.e FROM R, S WHERE R.a = S.d WINDOW RANGE 10;
REGISTER QUERY again AS SELECT J.a, count(*) AS n, max(T.g) AS most FROM J, T WHERE J.a = T.f GROUP BY J.a
    WINDOW RANGE 30;
REGISTER QUERY large AS SELECT T.g FROM T WHERE T.g > 50 WINDOW NOW;
"""


# --- a stand-in for Spark -----------------------------------------------------


@dataclass
class Value:
    value: tuple[Any, ...] | None = None

    def get(self) -> tuple[Any, ...] | None:
        return self.value

    def update(self, value: tuple[Any, ...]) -> None:
        self.value = value


@dataclass
class Log:
    values: list[tuple[Any, ...]] = field(default_factory=list)

    def get(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.values)

    def appendValue(self, value: tuple[Any, ...]) -> None:  # noqa: N802
        self.values.append(value)

    def clear(self) -> None:
        self.values.clear()


@dataclass
class Handle:
    """The state of one key."""

    states: dict[str, Any] = field(default_factory=dict)
    timers: set[int] = field(default_factory=set)

    def getValueState(self, name: str, schema: str) -> Value:  # noqa: N802
        return self.states.setdefault(name, Value())

    def getListState(self, name: str, schema: str) -> Log:  # noqa: N802
        return self.states.setdefault(name, Log())

    def listTimers(self) -> Iterator[int]:  # noqa: N802
        return iter(self.timers)

    def deleteTimer(self, at: int) -> None:  # noqa: N802
        self.timers.discard(at)

    def registerTimer(self, at: int) -> None:  # noqa: N802
        self.timers.add(at)


class Spark:
    """Calls the operator of one query as Spark would; a state is kept only if its task succeeds."""

    def __init__(
        self, graph: KeyedGraph, keys: dict[str, str | None], shards: int, seed: int
    ) -> None:
        self.graph, self.keys, self.shards = graph, keys, tuple(range(7, 7 + shards))
        self.chance = np.random.default_rng(seed)
        self.stored = {shard: Handle() for shard in self.shards}
        self.watermark = 0
        self.rows: list[pa.Table] = []
        self.counts: Counter[str] = Counter()

    def start(self, bounded: bool) -> None:
        """Starts another run of the query, in other processes."""
        stateful._RUNS.clear()
        self.begun: bool | None = bounded

    def batch(self, streams: dict[str, list[pa.Table]]) -> None:
        """Runs a micro-batch: for each stream the rows of its tasks."""
        values: dict[int, list[dict[str, Any]]] = {shard: [] for shard in self.shards}
        task = 0
        for name, tasks in streams.items():
            for rows in tasks:
                task += 1
                packing = Packing(name, self.keys[name], self.shards)
                self._spread(values, packing, task, rows.to_batches(max_chunksize=7))
        if self.begun is not None:
            begun = pa.record_batch({"bounded": [self.begun]})
            self._spread(values, PackingRuns(self.shards), 0, [begun])
            self.begun = None
        for shard in self.shards:
            some = values[shard]
            self.chance.shuffle(some)  # type: ignore[arg-type]
            if some:
                self._task(
                    shard, lambda p, shard, w, some=some: p.handleInputRows((shard,), iter(some), w)
                )
        self.watermark += int(self.chance.integers(1, 100))

    def without_rows(self) -> None:
        """Runs the micro-batch after the last."""
        for shard in self.shards:
            if any(at <= self.watermark for at in self.stored[shard].timers):
                self._task(shard, lambda p, shard, w: p.handleExpiredTimer((shard,), w, None))
        self.watermark += 1

    def _spread(self, values: Any, packing: Any, task: int, batches: list[pa.RecordBatch]) -> None:
        Context.partition = task
        for batch in packing(iter(batches)):
            for row in batch.to_pylist():
                values[row["shard"]].append(row)

    def _task(self, shard: int, call: Any) -> None:
        now = SimpleNamespace(getCurrentWatermarkInMs=lambda: self.watermark)
        while True:
            handle = copy.deepcopy(self.stored[shard])
            if self.chance.random() < 0.2:
                stateful._RUNS.clear()
            processor = ShardProcessor(self.graph, len(self.shards), ends=True)
            processor.init(handle)
            found = list(call(processor, shard, now))
            if self.chance.random() < 0.8:
                break  # otherwise the task is lost after its last row
        self.stored[shard] = handle
        for row in found:
            if row["rows"] is not None:
                self.rows.append(read(row["rows"]))
            for number, stream in enumerate(self.graph.compilation.program.base):
                self.counts[f"taken {stream.name}"] += row[f"taken_{number}"] or 0
                self.counts[f"late {stream.name}"] += row[f"late_{number}"] or 0


class Context:
    """Stands for Spark's TaskContext."""

    partition = 0

    @classmethod
    def get(cls) -> type[Context]:
        return cls

    @classmethod
    def partitionId(cls) -> int:  # noqa: N802
        return cls.partition

    @staticmethod
    def getLocalProperty(name: str) -> str:  # noqa: N802
        return "a query"


@pytest.fixture(autouse=True)
def in_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stateful, "TaskContext", Context)
    monkeypatch.setattr(stateful, "_LOG", 3_000)
    monkeypatch.setattr(stateful, "RESULT_ROWS", 50)


# --- streams and judges -------------------------------------------------------


def streams(chance: np.random.Generator, rows: int) -> dict[str, pa.Table]:
    """Returns streams in order, with some NULL keys."""

    def some(most: int, nulls: float = 0.1) -> list[int | None]:
        return [None if chance.random() < nulls else int(n) for n in chance.integers(0, most, rows)]

    ts = [np.sort(chance.integers(0, 4 * rows, rows)) for _ in range(3)]
    texts = [None if n is None else f"t{n}" for n in some(5)]
    return {
        "R": pa.table({"ts": ts[0], "a": pa.array(some(9), pa.int32()),
                       "b": pa.array(some(90), pa.int32()), "c": texts}),
        "S": pa.table({"ts": ts[1], "d": pa.array(some(9), pa.int64()),
                       "e": pa.array(some(90), pa.int32())}),
        "T": pa.table({"ts": ts[2], "f": pa.array(some(9), pa.int32()),
                       "g": pa.array(some(90), pa.int32())}),
    }  # fmt: skip


def micro_batches(
    chance: np.random.Generator, rows: dict[str, pa.Table], order: str
) -> list[dict[str, list[pa.Table]]]:
    """Returns the streams in micro-batches, each stream in tasks; some batches have nothing of a
    stream. With the order `late` rows fall back behind earlier micro-batches, otherwise only within
    their own."""
    found: list[dict[str, list[pa.Table]]] = [{} for _ in range(int(chance.integers(2, 8)))]
    for name, table in rows.items():
        if order == "late":
            keys = np.asarray(table.column("ts")) + chance.integers(0, 60, table.num_rows)
            table = table.take(np.argsort(keys, kind="stable"))
        cuts = np.sort(chance.integers(0, table.num_rows + 1, len(found) - 1))
        for batch, (begin, end) in zip(
            found, zip([0, *cuts], [*cuts, table.num_rows], strict=True), strict=True
        ):
            some = table.slice(begin, end - begin)
            if chance.random() < 0.5:
                some = some.take(chance.permutation(some.num_rows))
            if not some.num_rows and chance.random() < 0.5:
                continue  # not even a task
            middle = int(chance.integers(0, some.num_rows + 1))
            batch[name] = [some.slice(0, middle), some.slice(middle)]
    return found


def multiset(tables: list[pa.Table]) -> Rows:
    return Counter(
        row for t in tables for row in zip(*(c.to_pylist() for c in t.columns), strict=True)
    )


def at_a_bridge(
    c: Compilation, batches: list[dict[str, list[pa.Table]]], slack: int | None
) -> tuple[dict[str, Rows], dict[str, int]]:
    """Runs once with each micro-batch as an epoch of every stream."""
    run = GraphRun(c, slack=slack)
    found: dict[str, list[pa.Table]] = {name: [] for name in c.program.names}

    def keep(answers: Any) -> None:
        for name, rows in answers:
            found[name].append(rows)

    for batch in batches:
        for name, tasks in batch.items():
            rows = pa.concat_tables(tasks)
            if rows.num_rows:
                run.push(name, rows.sort_by("ts"))
        keep(run.advance())
    keep(run.finish())
    return {name: multiset(tables) for name, tables in found.items()}, run.report.late


def inside(
    c: Compilation,
    query: str,
    batches: list[dict[str, list[pa.Table]]],
    shards: int,
    seed: int,
    slack: int | None = None,
) -> Spark:
    program = part(c.program, query)
    names = [stream.name for stream in program.base]
    by = keys_inside(c.program)[query]
    graph = KeyedGraph(replace(c, program=program), query, slack=slack)
    spark = Spark(graph, {name: by.of(name) for name in names}, shards, seed)
    stop = int(spark.chance.integers(0, len(batches)))
    spark.start(bounded=False)
    for number, batch in enumerate(batches):
        if number == stop:
            spark.start(bounded=True)
        mine = {name: batch[name] for name in names if name in batch}
        if mine or spark.begun is not None:
            spark.batch(mine)
    spark.without_rows()
    spark.start(bounded=True)
    spark.batch({})
    spark.without_rows()
    return spark


@pytest.mark.parametrize("order", ["own", "late"])
@pytest.mark.parametrize("seed", range(3))
def test_the_results_of_a_bridge(seed: int, order: str) -> None:
    print(f"seed {seed}")
    chance = np.random.default_rng(seed)
    c = compile_text(STREAMS + QUERIES)
    batches = micro_batches(chance, streams(chance, 150), order)
    slack = 20 if order == "late" else None
    want, late = at_a_bridge(c, batches, slack)
    assert bool(late) == (order == "late")
    for query in c.program.names:
        spark = inside(c, query, batches, int(chance.integers(1, 5)), seed, slack)
        assert multiset(spark.rows) == want[query], query
        assert want[query], query
        for stream in spark.graph.compilation.program.base:
            assert spark.counts[f"late {stream.name}"] == late.get(stream.name, 0)


DUCKDB = {
    "pairs": """SELECT R.a, R.b, S.e, least(R.ts, S.ts), greatest(R.ts, S.ts) FROM R, S
        WHERE R.a = S.d AND abs(R.ts - S.ts) <= 30""",
    "three": """SELECT R.b, S.e, T.g, least(R.ts, S.ts, T.ts), greatest(R.ts, S.ts, T.ts) FROM R, S, T
        WHERE R.a = S.d AND S.d = T.f
        AND greatest(R.ts, S.ts, T.ts) - least(R.ts, S.ts, T.ts) <= 20""",
    "lefts": """SELECT R.a, R.b, S.e, least(R.ts, S.ts), greatest(R.ts, S.ts) FROM R LEFT JOIN S
        ON R.a = S.d AND S.e > R.b AND abs(R.ts - S.ts) <= 25""",
    "fulls": """SELECT R.b, S.e, least(R.ts, S.ts), greatest(R.ts, S.ts) FROM R FULL JOIN S
        ON R.a = S.d AND abs(R.ts - S.ts) <= 9""",
    "without": """SELECT R.a, R.b, R.ts, R.ts FROM R WHERE NOT EXISTS
        (SELECT 1 FROM S WHERE S.d = R.a AND abs(R.ts - S.ts) <= 12)""",
    "ranked": """SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY ts, n), ts, ts FROM
        (SELECT *, row_number() OVER () AS n FROM R)""",
    "hours": """SELECT a, ts // 50 * 50 + 50, count(*), min(ts), ts // 50 * 50 + 49 FROM R
        GROUP BY a, ts // 50""",
}  # fmt: skip
"""The definition of each query, for DuckDB."""


@pytest.mark.parametrize("seed", range(20, 23))
def test_the_results_of_duckdb(seed: int) -> None:
    print(f"seed {seed}")
    chance = np.random.default_rng(seed)
    rows = streams(chance, 120)
    rows["R"] = rows["R"].set_column(0, "ts", pa.array(np.sort(chance.permutation(480)[:120])))
    c = compile_text(STREAMS + QUERIES)
    batches = micro_batches(chance, rows, "own")
    with duckdb.connect() as judge:
        for name, table in rows.items():
            judge.register(name, table)
        for query, text in DUCKDB.items():
            spark = inside(c, query, batches, int(chance.integers(1, 5)), seed)
            want = Counter(judge.execute(text).fetchall())
            assert multiset(spark.rows) == want, query
            assert want, query


# --- what is no result --------------------------------------------------------


def _pairs(shards: int = 2) -> Spark:
    c = compile_text(STREAMS + QUERIES)
    graph = KeyedGraph(replace(c, program=part(c.program, "pairs")), "pairs")
    spark = Spark(graph, {"R": "a", "S": "d"}, shards, 5)
    spark.start(bounded=True)
    return spark


def test_rows_after_the_end_are_refused() -> None:
    rows = streams(np.random.default_rng(1), 20)
    spark = _pairs()
    spark.batch({"R": [rows["R"]], "S": [rows["S"]]})
    spark.without_rows()
    spark.start(bounded=True)
    with pytest.raises(FeedError, match=r"conflict: stream R has ended \(give another"):
        spark.batch({"R": [rows["R"]]})


def test_a_state_of_something_else_is_refused() -> None:
    rows = streams(np.random.default_rng(1), 20)
    spark = _pairs()
    spark.batch({"R": [rows["R"]], "S": [rows["S"]]})
    before, spark.shards = spark.shards, (*spark.shards, 99)
    with pytest.raises(
        FeedError, match=r"among 2 tasks, .* 3 \(set spark.sql.shuffle.partitions=2"
    ):
        spark.batch({"R": [rows["R"]], "S": [rows["S"]]})
    spark.shards = before
    other = compile_text(STREAMS + QUERIES.replace("RANGE 30", "RANGE 31"))
    spark.graph = KeyedGraph(replace(other, program=part(other.program, "pairs")), "pairs")
    with pytest.raises(FeedError, match="conflict: the checkpoint is of another text of pairs"):
        spark.batch({"R": [rows["R"]], "S": [rows["S"]]})


def test_a_row_without_a_time_is_refused() -> None:
    rows = streams(np.random.default_rng(1), 3)["R"]
    untimed = rows.set_column(0, "ts", pa.array([1, None, 3], pa.int64()))
    with pytest.raises(
        FeedError, match="schema: stream R, column ts, row 2 of 3: NULL, where none may be"
    ):
        _pairs().batch({"R": [untimed]})


def test_a_whole_stream_ends_with_its_first_micro_batch() -> None:
    """Rows that wait for a silent stream come once that stream is known to be over."""
    rows = streams(np.random.default_rng(2), 40)
    spark = _pairs(1)
    spark.graph = replace(spark.graph, whole=frozenset({"R"}))
    spark.batch({"R": [rows["R"]], "S": [rows["S"]]})
    assert sum(t.num_rows for t in spark.rows) > 10
    newest = max(row[-1] for row in multiset(spark.rows))
    assert (
        newest > np.asarray(rows["R"]["ts"]).max()
        or newest >= np.asarray(rows["S"]["ts"]).max() - 30
    )


def test_a_silent_stream_holds_the_others_back_by_the_lag() -> None:
    rows = streams(np.random.default_rng(3), 60)
    spark = _pairs(1)
    first = rows["S"].slice(0, 20)
    spark.batch({"R": [rows["R"].slice(0, 20)], "S": [first]})
    before = len(multiset(spark.rows))
    spark.graph = lagging = replace(spark.graph, lag=5)
    assert lagging.digest != _pairs().graph.digest
    again = Spark(lagging, {"R": "a", "S": "d"}, 1, 5)
    again.start(bounded=True)
    again.batch({"R": [rows["R"]], "S": [first]})
    assert len(multiset(again.rows)) > before


def test_late_rows_are_the_answer_of_their_stream() -> None:
    c = compile_text(STREAMS + QUERIES)
    (own,) = (stream for stream in c.program.base if stream.name == "R")
    graph = KeyedGraph(replace(c, program=type(c.program)(streams=(own,))), "R", late=True)
    spark = Spark(graph, {"R": None}, 3, 8)
    spark.start(bounded=True)
    rows = streams(np.random.default_rng(4), 30)["R"]
    spark.batch({"R": [rows.slice(10)]})
    spark.batch({"R": [rows.slice(0, 10)]})
    spark.without_rows()
    first = rows["ts"][29].as_py()
    want = [row for row in multiset([rows.slice(0, 10)]).elements() if row[0] < first]
    assert multiset(spark.rows) == Counter(want)
