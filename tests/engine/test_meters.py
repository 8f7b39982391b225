"""The meters of EXPLAIN ANALYZE, with a clock of the test's own."""

from __future__ import annotations

import pyarrow as pa

from seustream.compiler.pipeline import compile_text
from seustream.engine.graph import GraphRun
from seustream.engine.meters import CALLER, RunMeters

TEXT = """CREATE STREAM R (a int); CREATE STREAM d AS SELECT a FROM R WHERE a > 1;
EXPLAIN ANALYZE SELECT a, count(*) AS n FROM d GROUP BY a, TUMBLE(ts, 10); SELECT a FROM R"""


def test_time_is_that_of_the_innermost() -> None:
    ticks = iter([0, 1, 3, 6, 10])
    meters = RunMeters(lambda: next(ticks))
    with meters.inside("join"), meters.inside("groups"):
        pass
    assert meters.seconds == {CALLER: 1, "join": 2 + 4, "groups": 3}


def test_rows_are_counted_at_each_operator() -> None:
    c = compile_text(TEXT)
    assert [(one.verb, one.target) for one in c.program.requests] == [("analyze", "q0")]
    run = GraphRun(c, meters=RunMeters())
    run.push("R", pa.table({"ts": [1, 2, 3], "a": pa.array([1, 2, 2], pa.int32())}))
    found = {name: rows.num_rows for name, rows in run.finish()}
    assert found == {"q0": 1, "q1": 3}
    assert run.meters is not None
    through = run.operators_of(["q0"])
    names = [gives for some in through.values() for gives in some]
    assert sorted(names) == ["d", "q0", "q0#1"]
    *_, last = through
    assert (run.meters.rows_in[last], run.meters.rows_out[last]) == (2, 1)
    assert all(run.meters.state[own] > 0 for own in through)
