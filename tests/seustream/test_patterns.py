"""Patterns on the command line: beside X-SQL, over files, joins and each other; mistakes;
pictures."""

from __future__ import annotations

from pathlib import Path

import pytest

from seustream.cli import main
from tests.seustream.texts import JOINED, TICKS, TWICE

STREAMS = "CREATE STREAM r (k int, v int);\nCREATE STREAM s (k int, w int, kind varchar);\n"
R = "ts,k,v\n1000,1,5\n2000,2,6\n3000,1,7\n"
S = "ts,k,w,kind\n1500,1,5,up\n2500,2,6,up\n3500,1,9,up\n"
INPUTS = ("--input", "r=r.csv", "--input", "s=s.csv")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.csv").write_text(R)
    Path("s.csv").write_text(S)
    Path("t.csv").write_text("ts,type,x\n1,A,1\n2,B,2\n3,B,3\n4,C,4\n")


def run(text: str, *options: str) -> int:
    Path("q.xsql").write_text(text)
    return main(["run", "q.xsql", "-o", "out", *options])


def test_a_pattern_over_a_file() -> None:
    text = TICKS + "PATTERN A; B+ bs; C WITHIN 1 s RETURN A, bs.x, count(bs) AS n, c.ts;"
    assert run(text, "--input", "t=t.csv") == 0
    assert Path("out/q0.csv").read_text() == 'a_ts,a_type,a_x,x,n,ts\n1,A,1,"[2, 3]",2,4\n'


@pytest.mark.parametrize("engine", ["columns", "optiseq", "nfa"])
def test_every_engine_gives_the_same_file(engine: str) -> None:
    text = TICKS + "PATTERN A; B b WHERE b.x > a.x WITHIN 1 s RETURN b.x;"
    assert run(text, "--input", "t=t.csv", "--engine", engine, "--format", "jsonl") == 0
    assert Path("out/q0.jsonl").read_text() == '{"x": 2}\n{"x": 3}\n'


@pytest.mark.parametrize("backend", ["golden", "iss"])
def test_a_pattern_over_a_join_of_the_device(backend: str) -> None:
    """The join is compiled for the device; only results that were asked for are written."""
    assert run(JOINED + TWICE, *INPUTS, "--backend", backend) == 0
    assert sorted(path.name for path in Path("out").iterdir()) == ["twice.csv"]
    assert Path("out/twice.csv").read_text() == "k,w,w2,ts\n" + "1,5,9,3500\n" * 4


def test_patterns_beside_queries_and_over_patterns() -> None:
    text = (
        JOINED
        + TWICE
        + "CREATE STREAM ups AS PATTERN up x FROM rs TYPE BY kind WITHIN 1 s RETURN x.k, x.w;\n"
        "PATTERN ANY a; ANY b FROM ups WHERE b.w > a.w WITHIN 1 min RETURN a.w, b.ts;\n"
        "SELECT * FROM r, s WHERE r.k = s.k WINDOW RANGE 5 s"
    )
    assert run(text, *INPUTS) == 0
    names = sorted(path.name for path in Path("out").iterdir())
    assert names == ["q1.csv", "q2.csv", "twice.csv"]
    rows = Path("out/q1.csv").read_text().splitlines()
    assert rows[0] == "w,ts"
    assert set(rows[1:]) == {"5,2500", "5,3500", "6,3500"}


def test_queries_over_the_results_of_patterns() -> None:
    """By themselves, grouped, joined with a base stream and with themselves: as over a file with
    those rows."""
    pattern = "PATTERN up x; up y FROM {} TYPE BY kind WITHIN 1 min RETURN x.k, x.w, y.w AS w2"
    queries = (
        "REGISTER QUERY alone AS SELECT k, w2 - w AS by FROM {0} WHERE w2 > w WINDOW 1;",
        "REGISTER QUERY grouped AS SELECT k, count(*) AS n FROM {0} GROUP BY k WINDOW RANGE 1 h;",
        "REGISTER QUERY joined AS SELECT p.w2, r.v FROM {0} p, r WHERE p.k = r.k WINDOW RANGE 2 s;",
        "REGISTER QUERY twice AS SELECT a.w2, b.w2 AS c FROM {0} a, {0} b"
        " WHERE a.w < b.w WINDOW RANGE 9 s;",
    )
    for source in ("s", "rs"):
        before = JOINED if source == "rs" else STREAMS
        made = before + f"CREATE STREAM ups AS {pattern.format(source)};"
        text = made + "\n".join(q.format("ups") for q in queries)
        assert run(text, *INPUTS) == 0
        found = {p.stem: p.read_text() for p in Path("out").iterdir()}
        assert set(found) == {"alone", "grouped", "joined", "twice"}
        # The stream as a file is the input of a second run.
        alone = before + f"REGISTER QUERY ups AS {pattern.format(source)}, y.ts AS at;"
        given = INPUTS if source == "rs" else INPUTS[2:]
        assert run(alone, *given, "--quiet") == 0
        rows = [line.split(",") for line in Path("out/ups.csv").read_text().splitlines()[1:]]
        assert len(rows) > 1
        lines = [",".join([row[3], *row[:3]]) for row in rows]
        Path("ups.csv").write_text("\n".join(["ts,k,w,w2", *lines]) + "\n")
        streams = STREAMS + "CREATE STREAM ups (k int, w int, w2 int);"
        again = streams + "\n".join(q.format("ups") for q in queries)
        assert run(again, *INPUTS[:2], "--input", "ups=ups.csv") == 0
        for name, content in found.items():
            want = Path(f"out/{name}.csv").read_text()
            assert sorted(content.splitlines()) == sorted(want.splitlines()), name
            assert len(content.splitlines()) > 1, name
        for path in Path("out").iterdir():
            path.unlink()


