"""APAS queries on the command line: run and explain, and everything that is refused."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seustream.cli import main

ROAD = """
from
  o1[sektor = 1, avg = agg.avg($I.val)];
  o2[sektor = 2, avg = agg.avg($II.val)];
  where util.union($o1[T], $o2[T]) select facts[$new[T]];
where $facts.avg > 70 select result[$facts[T]]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "road.apas").write_text(ROAD)
    (tmp_path / "I.csv").write_text("ts,te,val\n2,10,40\n4,10,70.5\n")
    (tmp_path / "II.jsonl").write_text(
        '{"ts": 3, "te": 7, "val": 90.0}\n{"ts": 5, "te": 9, "val": 70.0}\n'
    )
    return tmp_path


INPUTS = ["--input", "I=I.csv", "--input", "II=II.jsonl"]


def test_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "road.apas", *INPUTS, "-o", "out"]) == 0
    assert (folder / "out" / "result.csv").read_text() == "ts,te,sektor,avg\n3,5,2,90\n5,7,2,80\n"
    assert "4 tuples in" in capsys.readouterr().err


def test_run_to_stdout_and_parquet(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "road.apas", *INPUTS, "-o", "-", "--format", "jsonl", "--quiet"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == {"query": "result", "ts": 3, "te": 5, "sektor": 2, "avg": 90.0}
    assert main(["run", "road.apas", *INPUTS, "--format", "parquet", "--quiet"]) == 0
    assert pq.read_table("result.parquet").schema.types == [
        pa.int64(),
        pa.int64(),
        pa.int64(),
        pa.float64(),
    ]


def test_groups_times_and_every_type(folder: Path) -> None:
    rows = pa.table({
        "ts": pa.array([1, 2], pa.timestamp("ms")),
        "te": [float("inf"), 9.0],
        "at.x": pa.array([1, 2], pa.int32()),
        "name": ["a", "b"],
        "at.y": [1.5, 2.5],
        "seen": pa.array([1000, 2000], pa.timestamp("us")),
        "ok": [True, False],
    })  # fmt: skip
    pq.write_table(rows, "S.parquet")
    (folder / "q.apas").write_text("where $S.ok or $S.at.x > 1 select [$S[T], t = $S.te == $S.ts]")
    assert main(["run", "q.apas", "--input", "S=S.parquet", "--format", "parquet", "--quiet"]) == 0
    found = pq.read_table("q0.parquet")
    assert found.column_names == ["ts", "te", "at.x", "at.y", "name", "seen", "ok", "t"]
    assert found.column("te").to_pylist() == [2**63 - 1, 9]
    assert found.column("ts").to_pylist() == [1, 2]
    assert pa.types.is_timestamp(found.schema.field("seen").type)


def test_te_may_be_missing(folder: Path) -> None:
    (folder / "P.csv").write_text("ts,val\n2,40\n4,70\n")
    (folder / "q.apas").write_text("where window.range($P, 3) select [s = agg.sum($P.val)]")
    assert main(["run", "q.apas", "--input", "P=P.csv", "--quiet"]) == 0
    assert (folder / "q0.csv").read_text() == "ts,te,s\n2,4,40\n4,5,110\n5,7,70\n"


def test_rejected_tuples_are_counted_and_kept(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "I.csv").write_text("ts,te,val\n2,10,40\n1,10,5\n3,2,6\n4,9,\n4,10,70\n")
    assert main(["run", "road.apas", *INPUTS, "-o", "out", "--late", "bad"]) == 0
    err = capsys.readouterr().err
    assert "stream I: 1 late tuple, written to bad" in err
    assert "stream I: 1 tuple not taken by APAS, te is before ts; written to bad" in err
    assert (folder / "bad" / "I.csv").read_text() == "ts,te,val\n1,10,5\n3,2,6\n"


def test_slack_takes_late_tuples(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "I.csv").write_text("ts,te,val\n4,10,70.5\n2,10,40\n")
    assert main(["run", "road.apas", *INPUTS, "-o", "out", "--slack", "2"]) == 0
    assert (folder / "out" / "result.csv").read_text() == "ts,te,sektor,avg\n3,5,2,90\n5,7,2,80\n"


def test_parameters(folder: Path) -> None:
    (folder / "q.apas").write_text("where $II.val > :least select [$II[T]]")
    words = ["run", "q.apas", "--input", "II=II.jsonl", "--quiet", "--param", "least=80"]
    assert main(words) == 0
    assert (folder / "q0.csv").read_text() == "ts,te,val\n3,7,90\n"
    (folder / "q.xsql").write_text(
        "CREATE STREAM II (te bigint, val double);"
        " REGISTER QUERY q AS APAS $$ where $II.val > :least select [$II[T]] $$;"
    )
    assert main([words[0], "q.xsql", *words[2:]]) == 0
    assert (folder / "q.csv").read_text() == "ts,te,val\n3,7,90\n"


def test_keys_of_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "t.csv").write_text("ts,te,k,v\n1,9,1,5\n2,9,0,7\n3,9,1,8\n4,6,-1,\n")
    (folder / "t.apas").write_text("where window.table($I, $I.k) select [s = agg.sum($I.v)]")
    assert main(["run", "t.apas", "--input", "I=t.csv"]) == 0
    assert (folder / "q0.csv").read_text() == "ts,te,s\n1,2,5\n2,3,5\n3,4,8\n4,6,8\n"
    assert "1 tuple with key 0 dropped from time-tables of q0" in capsys.readouterr().err


