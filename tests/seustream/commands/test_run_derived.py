"""Streams defined by APAS queries in .xsql files: patterns and queries read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from seustream.cli import main

STREAMS = "CREATE STREAM speeds (road int, speed int);\nCREATE STREAM rain (road int, mm int);\n"
QUERY = "where window.range($speeds, 10) select level[n = agg.count($speeds), top = agg.max($speeds.speed)]"
LEVEL = f"CREATE STREAM level AS APAS $$ {QUERY} $$;\n"
JAM = (
    "REGISTER QUERY jam AS PATTERN ANY a; ANY b FROM level WHERE b.top < a.top WITHIN 8 ms"
    " RETURN a.top, b.top AS later, b.te;\n"
)
S = "ts,road,speed\n3,1,90\n5,1,70\n7,2,50\n"
R = "ts,road,mm\n4,1,3\n"
INPUTS = ("--input", "speeds=s.csv", "--input", "rain=r.csv")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.csv").write_text(S)
    Path("r.csv").write_text(R)


def run(text: str, *options: str) -> int:
    Path("q.xsql").write_text(text)
    return main(["run", "q.xsql", "-o", "out", *options])


def results() -> dict[str, list[str]]:
    return {path.stem: path.read_text().splitlines() for path in Path("out").iterdir()}


def level_as_file(name: str = "s.csv") -> None:
    """Writes the same stream as a file, by `seustream run` of the APAS query itself."""
    Path("level.apas").write_text(QUERY.replace("$speeds", "$speeds"))
    assert main(["run", "level.apas", "--input", f"speeds={name}", "-o", "level", "--quiet"]) == 0
    (written,) = Path("level").iterdir()
    Path("level.csv").write_text(written.read_text())


QUERIES = (
    JAM,
    "REGISTER QUERY one AS SELECT top, te FROM level WHERE n > 2 WINDOW 1;\n",
    "REGISTER QUERY grouped AS SELECT n, max(top) AS most FROM level GROUP BY n WINDOW RANGE 9 s;\n",
    "REGISTER QUERY wet AS SELECT l.top, r.mm FROM level l, rain r WHERE l.top > r.mm WINDOW RANGE 5 s;\n",
    "CREATE STREAM falls AS PATTERN ANY a; ANY b FROM level WHERE b.top < a.top WITHIN 1 s RETURN b.top;\n"
    "REGISTER QUERY least AS SELECT min(top) AS low FROM falls WINDOW RANGE 1 s;\n",
)


@pytest.mark.parametrize("query", QUERIES)
def test_as_over_a_file_of_the_same_rows(query: str) -> None:
    assert run(STREAMS + LEVEL + query, *INPUTS) == 0
    found = results()
    for path in Path("out").iterdir():
        path.unlink()
    level_as_file()
    file = STREAMS + "CREATE STREAM level (te bigint, n bigint, top bigint);\n"
    assert run(file + query, "--input", "level=level.csv", *INPUTS) == 0
    assert found == results()
    assert all(len(rows) > 1 for rows in found.values())


def test_apas_over_results_of_all_languages() -> None:
    """X-SQL, then APAS, then a pattern, then APAS over its matches; worked out by hand from the
    rows of `test_matches_worked_by_hand`, of which the filter removes none here."""
    text = (
        STREAMS
        + "CREATE STREAM s AS SELECT road, speed FROM speeds WHERE speed > 0 WINDOW NOW;\n"
        + LEVEL.replace("$speeds", "$s")
        + JAM.replace("REGISTER QUERY jam", "CREATE STREAM jams").replace("b.te", "b.te AS until")
        + "CREATE STREAM slow AS APAS $$ where $jams.top > 80 select slow[v = $jams.later] $$;\n"
        + "REGISTER QUERY last AS SELECT v FROM slow WINDOW NOW;\n"
    )
    assert run(text, *INPUTS) == 0
    assert sorted(results()["last"]) == [
        "50,15,15",
        "70,13,13",
        "70,13,13",
        "v,ts_oldest,ts_newest",
    ]


def test_matches_worked_by_hand() -> None:
    """level: [3,5) 90, [5,7) 90, [7,13) 90, [13,15) 70, [15,17) 50; a fall within 8 ms."""
    assert run(STREAMS + LEVEL + JAM, *INPUTS) == 0
    assert results()["jam"] == ["top,later,te", "90,70,15", "90,70,15", "90,50,17", "70,50,17"]


def test_an_end_in_the_base_stream_is_used(capfd: pytest.CaptureFixture[str]) -> None:
    Path("i.csv").write_text("ts,te,v\n1,4,10\n2,9,20\n3,2,5\n5,7,\n6,8,7\n")
    text = (
        "CREATE STREAM i (te bigint, v int);\n"
        "CREATE STREAM m AS APAS $$ where $i.v > 0 select m[pos[x = $i.v, y = 2.5]] $$;\n"
        "SELECT * FROM m WINDOW 1;"
    )
    assert run(text, "--input", "i=i.csv") == 0
    rows = results()["q0"]
    assert rows[0] == "te,pos_x,pos_y,ts_oldest,ts_newest"
    assert rows[1:] == ["4,10,2.5,1,1", "9,20,2.5,2,2", "8,7,2.5,6,6"]
    assert "stream i: 1 tuple not taken by APAS, te is before ts" in capfd.readouterr().err


def test_late_rows_are_counted_and_kept(capfd: pytest.CaptureFixture[str]) -> None:
    Path("s.csv").write_text("ts,road,speed\n3,1,90\n7,2,50\n5,1,70\n")
    assert run(STREAMS + LEVEL + JAM, *INPUTS, "--late", "late") == 0
    assert Path("late/speeds.csv").read_text() == "ts,road,speed\n5,1,70\n"
    assert "stream speeds: 1 late tuple, written to late" in capfd.readouterr().err
    assert run(STREAMS + LEVEL + JAM, *INPUTS, "--slack", "2") == 0
    assert len(results()["jam"]) == 5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (STREAMS + LEVEL.replace("agg.max", "agg.mx"), "there is no function agg.mx"),
        (STREAMS + LEVEL.replace("$$;", ";"), "this APAS text does not end"),
        (STREAMS + LEVEL + JAM + "DROP STREAM level;", "stream level is used by query jam"),
        (STREAMS + LEVEL + "DROP STREAM speeds;", "stream speeds is used by stream level"),
        (STREAMS + LEVEL + LEVEL, "there is already a stream level"),
        (
            STREAMS + LEVEL.replace("n = ", "a_b = 1, a[b = 1], n = ") + JAM,
            "would have two columns a_b",
        ),
    ],
)
def test_mistakes(text: str, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(text, *INPUTS) == 2
    assert said in capfd.readouterr().err
    assert not Path("out").exists()


def test_the_place_of_a_mistake_is_that_in_the_file(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(STREAMS + LEVEL.replace("agg.max", "agg.mx"), *INPUTS) == 2
    column = LEVEL.index("agg.max") + 1
    assert f"q.xsql:3:{column}: " in capfd.readouterr().err


def test_a_stream_nobody_reads_needs_no_input() -> None:
    text = STREAMS + LEVEL + "SELECT mm FROM rain WINDOW 1;"
    assert run(text, "--input", "rain=r.csv") == 0
