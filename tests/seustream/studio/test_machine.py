"""A run, tuple by tuple: all devices report the same, and the results are those of the product."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seustream as ss
from seustream.compiler.explain.provenance import provenance
from seustream.cosim.golden import GoldenDevice
from seustream.engine.graph import GraphRun, drive
from seustream.errors import InputError, UserError
from seustream.frames import tuples_of
from seustream.hdl.device import Batch, Results, Status, UnitCycles
from seustream.studio.compiled import Settings, compilation
from seustream.studio.data import rows
from seustream.studio.machine import SteppedDevice, story
from seustream.studio.wanted import Unwanted

EIGHT = Path("examples/eight/eight.xsql").read_text(encoding="utf-8")
SMALL = """CREATE STREAM R (a int); CREATE STREAM S (d int);
REGISTER QUERY q AS SELECT * FROM R, S WHERE R.a = S.d AND R.a > 2 WINDOW RANGE 10;"""


def told(text: str, backend: str, count: int = 60, config: str = "default") -> dict[str, Any]:
    c = compilation(text, Settings(config))
    return story(c, rows(c.program.base, 7, count), backend)


def common(step: dict[str, Any]) -> dict[str, Any]:
    """Returns the part of a step that every device reports; joins are a set, because each device
    has its own order."""
    own = ("executed", "moments", "cycle_of", "probes", "joins", "cycles", "clock", "units")
    told = {name: told for name, told in step.items() if name not in own}
    assert len(set(step["joins"])) == len(step["joins"])
    return told | {"joins": set(step["joins"])}


def follow(step: dict[str, Any]) -> None:
    """Asserts that each join uses the raw tuple or an earlier join and is within the window, and
    that each output was joined."""
    raw = [-1] * 4
    raw[step["stream"]] = step["sequence"]
    known = {(step["stream"], tuple(raw))}
    for tag, area, post, parts in step["joins"]:
        before = (*parts[:area], -1, *parts[area + 1 :])
        assert (tag, before) in known, (tag, before)
        assert parts[area] >= 0
        known.add((post, parts))
    wholes = {parts for _, parts in known}
    assert all(tuple(parts) in wholes for _, parts in step["results"])


def test_golden_and_instruction_level_tell_the_same() -> None:
    golden, iss = (told(EIGHT, backend) for backend in ("golden", "iss"))
    assert list(map(common, golden["steps"])) == list(map(common, iss["steps"]))
    assert golden["results"] == iss["results"]
    assert golden["rows"] == iss["rows"]
    for run in (golden, iss):
        for step in run["steps"]:
            follow(step)
    assert max(len(step["joins"]) for step in golden["steps"]) > 5
    assert not any(step["executed"] for step in golden["steps"])
    assert any(step["executed"] for step in iss["steps"])


def test_the_factor_bits_are_those_of_the_definition() -> None:
    """For each pair, evaluates each comparison that a query states, here on the rows."""
    found, seen = told(EIGHT, "iss"), Counter[bool]()
    labels = provenance(compilation(EIGHT, Settings())).parts
    index = {slot["name"]: n for n, slot in enumerate(found["slots"])}

    def value(name: str, parts: list[int]) -> Any:
        slot, _, column = name.partition(".")
        table = found["rows"][found["slots"][index[slot]]["stream"]]
        place = parts[index[slot]]
        return None if place < 0 else table["rows"][place][table["columns"].index(column)]

    for step in found["steps"]:
        for probe in step["probes"]:
            for stored, bits in probe["pairs"]:
                parts = [*probe["parts"]]
                parts[probe["area"]] = stored
                for register, number in enumerate(found["factors"][probe["area"]]):
                    left, sign, right = labels[f"factor:{number}"].label.split()[-3:]
                    a, b = value(left, parts), value(right, parts)
                    if None not in (a, b):
                        holds = {"=": a == b, ">": a > b, "<": a < b}[sign]
                        assert bool(bits >> register & 1) == holds
                        seen[holds] += 1
    assert min(seen[True], seen[False]) > 100


@pytest.mark.campaign
@pytest.mark.parametrize(("text", "config"), [(SMALL, "tiny"), (EIGHT, "default")])
def test_the_rtl_tells_the_same(text: str, config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its joins, and the factor bits of the pairs it examines, equal those of the models."""
    monkeypatch.setattr("seustream.studio.trace.MOST_PAIRS", 1 << 20)
    iss, rtl = (told(text, backend, 120, config) for backend in ("iss", "verilated"))
    for one, other in zip(iss["steps"], rtl["steps"], strict=True):
        looked, every = other["counted"].pop("pairs"), one["counted"].pop("pairs")
        assert looked <= every  # an index spares it the others
        assert common(one) == common(other)
        follow(other)
        bits = {(p["tag"], p["area"], *p["parts"]): dict(p["pairs"]) for p in one["probes"]}
        for p in other["probes"]:
            for stored, held in p["pairs"]:
                assert bits[p["tag"], p["area"], *p["parts"]][stored] == held
        assert other["cycle_of"] == sorted(set(other["cycle_of"]))
        for cycle in other["cycle_of"]:
            assert other["clock"] <= cycle < other["clock"] + other["cycles"]
        assert {tuple(e[:3]) for e in other["executed"]} <= {tuple(e[:3]) for e in one["executed"]}
        assert other["cycles"] > 0
        for busy, starved, blocked in other["units"].values():
            assert min(busy, starved, blocked) >= 0
            assert busy + starved + blocked >= other["cycles"]
        # The instructions of a pair come in the order of the full probe, with some skipped.
        whole = ways(one["moments"])
        for at, some in ways(other["moments"]).items():
            for way in some:
                assert any(set(way) <= set(full) and way == sorted(way) for full in whole[at]), at


