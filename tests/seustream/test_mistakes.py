"""Common mistakes, and the answer to each: the problem, what to write, status 2."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from seustream.cli import main

STREAMS = (
    "CREATE STREAM R (a int, b int, n varchar(9), t timestamp); CREATE STREAM S (d int, e int); "
)
SQL = """
SELCT a FROM R WINDOW NOW                                     'SELCT' is unexpected|mean SELECT?
SELECT a FRM R WINDOW NOW                                     'FRM' is unexpected; expected ',' or FROM
SELECT aa FROM R WINDOW NOW                                   a column aa|mean a?
SELECT a FROM RR WINDOW NOW                                   no stream RR|mean R?
SELECT R.a FROM R, S WHERE R.a = S.d                          needs a window|WINDOW RANGE 5 minutes
SELECT R.a FROM R JOIN S ON R.a = S.d                         needs a window|abs(
SELECT R.a FROM R JOIN S WINDOW RANGE 5                       expected ON or USING|R JOIN S ON
SELECT R.a FROM R LEFT JOIN S WINDOW RANGE 5                  expected ON or USING|R JOIN S ON
SELECT R.a FROM R NATURAL JOIN S WINDOW RANGE 5               expected ON or USING
SELECT R.a FROM R JOIN S USING (a) WINDOW RANGE 5             column a|known columns: d, e
SELECT a FROM R, R WHERE 1 = 1 WINDOW NOW                     R stands twice|R AS R2
SELECT ts FROM R, S WHERE R.a = S.d WINDOW RANGE 5            ts|R.ts
SELECT a FROM R x, S WHERE R.a = S.d WINDOW RANGE 5           R
SELECT a FROM R WINDOW RANGE 5 parsecs                        parsecs is no unit|mean secs?
SELECT a FROM R WINDOW RANGE -5 seconds                       into the future
SELECT a FROM R WINDOW ROWS 0                                 whole number of rows, 1 or more
SELECT a FROM R WINDOW ROWS 2.5                               whole number of rows|RANGE 5 seconds
SELECT a FROM R WHERE a < b < 3 WINDOW NOW                    do not chain|a < b AND b < 3
SELECT a % 2 FROM R WINDOW NOW                                mod(x, y)
SELECT a FROM R WHERE a = 'x' WINDOW NOW                      int cannot be compared with varchar|CAST
SELECT a FROM R WHERE n > 5 WINDOW NOW                        varchar(9) cannot be compared|CAST
SELECT a FROM R WHERE t > '2026-13-45' WINDOW NOW             not a timestamp|'2006-03-01 12:30:00'
SELECT a + n FROM R WINDOW NOW                                + wants numbers|int and varchar(9)
SELECT nosuch(a) FROM R WINDOW NOW                            no function nosuch|none is like it
SELECT uper(n) FROM R WINDOW NOW                              no function uper|mean upper?
SELECT upper(n, n) FROM R WINDOW NOW                          upper wants a text|give it 1 argument
SELECT sum(n) FROM R WINDOW ROWS 5                            sum wants a number|CAST
SELECT a, sum(b) FROM R WINDOW ROWS 5                         neither grouped nor aggregated|GROUP BY
SELECT a FROM R HAVING a > 5 WINDOW ROWS 5                    neither grouped nor aggregated
SELECT a FROM R WHERE sum(b) > 5 WINDOW ROWS 5                sum cannot stand in WHERE|HAVING
SELECT a FROM R GROUP BY c WINDOW ROWS 5                      column c|known columns: a, b
SELECT a, count(*) FROM R GROUP BY a ORDER BY a WINDOW NOW    a row at each change|TUMBLE
SELECT count(*) FROM R LIMIT 5 WINDOW NOW                     a row at each change|TUMBLE
SELECT a AS x, b AS x FROM R WINDOW NOW                       two result columns are called x|AS
SELECT n LIKE 5 FROM R WINDOW NOW                             LIKE wants texts
SELECT CAST(a AS blob) FROM R WINDOW NOW                      no type blob
SELECT a FROM R WHERE n = "x" WINDOW NOW                      column x
SELECT a FROM R WHERE n = 'x WINDOW NOW                       string does not end|close it
SELECT (a FROM R WINDOW NOW                                   expected ')'|SELECT items FROM
SELECT a FROM R WHERE a == = 5 WINDOW NOW                     '=' is unexpected
SELECT a FROM R WHERE a BETWEEN 5 WINDOW NOW                  AND
SELECT CASE a WHEN 1 THEN 'x' ELSE 5 END FROM R WINDOW NOW    branches of CASE|CAST
SELECT a FROM R WHERE b NOT IN (SELECT e FROM S) WINDOW NOW   NOT IN is never true|NOT EXISTS
SELECT a FROM R WHERE extract(yeer FROM t) = 1 WINDOW NOW     no yeer here, but year
SELECT :p FROM R WINDOW NOW                                   :p has no value|--param p=VALUE
INSERT INTO R VALUES (1)                                      'INSERT' is unexpected|rows come from sources
UPDATE R SET a = 1                                            'UPDATE' is unexpected|rows come from sources
CREATE STREAM R (a int)                                       already a stream R|another name
CREATE TABLE R (a int)                                        already a stream R
CREATE STREAM X (a integr)                                    no type integr|mean integer?
CREATE STREAM X (a nvarchar(5))                               no type nvarchar|mean varchar?
CREATE STREAM X (a int, a int)                                already has a column a|another name
CREATE STREAM X ()                                            CREATE STREAM name (column type
DROP STREAM X                                                 no stream X|known streams: R, S
DROP QUERY x                                                  no query x
REGISTER QUERY q AS SELECT a FROM R WINDOW NOW; REGISTER QUERY q AS SELECT b FROM R WINDOW NOW     already a query q
PATTERN A; B FROM R WITHIN 5 min RETURN A                     no column type|TYPE BY
PATTERN A FROM X RETURN A                                     no stream X|known streams
"""
COMMANDS = """
run                                                 there are no queries|-c
run nofile.xsql                                     nofile.xsql|No such file
run none.xsql                                       no queries in it|SELECT
run none.xsql -c "SELECT 1"                         given twice
run -c "SELECT a FROM R" --input R=r.csv -o x.csv   into a folder|-o - > x.csv
run -c "SELECT a FROM R" --input R=r.csv -o x.parquet   into a folder|-o - --format parquet > x.parquet
sql -c "SHOW QUERIES"                               no option -c|seustream sql --help
run latin.xsql                                      byte 7 is not UTF-8
rnu q.xsql                                          no command rnu|mean run?
run q.xsql --inptu R=r.csv                          no option --inptu|mean --input?
run q.xsql more.xsql                                one argument too many
run q.xsql R=r.csv                                  one argument too many|--input R=r.csv
run q.xsql --source R=r.csv                         no option --source|takes rows by --input
run -c "CREATE TABLE t (a int); CREATE STREAM R (a int); SELECT R.a FROM R JOIN t ON R.a = t.a WINDOW 1" --input R=r.csv   no input for table t
run q.xsql                                          no input for stream R|--input R=
run q.xsql --input R                                want STREAM=FILE
run q.xsql --input Q=r.csv                          no stream Q|streams: R
run q.xsql --input R=r.csv --input R=r.csv          already has an input
run q.xsql --input R=gone.csv                       gone.csv: no such file
run q.xsql --input R=r.txt                          unknown format|.parquet
run q.xsql --input R=empty.csv                      is empty, expected a header
run q.xsql --input R=untimed.csv                    ts
run q.xsql --input R=wrong.csv                      wrong.csv:2: column a: 'x' is not an int
run q.xsql --input R=few.csv                        no column a, which stream R has
run q.xsql --input R=no.parquet                     cannot be read as Parquet
run q.xsql --input R=no.jsonl                       no.jsonl:1
run q.xsql --input R=*.nothing                      no file fits this pattern
run q.xsql --input R=r.csv --backend verilatd       no backend 'verilatd'|mean verilated?
run q.xsql --input R=r.csv --config dflt            no configuration 'dflt'|mean default?
run q.xsql --input R=r.csv --slack 5x               --slack|5x|500ms, 5s
run q.xsql --input R=r.csv --slack -5               want 0 or more
run q.xsql --input R=r.csv --format xml             xml|csv, jsonl, parquet
run q.xsql --input R=r.csv --waves w.fst            engine has no signals|--backend verilated
run q.xsql --input R=r.csv --library lib.py         defines no LIBRARIES
run q.xsql --input R=r.csv --devices many           --devices many
run q.xsql --input R=r.csv --engine nfaa            no engine 'nfaa'|mean nfa?
run q.xsql --input R=r.csv --param p                want NAME=VALUE
run -c "SELECT a FROM T WINDOW NOW"                 no stream T|--input T=FILE
explain q.xsql --stage ruotes                       no stage 'ruotes'|mean routes?
serve --listen http://127.0.0.1:1                   no address of a bridge|grpc://127.0.0.1:8815
serve --listen grpc://0.0.0.0:8815                  no token|--token-file
serve --tls-cert x                                  --tls-cert, --tls-key
feed q.xsql                                         --bridge is missing|no source for stream R
query list --bridge grpc://127.0.0.1:1              127.0.0.1:1|is the bridge running there?
journal check gone                                  gone: no such folder
bench nosuch                                        no benchmark 'nosuch'|known benchmarks
bitstream --board nosuch                            no board 'nosuch'|ulx3s
completion fish                                     fish|bash, zsh
"""


def cases(text: str) -> list[tuple[str, str]]:
    found = []
    for line in text.strip().splitlines():
        mistake, _, words = line.rpartition("  ")
        found.append((mistake.strip(), words.strip()))
    return found


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "q.xsql": "CREATE STREAM R (a int); SELECT a FROM R WINDOW NOW;",
        "none.xsql": "CREATE STREAM R (a int);",
        "r.csv": "ts,a,b,n,t\n1,5,2,x,2026-01-05 08:00:00\n",
        "s.csv": "ts,d,e\n1,5,1\n",
        "r.txt": "ts,a\n1,1\n",
        "empty.csv": "",
        "untimed.csv": "a\n1\n",
        "wrong.csv": "ts,a\n1,x\n",
        "few.csv": "ts,b\n1,2\n",
        "no.parquet": "no",
        "no.jsonl": "{",
        "lib.py": "x = 1\n",
    }.items():
        Path(name).write_text(text)
    Path("latin.xsql").write_bytes(b"SELECT \xe4")


def told(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    try:
        status = main(arguments)
    except SystemExit as ended:
        status = int(str(ended.code))
    out, error = capfd.readouterr()
    assert (status, out) == (2, ""), error
    assert "Traceback" not in error
    return error


@pytest.mark.parametrize(("text", "words"), cases(SQL))
def test_a_mistake_in_a_text(text: str, words: str, capfd: pytest.CaptureFixture[str]) -> None:
    inputs = ("--input", "R=r.csv", "--input", "S=s.csv", "-o", "-")
    error = told(["run", "-c", STREAMS + "\n" + text, *inputs], capfd)
    assert error.startswith("<sql>:2:"), error
    assert [word for word in words.split("|") if word not in error] == [], error


@pytest.mark.parametrize(("line", "words"), cases(COMMANDS))
def test_a_mistake_in_a_command(line: str, words: str, capfd: pytest.CaptureFixture[str]) -> None:
    error = told(shlex.split(line), capfd)
    assert [word for word in words.split("|") if word not in error] == [], error


def test_there_are_seventy_five() -> None:
    assert len(cases(SQL)) + len(cases(COMMANDS)) >= 75
