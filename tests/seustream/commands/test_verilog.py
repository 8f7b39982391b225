"""`seustream verilog`: refused requests and written files. `nox -s verilog` judges the Verilog
itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from seustream.cli import main
from seustream.cosim.export import core, estimate
from seustream.hdl.config import DeviceConfig
from tests.docs.blocks import ROOT


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)

    def verilog(config: DeviceConfig) -> str:
        return f"module {config.name};\n"

    monkeypatch.setattr(core, "INTERFACES", dict.fromkeys(core.INTERFACES, verilog))
    return tmp_path


AXI = {
    "seustream.core", "seustream.h", "seustream.rdl", "seustream.v", "test_seustream.py", "vectors.json",
}  # fmt: skip


@pytest.mark.parametrize(
    ("interface", "want"),
    [("axi", AXI), ("stream", {"seustream.core", "seustream.v", "seustream_layout.vh"})],
)
def test_what_is_written(
    interface: str, want: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--config", "tiny", "--interface", interface]
    assert main(["verilog", *given, "-o", "a/core"]) == 0
    assert {path.name for path in Path("a/core").iterdir()} == want
    assert capsys.readouterr().out.split() == sorted(f"a/core/{name}" for name in want)
    assert Path("a/core/seustream.v").read_text() == "module tiny;\n"


@pytest.mark.parametrize(
    ("arguments", "said", "hint"),
    [
        (["--config", "tinny", "-o", "new"], "there is no configuration 'tinny'", "did you mean tiny?"),
        (["--interface", "axy", "-o", "new"], "--interface axy: there is no such choice", "axi, stream"),
        (["--estimate", "xc9", "-o", "new"], "--estimate xc9: there is no such choice", "xc7, ecp5, ice40"),
        ([], "the following arguments are required: -o", "seustream verilog --help"),
        (["-o", "full"], "-o full: not empty", "not there yet"),
        (["-o", "file"], "-o file: not a folder", "not there yet"),
        (["--config", "none.json", "-o", "new"], "configuration none has no room for a join", ""),
    ],
)  # fmt: skip
def test_what_is_refused_leaves_nothing(
    arguments: list[str], said: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("full").mkdir()
    Path("full/mine").write_text("")
    Path("file").write_text("")
    none = '{"name": "none", "streams": 2, "tags": 3, "instructions": 1, "queries": 1}'
    Path("none.json").write_text(none)
    try:
        status = main(["verilog", *arguments])
    except SystemExit as ended:
        status = int(str(ended.code))
    assert status == 2
    error = capsys.readouterr().err
    assert said in error
    assert hint in error
    assert {path.name for path in Path().iterdir()} == {"full", "file", "none.json"}
    assert [path.name for path in Path("full").iterdir()] == ["mine"]


def test_what_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(core, "tool_version", lambda name: "")
    assert main(["verilog", "-o", "new"]) == 2
    error = capsys.readouterr().err
    assert "Verilog needs amaranth" in error
    assert "seustream[rtl]" in error
    assert not Path("new").exists()


def test_an_estimate_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(estimate, "estimate", lambda *of: {"LUT": 4711, "flip-flop": 12})
    given = ["--interface", "stream", "--config", "tiny", "--estimate", "xc7"]
    assert main(["verilog", *given, "-o", "core"]) == 0
    out = capsys.readouterr().out
    assert "Xilinx 7 series, before placing" in out
    assert "4,711" in out or "4711" in out


def test_an_end_in_the_middle_says_one_line(tmp_path: Path) -> None:
    """Amaranth would warn of each part that was made and not used yet."""
    code = (
        "import sys\nfrom amaranth import Module\nfrom seustream import cli\n"
        "from seustream.commands import verilog\n"
        "def run(arguments):\n    half_done = [Module() for _ in range(9)]\n    raise KeyboardInterrupt\n"
        "verilog.run = run\nsys.exit(cli.main(['verilog', '-o', 'out']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stderr) == (130, "seustream: interrupted\n")