def test_patterns_and_queries_in_turn() -> None:
    """A pattern over a query over a pattern over a join, and a query over that."""
    text = (
        JOINED
        + "CREATE STREAM ups AS PATTERN up x FROM rs TYPE BY kind WITHIN 1 s RETURN x.k, x.w;\n"
        "CREATE STREAM big AS SELECT k, w FROM ups WHERE w > 5 WINDOW 1;\n"
        "CREATE STREAM pairs AS PATTERN ANY a; ANY b FROM big WITHIN 1 min RETURN a.w, b.w AS w2;\n"
        "REGISTER QUERY last AS SELECT w2 FROM pairs WHERE w < w2 WINDOW 1;\n"
    )
    assert run(text, *INPUTS) == 0
    assert [p.name for p in Path("out").iterdir()] == ["last.csv"]
    assert Path("out/last.csv").read_text() == "w2,ts_oldest,ts_newest\n" + "9,3500,3500\n" * 2


def test_a_pattern_that_waits_for_the_end_loses_nothing_to_a_join() -> None:
    """Its matches are as old as their last event, so r must not have moved past them."""
    text = (
        STREAMS
        + "CREATE STREAM last AS PATTERN ANY a; !ANY b FROM s WHERE b.k = a.k RETURN a.k, a.w;"
        "SELECT l.w, r.v FROM last l, r WHERE l.k = r.k WINDOW RANGE 1 s;"
    )
    assert run(text, *INPUTS) == 0
    rows = Path("out/q0.csv").read_text().splitlines()
    assert sorted(rows[1:]) == ["6,6,2000,2500", "9,7,3000,3500"]


def test_a_query_may_be_called_like_a_patterns_stream() -> None:
    text = TICKS + (
        "CREATE STREAM bs AS PATTERN B WITHIN 1 s RETURN b.x;"
        "REGISTER QUERY bs AS SELECT x FROM bs WHERE x > 2 WINDOW 1;"
    )
    assert run(text, "--input", "t=t.csv") == 0
    assert Path("out/bs.csv").read_text() == "x,ts_oldest,ts_newest\n3,3,3\n"


def test_match_recognize_and_parameters() -> None:
    text = TICKS + (
        "SELECT n FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(U.x) AS n"
        " PATTERN (S U+) DEFINE U AS U.x > PREV(U.x) AND U.x < :most);"
    )
    assert run(text, "--input", "t=t.csv", "--param", "most=4") == 0
    assert Path("out/q0.csv").read_text() == "n\n2\n"


