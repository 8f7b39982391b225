"""The summary of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seustream.cli import main


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.csv").write_text("ts,a\n1,1\n2,2\n3,3\n")


def test_the_summary_as_json(capfd: pytest.CaptureFixture[str]) -> None:
    text = "SELECT a, 1 / (a - 2) AS x FROM R WINDOW NOW"
    assert main(["run", "-c", text, "--input", "R=r.csv", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert (found["results"], found["tuples"]) == ({"q0": 3}, {"R": 3})
    (fault,) = found["faults"]["q0"]
    assert fault["rows"] == 1
    assert "division by zero" in fault["place"]


def test_streams_that_never_overlap_get_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    Path("s.csv").write_text("ts,a\n1767600030000,1\n")
    join = "SELECT x.a FROM R x, S y WHERE x.a = y.a WINDOW RANGE 1 hour"
    assert main(["run", "-c", join, "--input", "R=r.csv", "--input", "S=s.csv"]) == 0
    assert "q0 has no results: R ends at 3 ms, before S begins at 1,767,600,030,000 ms" in (
        capfd.readouterr().err
    )


@pytest.mark.parametrize("window", ["RANGE 6", "RANGE 5, RANGE 6", "UNBOUNDED", "ROWS 3"])
def test_streams_that_a_window_spans_get_none(
    capfd: pytest.CaptureFixture[str], window: str
) -> None:
    Path("s.csv").write_text("ts,a\n9,7\n")
    join = f"SELECT x.a FROM R x, S y WHERE x.a = y.a WINDOW {window}"
    assert main(["run", "-c", join, "--input", "R=r.csv", "--input", "S=s.csv"]) == 0
    assert "has no results" not in capfd.readouterr().err
    if window == "RANGE 6":
        join = join.replace("6", "5")
        assert main(["run", "-c", join, "--input", "R=r.csv", "--input", "S=s.csv"]) == 0
        assert "q0 has no results: R ends at 3 ms" in capfd.readouterr().err


def test_a_stream_whose_results_are_read_gets_none(capfd: pytest.CaptureFixture[str]) -> None:
    """Its results are not counted, so nobody knows whether there are any."""
    Path("s.csv").write_text("ts,a\n9,1\n")
    derived = "CREATE STREAM D AS SELECT x.a FROM R x, S y WHERE x.a = y.a WINDOW RANGE 1 hour;"
    text = f"CREATE STREAM R (a int); CREATE STREAM S (a int); {derived} SELECT a FROM D"
    assert main(["run", "-c", text, "--input", "R=r.csv", "--input", "S=s.csv"]) == 0
    assert "has no results" not in capfd.readouterr().err


def test_losses_are_told_without_a_summary(capfd: pytest.CaptureFixture[str]) -> None:
    Path("r.csv").write_text("ts,a\n3,1\n2,2\n4,3\n")
    text = "SELECT a, 1 / (a - 3) AS x FROM R WINDOW NOW"
    given = ["run", "-c", text, "--input", "R=r.csv", "-o", "-"]
    assert main([*given, "--quiet"]) == 0
    late, fault = capfd.readouterr().err.splitlines()
    assert late.startswith("warning: stream R: 1 late tuple, not processed")
    assert fault.startswith("warning: 1 fault in q0: division by zero")
    assert main(given) == 0
    assert [late, fault] == [
        line for line in capfd.readouterr().err.splitlines() if line.startswith("warning")
    ]
