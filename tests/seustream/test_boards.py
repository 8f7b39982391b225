"""Boards by their names and addresses: an invalid one is refused before anything is read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from seustream.boards import (
    SHAPES,
    board_device,
    board_named,
    check_board,
    constraints_of,
    is_board,
)
from seustream.cli import main
from seustream.cosim.verilated.build import BuildFailed
from seustream.errors import UserError
from seustream.hdl.boards.board import BOARDS
from seustream.hdl.config import CONFIGURATIONS


@pytest.mark.parametrize(
    ("backend", "said"),
    [
        ("virtual:ulx4s", "there is no board 'ulx4s'"),
        ("virtual:", "there is no board ''"),
        ("serial:", "want serial:///PORT"),
        ("serial:///dev/none?baud=x", "baud x: want 1200 to"),
        ("serial:///dev/none", "/dev/none: "),
        ("udp://", "want udp://HOST:PORT"),
        ("udp://nowhere.invalid", "udp://nowhere.invalid:21333: "),
        ("usb:", "want usb:// or usb://BUS:DEVICE"),
        ("usb://4", "want usb:// or usb://BUS:DEVICE"),
        ("virtual:udb", "there is no board 'udb'"),
    ],
)
def test_addresses_of_boards(
    backend: str, said: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("serial", reason="nox -s tests installs it")
    Path("q.xsql").write_text(
        "CREATE STREAM R (a int);\nCREATE STREAM S (d int);\n"
        "SELECT * FROM R, S WHERE R.a = S.d WINDOW RANGE 10;\n"
    )
    for name, column in (("r", "a"), ("s", "d")):
        Path(f"{name}.csv").write_text(f"ts,{column}\n1,1\n")
    inputs = ["--input", "R=r.csv", "--input", "S=s.csv"]
    assert main(["run", "q.xsql", *inputs, "--backend", backend, "-o", "out"]) == 2
    assert said in capsys.readouterr().err
    assert not Path("out").exists()


def test_a_board_has_its_name_and_its_constraints() -> None:
    for name, board in BOARDS.items():
        assert board_named(name) is board
        assert list(constraints_of(board).iterdir())
    with pytest.raises(UserError) as caught:
        board_named("ulx3")
    assert caught.value.hint == "did you mean ulx3s?"


def test_an_address_of_a_board_is_none_of_a_bridge() -> None:
    for address in (*SHAPES, "serial:/dev/ttyUSB0", "virtual:udp", "virtual:usb", "usb://1:4"):
        assert is_board(address)
    for other in ("golden", "grpc://serial", "serial", "udpx://h"):
        assert not is_board(other)


@pytest.mark.parametrize("lacking", ["verilator", "a C++ compiler"])
def test_a_netlist_is_not_made_where_it_cannot_run(
    lacking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes minutes."""
    from seustream.cosim.boards import build, netlist

    def made(*_: object) -> Path:
        raise AssertionError("a netlist")

    monkeypatch.setattr(netlist, "netlist", made)
    if lacking == "verilator":
        monkeypatch.setattr(build, "missing", lambda: ["verilator"])
    else:
        monkeypatch.setattr(build, "missing", list)
        monkeypatch.setattr(build, "compiler", lambda: None)
    with (
        pytest.raises(BuildFailed, match=f"a simulated board needs {re.escape(lacking)}"),
        board_device("virtual:ulx3s", CONFIGURATIONS["tiny"]),
    ):
        pass


def test_a_misspelt_virtual_board_is_near_one_that_is_there() -> None:
    with pytest.raises(UserError) as caught:
        check_board("virtual:upd")
    assert caught.value.hint == "did you mean udp?"