def ways(moments: list[list[tuple[int, ...]]]) -> dict[tuple[int, int], list[list[int]]]:
    """Returns the addresses that each probe or pair executed, by route tag and area."""
    found: dict[tuple[int, int], list[list[int]]] = defaultdict(list)
    going: dict[tuple[int, int, int], list[int]] = {}
    for tag, area, address, _, place, _ in (event for now in moments for event in now):
        way = going.get((tag, area, place))
        if way is None or address <= way[-1]:
            going[tag, area, place] = way = []
            found[tag, area].append(way)
        way.append(address)
    return found


@pytest.mark.parametrize(
    ("plan", "backend"), [("cost", "golden"), ("cost", "iss"), ("thesis", "iss")]
)
def test_every_counter_and_result_leads_to_the_text(plan: str, backend: str) -> None:
    """In the eight-query set, each counter of a run belongs to a part that comes from the text, and
    the text of each query leads to the counters of its parts and results."""
    c = compilation(EIGHT, Settings(plan=plan))
    found = story(c, rows(c.program.base, 7, 60), backend)
    made = provenance(c)
    for part in found["counters"]:
        spans = [made.parts[one].spans for one in {part, *made.sources(part)}]
        assert any(spans), f"{part} comes from no text"
    results = Counter(found["queries"][query] for s in found["steps"] for query, _ in s["results"])
    assert {q: found["counters"][f"query:{q}"] for q in results} == results
    for query in found["queries"]:
        assert query not in results or len(found["results"][query]["rows"]) <= results[query]
        counted = made.products(f"query:{query}") & set(found["counters"])
        kinds = {part.partition(":")[0] for part in counted}
        assert kinds == ({"instruction", "tag"} if backend == "iss" else set())


def test_the_moments_of_a_step_are_what_was_executed() -> None:
    for step in told(EIGHT, "iss")["steps"]:
        events = Counter(event[:3] for now in step["moments"] for event in now)
        assert events == {tuple(e[:3]): e[3] for e in step["executed"]}
        for some in ways(step["moments"]).values():
            assert all(way == sorted(way) and way[0] == 0 for way in some)


