"""Saves a driver's state and resumes it between any two releases: the results continue as if
nothing had happened, on any device."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.errors import CompileError
from seustream.compiler.pipeline import Compilation, Options, compile_text
from seustream.engine.graph import GraphRun
from seustream.engine.host.stages import SoftwareJoin
from seustream.hdl.config import CONFIGURATIONS
from tests.engine.host.running import DEVICES
from tests.engine.twostreams import STREAMS, random_rows
from tests.system.differential import compile_case
from tests.system.generate import generate

LATER = {
    "groups of a stream": "SELECT a, count(*), sum(b) FROM R GROUP BY a WINDOW RANGE 9;"
    "SELECT count(*), min(b) FROM R WHERE b > 3 WINDOW ROWS 5;",
    "groups of a join": "SELECT a, count(*), max(e) FROM R, S WHERE a = d GROUP BY a"
    " WINDOW RANGE 9, ROWS 6; SELECT count(*) FROM R, S WHERE a = d WINDOW ROWS 3, UNBOUNDED;",
    "derived streams": """CREATE STREAM J AS SELECT a, e FROM R, S WHERE a = d WINDOW RANGE 5;
    CREATE STREAM G AS SELECT a, count(*) AS n FROM J GROUP BY a WINDOW ROWS 20;
    SELECT J.e, R.b FROM J, R WHERE J.a = R.a WINDOW RANGE 6, ROWS 4;
    SELECT G.n, S.e FROM G, S WHERE G.a = S.d WINDOW ROWS 3, RANGE 9;
    SELECT max(n), count(*) FROM G WINDOW RANGE 15;
    SELECT R.a, sum(G.n) FROM G, R WHERE G.a = R.a GROUP BY R.a WINDOW ROWS 7, RANGE 8;""",
}

Answers = dict[str, list[pa.Table]]


@pytest.mark.parametrize("seed", range(60))
def test_resumed_drivers_go_on(seed: int) -> None:
    print(f"seed {seed}")
    case = generate(seed)
    try:
        compilation = compile_case(case, case.plan)
    except CompileError:
        pytest.skip("does not fit a device")

    def driver(chance: random.Random | None) -> GraphRun:
        device = DEVICES["golden" if chance is None else chance.choice(sorted(DEVICES))]
        return GraphRun(compilation, device(compilation.options.config), slack=case.slack)

    def run(chance: random.Random | None) -> tuple[dict[str, pa.Table], dict[str, object]]:
        """Pushes everything in pieces; with `chance`, through several drivers one after the
        other."""
        pieces = random.Random(seed)
        one, found = driver(chance), Answers()
        sent = dict.fromkeys((stream.name for stream in case.streams), 0)
        for _ in range(25):
            stream = pieces.choice(case.streams)
            size = pieces.randint(0, 8)
            one.push(stream.name, stream.arrivals.slice(sent[stream.name], size))
            sent[stream.name] += size
            for name, rows in one.advance():
                found.setdefault(name, []).append(rows)
            if chance is not None and chance.random() < 0.3:
                state, one = one.state(), driver(chance)
                one.resume(state)
        for stream in case.streams:
            one.push(stream.name, stream.arrivals.slice(sent[stream.name]))
        for name, rows in one.finish():
            found.setdefault(name, []).append(rows)
        report = asdict(one.report)
        counted = {name: report[name] for name in ("taken", "late", "results")}
        counted["in_software"] = report["join"]["in_software"]
        return {name: pa.concat_tables(parts) for name, parts in found.items()}, counted

    want, got = run(None), run(random.Random(seed + 1))
    assert got[0].keys() == want[0].keys()
    for name, rows in want[0].items():
        assert got[0][name].equals(rows), name
    assert got[1] == want[1]


def in_pieces(
    compilations: Sequence[Compilation], data: dict[str, pa.Table], seed: int, resumed: bool
) -> tuple[dict[str, list[tuple[object, ...]]], int]:
    """Returns all results of streams pushed in small pieces, through one driver or several in turn,
    each of one of the compilations; and the number of drivers."""
    chance, pieces, drivers = random.Random(seed + 1), random.Random(seed), 1

    def driver() -> GraphRun:
        compilation = chance.choice(compilations)
        devices = [DEVICES["golden"](each.options.config) for each in compilation.devices]
        return GraphRun(compilation, devices, slice_rows=16)

    one, sent = driver(), dict.fromkeys(data, 0)
    found: dict[str, list[tuple[object, ...]]] = {}

    def take(answers: object) -> None:
        for name, table in answers:  # type: ignore[attr-defined]
            columns = (column.to_pylist() for column in table.columns)
            found.setdefault(name, []).extend(zip(*columns, strict=True))

    while any(sent[name] < table.num_rows for name, table in data.items()):
        name, size = pieces.choice(sorted(data)), pieces.randint(0, 12)
        one.push(name, data[name].slice(sent[name], size))
        sent[name] += size
        take(one.advance())
        if resumed and chance.random() < 0.3:
            state, one, drivers = one.state(), driver(), drivers + 1
            one.resume(state)
    take(one.finish())
    return found, drivers


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("what", LATER)
def test_groups_and_derived_streams_go_on(what: str, seed: int) -> None:
    """Covers members of groups, rows of derived streams and waiting rows, at every stage."""
    print(f"seed {seed}")
    compilation = compile_text(STREAMS + LATER[what])
    data = random_rows(150, np.random.default_rng(seed))
    want, _ = in_pieces([compilation], data, seed, resumed=False)
    got, drivers = in_pieces([compilation], data, seed, resumed=True)
    assert drivers > 3
    assert len(want) == len(compilation.program.asked)
    assert got == want


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("what", LATER)
def test_windows_and_groups_move_between_devices_and_the_engine(what: str, seed: int) -> None:
    """The host counts rows of a window from the first it keeps, which differs between places."""
    print(f"seed {seed}")
    text = STREAMS + LATER[what] + "SELECT R.a, e FROM R, S WHERE b = e WINDOW ROWS 40, RANGE 30;"
    one = replace(CONFIGURATIONS["default"], queries=1)
    compilations = [compile_text(text, options=Options(one, devices=n)) for n in (0, 1, 2)]
    assert [len(c.devices) for c in compilations] == [
        0,
        1,
        2,
    ]
    data = random_rows(150, np.random.default_rng(seed))
    want, _ = in_pieces([compile_text(text)], data, seed, resumed=False)
    got, drivers = in_pieces(compilations, data, seed, resumed=True)
    assert drivers > 3
    assert got == want


def test_what_is_defined_anew_begins_anew() -> None:
    """Groups of another text, and derived streams of other columns, are not taken over."""
    data = random_rows(60, np.random.default_rng(1))

    def driver(text: str) -> GraphRun:
        compilation = compile_text(STREAMS + text)
        return GraphRun(compilation, DEVICES["golden"](compilation.options.config))

    def live(run: GraphRun) -> int:
        join = run.operators["software join 0"]
        assert isinstance(join, SoftwareJoin)
        return join.groupings["q"].live

    one = driver("REGISTER QUERY q AS SELECT a, count(*) FROM R GROUP BY a WINDOW UNBOUNDED;")
    one.push("R", data["R"])
    one.end("S")
    for _ in one.advance():
        pass
    members = live(one)
    assert members > 50
    other = driver("REGISTER QUERY q AS SELECT b, count(*) FROM R GROUP BY b WINDOW UNBOUNDED;")
    other.resume(one.state())
    assert live(other) == 0
    same = driver("REGISTER QUERY q AS SELECT a, count(*) FROM R GROUP BY a WINDOW UNBOUNDED;")
    same.resume(one.state())
    assert live(same) == members
