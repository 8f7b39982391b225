"""`seustream explain`: every stage and format, one query, and requests that do not fit."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from seustream.cli import main
from seustream.compiler.pipeline import STAGES
from tests.seustream.texts import JOIN, JOINED, STREAMS, TICKS, TWICE, names


@pytest.fixture(autouse=True)
def inputs(here: Path) -> None:
    (here / "q.xsql").write_text(STREAMS + JOIN)
    (here / "t.csv").write_text("ts,type,x\n1,A,1\n2,B,2\n3,B,3\n4,C,4\n")


@pytest.mark.parametrize("stage", STAGES)
def test_explain_every_stage(stage: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "q.xsql", "--stage", stage]) == 0
    assert capfd.readouterr().out
    assert main(["explain", "q.xsql", "--stage", stage, "--format", "json"]) == 0
    json.loads(capfd.readouterr().out)


def test_explain(capfd: pytest.CaptureFixture[str]) -> None:
    Path("q.xsql").write_text(JOINED + TWICE)
    assert main(["explain", "q.xsql"]) == 0
    shown = capfd.readouterr().out
    assert "pattern twice" in shown
    assert "x.k = y.k" in shown
    assert main(["explain", "q.xsql", "--query", "twice", "--format", "json"]) == 0
    (facts,) = json.loads(capfd.readouterr().out)
    assert facts["engine"] == "columns"
    for stage in ("automaton", "lists"):
        assert main(["explain", "q.xsql", "--stage", stage, "--format", "svg"]) == 0
        ElementTree.fromstring(capfd.readouterr().out)
    assert main(["explain", "q.xsql", "--stage", "routes", "--query", "twice"]) == 2


@pytest.mark.parametrize(
    ("arguments", "device"),
    [
        ([], False),
        (["--backend", "engine"], False),
        (["--devices", "0"], False),
        (["--devices", "1"], True),
        (["--backend", "golden"], True),
        (["--backend", "serial:///dev/none"], True),
        (["--fit", "strict"], True),
    ],
)
def test_the_plan_is_that_of_run(
    arguments: list[str], device: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "q.xsql", *arguments]) == 0
    shown = capfd.readouterr().out
    assert ("the engine joins: no device is asked for" in shown) is not device
    assert ("── Routes ──" in shown) is device


def test_a_default_backend_is_that_of_explain_too(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEUSTREAM_BACKEND", "golden")
    assert main(["explain", "q.xsql"]) == 0
    assert "── Routes ──" in capfd.readouterr().out
    assert main(["explain", "q.xsql", "--backend", "gold"]) == 2
    assert "there is no backend 'gold'" in capfd.readouterr().err


def test_explain_with_a_sample(capfd: pytest.CaptureFixture[str]) -> None:
    Path("q.xsql").write_text(TICKS + "PATTERN A; B; C WHERE c.x - a.x > 0 WITHIN 1 s RETURN *;")
    assert main(["explain", "q.xsql", "--input", "t=t.csv", "--format", "json"]) == 0
    (facts,) = json.loads(capfd.readouterr().out)
    assert facts["engine"] == "columns"
    assert sorted(facts["lists"]["order"]) == ["A", "B", "C"]
    Path("none.csv").write_text(Path("t.csv").read_text().partition("\n")[0] + "\n")
    Path("k.xsql").write_text(TICKS + "PATTERN A; B PARTITION BY x WITHIN 1 s RETURN *;")
    assert main(["explain", "k.xsql", "--input", "t=none.csv"]) == 0  # which shows nothing
    assert main(["explain", "q.xsql", "--input", "u=t.csv"]) == 2
    assert main(["explain", "q.xsql", "--input", "t=nope.csv"]) == 2
    Path("q.xsql").write_text(TICKS + "SELECT x FROM t WINDOW 1;")
    assert main(["explain", "q.xsql", "--input", "t=t.csv"]) == 2
    assert "--input has no use here" in capfd.readouterr().err


def test_files_describe_the_streams_that_a_text_does_not_create(
    capfd: pytest.CaptureFixture[str],
) -> None:
    table = "CREATE TABLE k (type varchar, n int) WITH (path = 'k.csv');"
    for text in ("SELECT x FROM t", f"{table} SELECT x, n FROM t, k WHERE t.type = k.type"):
        assert main(["explain", "-c", text, "--input", "t=t.csv"]) == 0
        assert "t" in capfd.readouterr().out
    assert main(["explain", "-c", f"{table} SELECT x FROM t", "--input", "u=t.csv"]) == 2
    assert "there is no stream t" in capfd.readouterr().err


def test_explain_shows_patterns_whose_results_queries_read(
    capfd: pytest.CaptureFixture[str],
) -> None:
    text = TICKS + "CREATE STREAM bs AS PATTERN B WITHIN 1 s RETURN b.x; SELECT x FROM bs WINDOW 1;"
    Path("q.xsql").write_text(text)
    assert main(["explain", "q.xsql"]) == 0
    assert "pattern bs" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--stage", "tree", "--query", "q9"], "there is no query 'q9'"),
        (["--record", "r.json"], "--record is for --stage sites"),
        (["--stage", "sites", "--record", "none.json"], "none.json: cannot be read"),
        (["--format", "json", "-o", "q.xsql"], "q.xsql would be overwritten"),
        (["--input", "R=r.csv"], "--input has no use here"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_written(
    arguments: list[str], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    before = names()
    assert main(["explain", "q.xsql", *arguments]) == 2
    out, err = capfd.readouterr()
    assert said in err
    assert (out, names(), Path("q.xsql").read_text()) == ("", before, STREAMS + JOIN)


def test_what_is_written_is_what_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "q.xsql", "--query", "q0"]) == 0
    shown = capfd.readouterr().out
    assert main(["explain", "q.xsql", "--query", "q0", "-o", "made/q.txt"]) == 0
    assert Path("made/q.txt").read_text() == shown
    assert capfd.readouterr().out == ""