def test_a_fault_is_told_with_its_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "n.csv").write_text("ts,te,val\n1,2,0\n2,3,2\n3,4,\n")
    (folder / "n.apas").write_text("select n[x = 7 / $N.val]")
    assert main(["run", "n.apas", "--input", "N=n.csv", "-o", "out"]) == 0
    assert (folder / "out" / "n.csv").read_text() == "ts,te,x\n1,2,\n2,3,3.5\n3,4,\n"
    told = "warning: 1 fault in n: division by zero in 7 / $N.val at 1:16, first at [1,2)"
    assert told in capsys.readouterr().err


REFUSED = {
    "no stream": (["run", "road.apas", "--input", "I=I.csv"], "there is no stream II"),
    "syntax": (["run", "bad.apas", *INPUTS], "bad.apas:1:9"),
    "slack": (["run", "road.apas", *INPUTS, "--slack", "-5"], "--slack"),
    "no file": (["run", "road.apas", "--input", "I=X.csv"], "X.csv: no such file"),
    "format": (["run", "road.apas", "--input", "I=road.apas"], "unknown format"),
    "input": (["run", "road.apas", "--input", "I"], "want STREAM=FILE"),
    "twice": (["run", "road.apas", *INPUTS, "--input", "I=I.csv"], "already has an input"),
    "no ts": (["run", "road.apas", "--input", "I=none.csv"], "no time column"),
    "type of ts": (["run", "road.apas", "--input", "I=text.csv"], "'x' is not a time"),
    "overwrites": (["run", "self.apas", "--input", "q=q.csv"], "it is an input"),
    "late": (["run", "road.apas", *INPUTS, "--late", "-"], "stdout is for results"),
    "late there": (["run", "two.apas", "--input", "q=q.csv", "-o", "o", "--late", "o"], "late"),
    "no value": (
        ["run", "div.apas", *INPUTS, "-o", "o", "--strict"],
        "division by zero in",
    ),
    "compile": (["compile", "road.apas"], "does not say what columns"),
    "stage": (["explain", "road.apas", *INPUTS, "--stage", "tree"], "--stage"),
    "schema": (["explain", "road.apas", "--input", "I=bad.json"], "no type 'FLOAT'"),
    "xsql": (["explain", "q.xsql", "--input", "R=I.csv"], "--input has no use here"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in {
        "bad.apas": "select []",
        "none.csv": "t,val\n1,2\n",
        "text.csv": "ts,val\nx,2\n",
        "q.csv": "ts,val\n1,2\n",
        "self.apas": "select q[v = $q.val]",
        "two.apas": "select q[v = $q.val]",
        "div.apas": "select [v = 7 / ($II.ts == $II.te and true == false xor false == true)]",
        "bad.json": '[["v", "FLOAT"]]',
        "q.xsql": "CREATE STREAM R (a int); SELECT a FROM R WINDOW NOW;",
    }.items():
        (folder / name).write_text(text)
    (folder / "self.apas").write_text("from d[v = $q.val]; select q[v = $d.v]")
    (folder / "two.apas").write_text("from d[v = $q.val]; select q[v = $d.v]")
    (folder / "div.apas").write_text("select [v = 7 / ((3 - 3) * 2), t = $II.ts]")
    before = sorted(path.name for path in folder.iterdir())
    arguments, message = REFUSED[case]
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == before


def test_explain(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "I.json").write_text('[["val", "DOUBLE"]]')
    schemas = ["--input", "I=I.json", "--input", "II=II.jsonl"]
    assert main(["explain", "road.apas", *schemas]) == 0
    text = capsys.readouterr().out
    for line in ("stream version 1  I{val DOUBLE}", "$1 = agg.avg($I.val)", "o1{sektor INTEGER 2, avg DOUBLE 3}",
                 "union of o1, o2", "where $facts.avg > 70"):  # fmt: skip
        assert line in text
    assert main(["explain", "road.apas", *schemas, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [node["what"] for node in found["network"]].count("Aggregate") == 2
    assert main(["explain", "road.apas", *schemas, "--format", "svg", "-o", "n.svg"]) == 0
    root = ElementTree.parse(folder / "n.svg").getroot()
    assert len([g for g in root.iter() if g.get("id", "").startswith("node-")]) == len(
        found["network"]
    )


def test_errors_of_one_place_do_not_echo(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "road.apas", "--input", "I=I.csv"]) == 2
    err = capsys.readouterr().err
    assert err.count("there is no stream II") == 1
    assert "note: streams are known by their inputs: --input II=FILE" in err
    assert "errors" not in err