def test_late_rows_are_counted_and_kept(capfd: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_text("ts,type,x\n1,A,1\n5,B,2\n3,B,3\n6,B,4\n")
    text = TICKS + "PATTERN A; B b WITHIN 1 s RETURN b.x;"
    assert run(text, "--input", "t=t.csv", "--late", "late") == 0
    assert Path("out/q0.csv").read_text() == "x\n2\n4\n"
    assert Path("late/t.csv").read_text() == "ts,type,x\n3,B,3\n"
    assert "stream t: 1 late tuple" in capfd.readouterr().err
    assert run(text, "--input", "t=t.csv", "--slack", "2") == 0
    assert Path("out/q0.csv").read_text() == "x\n3\n2\n4\n"


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("PATTERN A;;B RETURN *", (), "q.xsql:2:11: P001"),
        ("PATTERN A WHERE a.y > 1 RETURN *;", (), "P003 stream t has no attribute y"),
        ("PATTERN A WHERE a.x > :p RETURN *;", (), "P018"),
        ("PATTERN A RETURN *;", ("--param", "p"), "want NAME=VALUE"),
        ("PATTERN A RETURN *;", ("--engine", "warp"), "there is no engine 'warp'"),
        ("PATTERN A; B+; C RETURN *;", ("--engine", "nfa"), "P016"),
        ("PATTERN A RETURN *;", ("--trace", "q1"), "there is no pattern 'q1'"),
        ("CREATE STREAM u AS PATTERN A+ k; B RETURN k.x;", (), "a list in column x"),
        ("PATTERN A RETURN *; DROP STREAM t;", (), "used by query q0"),
    ],
)
def test_mistakes(
    text: str, options: tuple[str, ...], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(TICKS + text, "--input", "t=t.csv", *options) == 2
    assert said in capfd.readouterr().err
    assert not Path("out").exists()


def test_a_semicolon_ends_a_pattern_without_return(capfd: pytest.CaptureFixture[str]) -> None:
    """The next statement is parsed, and its errors reported, separately."""
    assert run(TICKS + "PATTERN A; B;\nSELECT nope FROM t WINDOW 1;", "--input", "t=t.csv") == 2
    err = capfd.readouterr().err
    assert "P001" in err
    assert "unknown" in err or "nope" in err


def test_trace(capfd: pytest.CaptureFixture[str]) -> None:
    text = TICKS + "PATTERN A; B WITHIN 1 s USING NEXT RETURN *;"
    for versions in ("per_take", "per_state"):
        assert run(text, "--input", "t=t.csv", "--trace", "q0", "--versions", versions) == 0
        shown = capfd.readouterr().out
        assert "entry a.A#0@1: refs 1, edges −@1" in shown
        assert shown.endswith("   A#0@1 | B#1@2\n")


def test_requests_in_the_text(capfd: pytest.CaptureFixture[str]) -> None:
    assert (
        run(TICKS + "EXPLAIN PATTERN A WITHIN 1 s RETURN *; SHOW QUERIES", "--input", "t=t.csv")
        == 0
    )
    err = capfd.readouterr().err
    assert "pattern q0" in err
    assert "query q0: PATTERN A WITHIN 1 s RETURN *" in err


def test_trace_of_lists_by_key(capfd: pytest.CaptureFixture[str]) -> None:
    text = TICKS + "PATTERN ANY a; ANY b PARTITION BY x WITHIN 1 s RETURN *;"
    Path("t.csv").write_text("ts,type,x\n1,A,1\n2,B,2\n3,C,1\n")
    assert run(text, "--input", "t=t.csv", "--trace", "q0", "--engine", "optiseq") == 0
    shown = capfd.readouterr().out
    assert "── x=2: B#1@2 x=2" in shown
    assert shown.endswith("── matches\n   A#0@1 | C#2@3\n")
    assert run(text, "--input", "t=t.csv", "--trace", "q0", "--engine", "columns") == 2
    assert "there is no trace of engine columns" in capfd.readouterr().err


@pytest.mark.parametrize("between", [False, True])
def test_a_time_no_window_can_be_added_to_is_told(
    capsys: pytest.CaptureFixture[str], between: bool
) -> None:
    """By itself, and as a stage whose results a query reads."""
    Path("t.csv").write_text(f"ts,type,x\n1,A,1\n2,B,2\n{1 << 61},B,3\n")
    if between:
        text = "CREATE STREAM p AS PATTERN A; B WITHIN 1 s RETURN b.x;"
        text += "REGISTER QUERY q AS SELECT x FROM p WINDOW RANGE 1 hour;"
    else:
        text = "REGISTER QUERY q AS PATTERN A; B WITHIN 1 s RETURN b.x;"
    assert run(TICKS + text, "--input", "t=t.csv") == 0
    assert Path("out/q.csv").read_text().split("\n")[1].startswith("2")
    told = capsys.readouterr().err
    assert told.count("warning: stream t: 1 tuple not taken by patterns") == 1


@pytest.mark.parametrize("between", [False, True])
def test_a_condition_that_is_never_true_is_warned_of(
    capsys: pytest.CaptureFixture[str], between: bool
) -> None:
    text = "PATTERN A; B WHERE b.x > 0 AND 1 > 2 WITHIN 1 s RETURN b.x;"
    if between:
        text = f"CREATE STREAM p AS {text} REGISTER QUERY q AS SELECT x FROM p WINDOW RANGE 1 hour;"
    else:
        text = f"REGISTER QUERY q AS {text}"
    assert run(TICKS + text, "--input", "t=t.csv") == 0
    assert len(Path("out/q.csv").read_text().splitlines()) == 1
    told = capsys.readouterr().err
    assert told.count(": 1 > 2 is never true, so it has no matches") == 1
    assert main(["explain", "q.xsql"]) == 0
    assert between or "no match  1 > 2 is never true" in capsys.readouterr().out
