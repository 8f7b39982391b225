"""The state of a run: the operators that resume from it, and the rows that can be saved from it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.pipeline import compile_text
from seustream.engine.graph import GraphRun
from seustream.engine.host.stages import SoftwareJoin
from seustream.engine.runs import base_joins, base_kind, before, late_of, software_join
from seustream.engine.stream.snapshot import Snapshot
from tests.engine.host.running import DEVICES
from tests.engine.twostreams import STREAMS, random_rows


def test_a_stage_that_stands_elsewhere_has_the_rows_of_base_streams() -> None:
    """A stream is defined anew without the stage before it, so its reader moves to an earlier stage.
    It is another stream, of which nothing has come."""
    data = random_rows(60, np.random.default_rng(2))
    reader = "SELECT E.a, R.b FROM E, R WHERE E.a = R.a WINDOW RANGE 20;"
    second = (
        "CREATE STREAM D AS SELECT a, b FROM R WINDOW NOW;"
        "CREATE STREAM E AS SELECT D.a FROM D, S WHERE D.a = S.d WINDOW RANGE 20;"
    )
    first = "CREATE STREAM E AS SELECT R.a FROM R, S WHERE R.a = S.d WINDOW RANGE 20;"

    def driver(text: str) -> GraphRun:
        compilation = compile_text(STREAMS + text)
        return GraphRun(compilation, DEVICES["golden"](compilation.options.config))

    def kept(stage: object) -> list[bool]:
        assert isinstance(stage, SoftwareJoin)
        return [stage.stores[name].table.num_rows > 0 for name in "ER"]

    before, after = driver(second + reader), driver(first + reader)
    for name, table in data.items():
        before.push(name, table)
    for _ in before.advance():
        pass
    assert list(before.operators) == ["software join 0", "software join 1", "software join 2"]
    assert list(after.operators) == ["device join", "software join 1"]
    assert kept(before.operators["software join 2"]) == [True, True]
    state = before.state()
    after.resume(state)
    assert kept(after.operators["software join 1"]) == [False, True]
    same = driver(second + reader)
    same.resume(state)
    assert kept(same.operators["software join 2"]) == [True, True]


def test_operators_that_join_base_streams_are_known_by_their_names() -> None:
    found = {name: base_kind(name) for name in
             ("device join", "device join 1", software_join(0), software_join(1), "pattern q", "")}  # fmt: skip
    assert found == {
        "device join": "device join", "device join 1": "device join",
        "software join 0": "software join", "software join 1": None, "pattern q": None, "": None,
    }  # fmt: skip
    snapshots = {
        software_join(0): Snapshot("software join", {"n": 1}).pack(),
        software_join(1): Snapshot("software join", {"n": 2}).pack(),
        "device join 1": Snapshot("device join", {"n": 3}).pack(),
        "pattern q": b"of another kind",
    }
    assert {name: one.plain["n"] for name, one in base_joins(snapshots).items()} == {
        software_join(0): 1, "device join 1": 3
    }  # fmt: skip


def test_a_state_is_taken_over_from_an_operator_of_the_same_kind() -> None:
    def run(select: str) -> GraphRun:
        return GraphRun(compile_text(f"{STREAMS}REGISTER QUERY q AS {select};"))

    groups, more, outer = map(
        run,
        (
            "SELECT count(*) AS n FROM R GROUP BY TUMBLE(ts, 2 ms)",
            "SELECT count(*) AS n FROM R GROUP BY TUMBLE(ts, 3 ms)",
            "SELECT R.a FROM R LEFT JOIN S ON R.a = S.d WINDOW RANGE 5",
        ),
    )
    name = "operation q"
    known = {name: groups.operators[name].snapshot()}
    assert before(name, more.operators[name], known) == known[name]
    assert before(name, outer.operators[name], known) is None
    assert before(name, outer.operators[name], {}) is None


def test_late_rows_are_those_of_the_streams_that_are_read() -> None:
    seen: list[tuple[str, int]] = []
    take = late_of({"R"}, lambda stream, rows: seen.append((stream, rows.num_rows)))
    for name in ("R", "S"):
        take(name, pa.table({"ts": [1, 2]}))
    assert seen == [("R", 2)]
    late_of({"R"}, None)("R", pa.table({"ts": [1]}))


def test_rows_that_can_be_saved_are_those_that_wait_and_those_in_windows() -> None:
    """They come from a state that no run of the same query set resumes."""
    text = STREAMS + "SELECT R.b, S.e FROM R, S WHERE R.a = S.d WINDOW RANGE 3;"
    run = GraphRun(compile_text(text))
    for name, names in (("R", "ab"), ("S", "de")):
        ts = [1, 2, 8, 9] if name == "R" else [8]
        run.push(name, pa.table({"ts": ts, **{n: pa.array(ts, pa.int32()) for n in names}}))
    list(run.advance())
    found: dict[str, list[int]] = {"R": [], "S": []}
    for name, rows in run.state().rows():
        found[name] += rows.column("ts").to_pylist()
    assert set(found["R"]) >= {8, 9}
    assert len(found["R"]) == len(set(found["R"])), "none twice"
    assert found["S"] == [8]


@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN"])
def test_a_state_has_the_rows_of_a_table_once(join: str) -> None:
    """They are in the state of a join, or beside the states, where rows can be saved from it."""
    table = "CREATE TABLE t (k int); REGISTER QUERY l AS SELECT R.a FROM R JOIN S ON a = d WINDOW RANGE 3;"
    c = compile_text(f"{STREAMS}{table} SELECT R.b FROM R {join} t ON R.a = k;")
    run, k = GraphRun(c, living=True), pa.array([1, 2, 2], pa.int32())
    run.push("t", pa.table({"k": k}))
    run.end("t")
    run.push("R", pa.table({"ts": [1, 2, 2], "a": k, "b": k}))
    list(run.advance())
    state = run.state()
    assert state.tables.keys() == ({"t"} if join == "LEFT JOIN" else set())
    found = [rows.column("k").to_pylist() for name, rows in state.rows() if name == "t"]
    assert [one for one in found if one] == [[1, 2, 2]]


@pytest.mark.parametrize(
    ("form", "reached"),
    [
        ("SELECT R.b FROM R LEFT JOIN S ON R.a = S.d WINDOW RANGE 3", {8, 9}),
        ("SELECT a, count(*) AS n FROM R GROUP BY a WINDOW RANGE 3 EMIT CHANGES", {8, 9}),
        ("SELECT count(*) AS n FROM R GROUP BY a WINDOW RANGE 3", {8, 9}),
        ("SELECT count(*) AS n FROM R GROUP BY TUMBLE(ts, 20 ms)", None),
        ("SELECT sum(a) OVER (ORDER BY ts RANGE 3 PRECEDING) AS s FROM R", None),
        ("SELECT DISTINCT a FROM R WINDOW RANGE 3", None),
        ("PATTERN ANY x; ANY y FROM R WHERE x.a < y.a WITHIN 3 ms RETURN y.a", None),
        ("SELECT x.a FROM D x JOIN D y ON x.a = y.a WINDOW RANGE 3", None),
    ],
)
def test_queries_of_which_rows_are_not_saved_are_named(form: str, reached: set[int] | None) -> None:
    derived = "CREATE STREAM D AS SELECT a FROM R;"
    run = GraphRun(compile_text(f"{STREAMS}{derived} REGISTER QUERY q AS {form};"), living=True)
    ts = pa.array([1, 2, 8, 9])
    run.push("R", pa.table({"ts": ts, "a": ts.cast(pa.int32()), "b": ts.cast(pa.int32())}))
    run.promise("S", 9)
    list(run.advance())
    state = run.state()
    saved = [rows.column("ts").to_pylist() for name, rows in state.rows() if name == "R"]
    known = [ts for some in saved for ts in some]
    assert len(known) == len(set(known)), "none twice"
    assert set(known) >= (reached or set())
    named = ["D"] if " D " in form else ["q"]
    assert state.without_rows() == ([] if reached else named)