class Clocked(GoldenDevice):
    """A model with a trace, and a clock that every call advances."""

    cycles = 100

    def push(self, batch: Batch) -> Results:
        self.cycles += 7
        return super().push(batch)

    def status(self) -> Status:
        self.cycles += 50
        return super().status()

    def units(self) -> dict[str, UnitCycles]:
        self.cycles += 20
        return {"door": UnitCycles(self.cycles // 2, self.cycles - self.cycles // 2, 0)}

    def executed(self) -> dict[str, Any]:
        # A tuple of S, which meets R within two cycles.
        rows = [(9, 112, 1, 0, 5), (8, 110, 1, 0, 4)] if self.cycles > 250 else []
        names = ("order", "cycle", "tag", "area", "address")
        found = {name: np.array([row[n] for row in rows], int) for n, name in enumerate(names)}
        same = ("slot", "word", "joins", "probe.0", "probe.1")
        none = dict.fromkeys(same, np.zeros(len(rows), int))
        bits = {"carries": np.full(len(rows), 2), "factors": np.full(len(rows), 3)}
        return found | none | bits


def test_a_device_with_a_clock_tells_its_cycles_and_moments() -> None:
    c = compilation(SMALL, Settings())
    device = SteppedDevice(Clocked(c.options.config))
    given = {s.name: tuples_of(s.name, ROWS[s.name], s).rows for s in c.program.base}
    for _ in drive(GraphRun(c, (device,)), given):
        pass
    first, second = device.steps
    assert (first.cycles, second.cycles) == (7, 7)  # without the cycles for reading the counters
    assert not first.moments
    assert second.moments == [[(1, 0, 4, 0, 0, 0)], [(1, 0, 5, 0, 0, 0)]]
    (probe,) = second.probes
    assert (probe.tag, probe.area, probe.parts[:2], probe.pairs) == (1, 0, [-1, 0], [(0, 3)])
    assert second.cycle_of == [second.clock + (n - second.clock) % (1 << 32) for n in (110, 112)]
    assert sorted(second.executed) == [(1, 0, 4, 1), (1, 0, 5, 1)]
    assert second.clock is not None
    assert first.clock is not None
    assert second.clock > first.clock
    assert sum(first.units["door"]) >= 7


ROWS = {"R": {"ts": [1], "a": [5]}, "S": {"ts": [3], "d": [5]}}


def test_the_results_are_those_of_a_run() -> None:
    c = compilation(SMALL, Settings())
    given = rows(c.program.base, 3, 80)
    found = story(c, given, "iss")
    expected = ss.run(SMALL, R=given["R"], S=given["S"])["q"].rows()
    assert sorted(map(tuple, found["results"]["q"]["rows"])) == sorted(expected)
    assert sum(len(step["results"]) for step in found["steps"]) == len(expected) > 0


def test_windows_are_those_of_the_definition() -> None:
    """After each step a window holds the rows that a later row can still meet, and no dropped
    ones."""
    found = told(SMALL, "golden")
    kept: dict[int, list[int]] = {0: [], 1: []}
    for step in found["steps"]:
        table = found["rows"][found["slots"][step["stream"]]["stream"]]
        row = dict(zip(table["columns"], table["rows"][step["sequence"]], strict=True))
        assert row["ts"] == step["ts"]
        if step["stream"] == 1 or row["a"] > 2:
            kept[step["stream"]].append(step["ts"])
            assert not step["counted"]["dropped"]
        else:
            assert step["counted"]["dropped"] == 1
        alive = {slot: [t for t in times if step["ts"] - t <= 10] for slot, times in kept.items()}
        assert step["stored"] == [len(alive[0]), len(alive[1])], step


def test_a_run_ends_when_its_client_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """No query takes the end for a failure of its own."""
    checked = iter(range(5))

    def check() -> None:
        if next(checked, None) is None:
            raise Unwanted

    monkeypatch.setattr("seustream.studio.machine.check_wanted", check)
    with pytest.raises(Unwanted):
        told(SMALL, "golden")


def test_what_cannot_be_shown_is_refused() -> None:
    with pytest.raises(UserError, match="no query joins"):
        told("CREATE STREAM R (a int); SELECT a FROM R WINDOW NOW;", "golden")
    with pytest.raises(UserError, match="no device 'engine' to watch"):
        told(SMALL, "engine")
    c = compilation(SMALL, Settings())
    with pytest.raises(InputError, match="no rows for stream S"):
        story(c, {"R": {"ts": [1], "a": [2]}}, "golden")
    many = {"ts": list(range(2001)), "a": [0] * 2001}
    with pytest.raises(InputError, match="2,001 rows"):
        story(c, {"R": many, "S": {"ts": [1], "d": [2]}}, "golden")
