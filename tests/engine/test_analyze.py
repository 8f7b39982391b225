"""The figures of operators, and the queries each operator serves."""

from __future__ import annotations

import pyarrow as pa

from seustream.compiler.pipeline import compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.engine.analyze import analyzed, cycles, read_units, through
from seustream.engine.graph import GraphRun, drive
from seustream.engine.meters import RunMeters
from seustream.hdl.device import Batch, Results, UnitCycles

TEXT = """
CREATE STREAM R (a int); CREATE STREAM S (a int);
CREATE STREAM d AS SELECT R.a FROM R, S WHERE R.a = S.a WINDOW RANGE 9;
REGISTER QUERY one AS SELECT a FROM d WINDOW NOW;
REGISTER QUERY two AS SELECT a, count(*) AS n FROM d GROUP BY a WINDOW RANGE 5;
REGISTER QUERY three AS SELECT count(*) AS n FROM R GROUP BY TUMBLE(ts, INTERVAL '1' SECOND);
"""


def test_each_operator_has_its_figures_and_its_queries() -> None:
    run = GraphRun(compile_text(TEXT), meters=RunMeters(looks=False))
    rows = pa.table({"ts": [1, 2, 3], "a": [1, 2, 1]})
    counts = dict.fromkeys(("one", "two", "three"), 0)
    for name, found in drive(run, {"R": rows, "S": rows}):
        counts[name] += found.num_rows
    by_operator = through(run)
    assert {own for own, queries in by_operator.items() if "one" in queries} == {
        "software join 0",
        "software join 1",
    }
    assert by_operator["operation three"] == ["three"]
    assert set(by_operator["software join 0"]) == {"one", "two", "three"}
    assert cycles(run) == {}
    lines = analyzed(run, ["one", "strange"])
    assert lines[0] == "strange does not run: register it, and ask again"
    assert lines[2].split()[:2] == ["node", "gives"]
    assert any(line.lstrip().startswith("software join 0") and "–" in line for line in lines)
    run.state()
    sizes = run.meters.state
    assert all(sizes[own] > 0 for own in run.operators)
    assert analyzed(run, []) == []


class Clocked(GoldenDevice):
    """A device that has spent cycles on its image, and spends one on each tuple."""

    cycles = 0

    def load(self, image: bytes) -> None:
        self.cycles += 18_000
        super().load(image)

    def push(self, batch: Batch) -> Results:
        self.cycles += len(batch.stream)
        return super().push(batch)


def test_loading_is_not_counted() -> None:
    compiled = compile_text(TEXT)
    device = Clocked(compiled.options.config)
    run = GraphRun(compiled, device)
    rows = pa.table({"ts": [1, 2, 3], "a": [1, 2, 1]})
    for _ in drive(run, {"R": rows, "S": rows}):
        pass
    assert device.cycles > 18_000
    assert list(cycles(run).values()) == [device.cycles - 18_000]


class Counting(Clocked):
    """A device with two units, one of which was busy for a quarter of the cycles. To read them takes
    some more."""

    def units(self) -> dict[str, UnitCycles]:
        self.cycles += 50
        taken = self.status().taken
        return {"door": UnitCycles(taken, 2 * taken, taken), "grouping": UnitCycles(0, 0, 0)}


def test_the_units_of_a_device_are_shown_as_they_were_read() -> None:
    compiled = compile_text(TEXT)
    device = Counting(compiled.options.config)
    run = GraphRun(compiled, device, meters=RunMeters(looks=False))
    rows = pa.table({"ts": [1, 2, 3], "a": [1, 2, 1]})
    for _ in drive(run, {"R": rows, "S": rows}):
        pass
    assert not any("starved" in line for line in analyzed(run, ["one"])), "nobody has read them"
    read_units(run)
    assert list(cycles(run).values()) == [device.cycles - 18_000 - 50]
    above, head, _, *units = analyzed(run, ["one"])[-5:]
    assert above == ""
    assert head.split() == ["node", "unit", "busy", "starved", "blocked"]
    assert [line.replace(" %", "%").split() for line in units] == [
        ["device", "join", "door", "25%", "50%", "25%"],
        ["device", "join", "grouping", "0%", "0%", "0%"],
    ]
    assert not any("starved" in line for line in analyzed(run, ["three"])), "it has no part in them"
    without = GraphRun(compiled, GoldenDevice(compiled.options.config), meters=RunMeters())
    read_units(without)
    assert not any("starved" in line for line in analyzed(without, ["one"]))


def test_a_query_that_failed_has_no_part() -> None:
    run = GraphRun(compile_text(TEXT), meters=RunMeters(looks=False), contained=True)
    run.failures.why["three"] = "a fault"
    assert through(run)["operation three"] == []
