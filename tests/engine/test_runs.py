"""The state of a run: the operators that resume from it, and the rows that can be saved from it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from seustream.compiler.pipeline import compile_text
from seustream.engine.graph import GraphRun
from seustream.engine.host.stages import SoftwareJoin
from seustream.engine.runs import base_joins, base_kind, late_of, software_join
from seustream.engine.stream.snapshot import Snapshot
from tests.engine.host.running import DEVICES
from tests.engine.twostreams import STREAMS, random_rows


def test_a_stage_keeps_its_windows_where_it_stands_elsewhere() -> None:
    """The same stream is defined without the stage before it, so its reader moves to an earlier
    stage."""
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

    def kept(stage: object) -> int:
        assert isinstance(stage, SoftwareJoin)
        return stage.stores["E"].table.num_rows

    before, after = driver(second + reader), driver(first + reader)
    for name, table in data.items():
        before.push(name, table)
    for _ in before.advance():
        pass
    assert list(before.operators) == ["software join 0", "software join 1", "software join 2"]
    assert list(after.operators) == ["device join", "software join 1"]
    assert kept(before.operators["software join 2"]) > 0
    after.resume(before.state())
    assert kept(after.operators["software join 1"]) > 0


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
