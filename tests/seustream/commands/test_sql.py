"""`seustream sql`: statements through a pipe and at a terminal, to this process and to a bridge."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from seustream.commands import sql
from tests.cosim.bridge.serving import bridge

SQL = [sys.executable, "-m", "seustream", "sql"]


def said(text: str, *options: str) -> tuple[int, str, str]:
    done = subprocess.run([*SQL, *options], input=text, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def test_through_a_pipe(tmp_path: Path) -> None:
    file = tmp_path / "r.csv"
    file.write_text("ts,a,t\n1,7,x\n2,3,\n4,9,'y;z'\n")
    status, out, error = said(
        "\ufeffCREATE STREAM R (a int,\n t varchar(9)); -- rows; come from a file\n"
        "REGISTER QUERY large AS SELECT a, t FROM R\n WHERE a > 5;\nSHOW QUERIES;\nLIST;\n",
        "--input",
        f"R={file}",
    )
    assert (status, error) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert ["stream", "R", "is", "created"] in lines
    assert ["query", "large", "is", "RUNNING"] in lines
    assert ["large:", "2", "rows"] in lines
    at = lines.index(["large:", "2", "rows"])
    assert lines[at + 1] == ["a", "t", "ts_oldest", "ts_newest"]
    assert [line for line in lines[at + 2 : at + 5] if line[0] in "79"] == [
        ["7", "x", "1", "1"],
        ["9", "'y;z'", "4", "4"],
    ]
    assert "query large: SELECT a, t FROM R WHERE a > 5" in out.replace("\n ", " ")
    assert any(line[:2] == ["large", "RUNNING"] for line in lines)


def test_times_are_shown_as_they_were_given(tmp_path: Path) -> None:
    text = "CREATE STREAM R (a int); SELECT a, ts AS at FROM R;\n"
    for given, shown in (
        ("2026-03-02 09:00:00", "2026-03-02T09:00:00.000"),
        ("2026-03-02 09:00:00.123Z", "2026-03-02T09:00:00.123+00:00"),
        ("1234", "1234"),
    ):
        (tmp_path / "r.csv").write_text(f"ts,a\n{given},5\n")
        status, out, _ = said(text, "--input", f"R={tmp_path / 'r.csv'}")
        assert status == 0
        assert out.splitlines()[-1].split() == ["5", shown, shown, shown]


def test_a_column_that_no_stream_has_is_told_as_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("ts,a,more\n1,7,x\n")
    text = "CREATE STREAM R (a int);\nSELECT a FROM R;\n"
    status, out, error = said(text, "--input", f"R={tmp_path / 'r.csv'}")
    assert (status, "q0: 1 row\n" in out) == (0, True)
    assert error.startswith("warning: ")
    assert error.rstrip().endswith("column 'more' is not in stream R and ignored")


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("", "stream S"),
        ("CREATE STREAM R (a int);\nEXIT\n", "stream S"),
        ("CREATE STREAM s (a int);\n", "query that reads it"),
    ],
)
def test_a_file_that_is_not_read_is_refused(text: str, missing: str, tmp_path: Path) -> None:
    status, _, error = said(text, "--input", f"S={tmp_path}/none.csv")
    assert (status, error) == (2, f"--input S={tmp_path}/none.csv: there is no {missing}\n")


def test_a_table_has_the_rows_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("ts,a\n1,7\n2,3\n")
    (tmp_path / "t.csv").write_text("a,n\n7,seven\n")
    status, out, error = said(
        f"CREATE STREAM R (a int); CREATE TABLE t (a int, n varchar) WITH (path = '{tmp_path}/t.csv');\n"
        "SELECT R.a, t.n FROM R LEFT JOIN t ON R.a = t.a;\nSELECT t.n FROM R JOIN t ON R.a = t.a;\n",
        "--input",
        f"R={tmp_path / 'r.csv'}",
    )
    assert (status, error) == (0, "")
    assert "seven" in out
    (tmp_path / "other.csv").write_text("a,n\n7,other\n")
    status, out, error = said(
        f"CREATE STREAM R (a int); CREATE TABLE t (a int, n varchar) WITH (path = '{tmp_path}/t.csv');\n"
        "SELECT R.a, t.n FROM R LEFT JOIN t ON R.a = t.a;\n",
        "--input",
        f"R={tmp_path / 'r.csv'}",
        "--input",
        f"T={tmp_path / 'other.csv'}",
    )
    assert (status, error) == (0, "")
    assert "other" in out
    assert "seven" not in out, "the file that was given comes first, however its name is spelt"


def test_a_mistake_has_its_place_and_the_rest_goes_on() -> None:
    status, out, error = said("CREATE STREAM R (a int);\nSELECT b\nFROM R;\nSELECT a FROM R;\n")
    assert status == 2
    assert "<sql>:1:8" in error
    assert "b" in error
    assert "query q0 is RUNNING" in out


def test_a_query_that_fails_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("ts,a\n1,3\n2,0\n3,1\n")
    status, out, error = said(
        "CREATE STREAM R (a int); REGISTER QUERY ok AS SELECT a FROM R;"
        " REGISTER QUERY q AS SELECT 6 / a AS b FROM R WITH (strict);",
        "--input",
        f"R={tmp_path / 'r.csv'}",
    )
    assert status == 2
    assert "ok: 3 rows" in out
    assert "query q has failed" in error
    assert "division by zero" in error


def test_faults_are_told_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("ts,a\n5,7\n6,8\n1,1\n")
    text = "CREATE STREAM R (a int);\nREGISTER QUERY share AS\n SELECT 1 / (a - 7) AS q FROM R;\n"
    status, out, error = said(text, "--input", f"R={tmp_path / 'r.csv'}")
    assert (status, "share: 3 rows" in out) == (0, True)
    assert error == (
        "warning: 1 fault in share: division by zero in 1 / (R.a - 7) at 2:11, first at row 2 of R at ts 5\n"
    )


def test_rows_that_apas_refuses_are_told_of_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("ts,te,a\n5,4,7\n6,8,9\n")
    text = (
        "CREATE STREAM R (te bigint, a int); REGISTER QUERY m AS APAS $$ select m[a = $R.a] $$;\n"
    )
    status, _, error = said(text, "--input", f"R={tmp_path / 'r.csv'}")
    assert (status, error) == (0, "warning: stream R: 1 row not taken by APAS, te is before ts\n")


def test_times_that_python_lacks(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("ts,a\n9999-12-31,1\n")
    text = "CREATE STREAM R (a int); SELECT window_end FROM R GROUP BY TUMBLE(ts, 1 day);"
    status, out, error = said(text, "--input", f"R={tmp_path / 'r.csv'}")
    assert (status, error) == (0, "")
    assert out.splitlines()[-1].split()[0] == "10000-01-01T00:00:00.000"


def test_a_text_that_ends_within_quotes_is_refused() -> None:
    status, out, error = said(
        "CREATE STREAM R (a int); REGISTER QUERY q AS SELECT a FROM R;\n"
        "REGISTER QUERY p AS SELECT a FROM R WHERE 'x;\nREGISTER QUERY r AS SELECT a FROM R;\n"
    )
    assert status == 2
    assert "this string does not end" in error
    assert "query q is RUNNING" in out


def test_bytes_that_are_no_text() -> None:
    done = subprocess.run([*SQL], input=b"SELECT \xff;\n", capture_output=True, timeout=120)
    assert done.returncode == 2
    assert b"standard input, line 1: byte 7 is not UTF-8" in done.stderr


def test_bad_options() -> None:
    for options, want in (
        (["--input", "R"], "want STREAM=FILE"),
        (["--input", "R=f", "--bridge", "grpc://127.0.0.1:1"], "fed by others"),
        (["--bridge", "grpc://127.0.0.1:1"], "grpc://127.0.0.1:1"),
    ):
        status, _, error = said("", *options)
        assert status == 2
        assert want in error


def test_a_bridge_keeps_what_was_said(tmp_path: Path) -> None:
    with bridge(tmp_path) as (_, url):
        text = "CREATE STREAM R (a int); REGISTER QUERY q AS SELECT a FROM R;"
        assert said(text, "--bridge", url)[0] == 0
        _, out, _ = said("SHOW QUERIES;", "--bridge", url)
        assert "query q: SELECT a FROM R" in out


class Terminal:
    """A program attached to a pseudo-terminal."""

    def __init__(self, home: Path) -> None:
        ours, theirs = pty.openpty()
        environment = {**os.environ, "XDG_STATE_HOME": str(home), "TERM": "xterm"}
        self.process = subprocess.Popen(
            SQL, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, close_fds=True
        )
        os.close(theirs)
        self.file, self.seen = ours, ""

    def until(self, text: str, patience: float = 120) -> None:
        end = time.monotonic() + patience
        while text not in self.seen:
            assert time.monotonic() < end, self.seen
            if select.select([self.file], [], [], 0.5)[0]:
                data = os.read(self.file, 1 << 16).decode(errors="replace")
                self.seen += data
                if "\x1b[6n" in data:  # it asks for the position of the cursor
                    os.write(self.file, b"\x1b[1;1R")

    def type(self, text: str) -> None:
        self.seen = ""
        os.write(self.file, text.encode())

    def close(self) -> int:
        os.write(self.file, b"exit\r")
        try:
            return self.process.wait(60)
        finally:
            self.process.kill()
            os.close(self.file)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_at_a_terminal(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    terminal.until("seustream>")
    terminal.type("CREATE STREAM Readings (a int);\r")
    terminal.until("stream Readings is created")
    terminal.type("SELECT a FROM Read\t")
    terminal.until("Readings")
    terminal.type("\r... WHERE")
    terminal.until("WHERE")
    terminal.type("\x03")  # abandons the statement; the prompt stays
    terminal.until("seustream>")
    terminal.type("\x04")
    assert terminal.process.wait(60) == 0
    again = Terminal(tmp_path)
    again.until("seustream>")
    again.type("\x1b[A")  # recalls the previous line
    again.until("SELECT a FROM")
    again.type("\x15")
    assert again.close() == 0


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_terminal_without_a_place_for_its_history(what: str, tmp_path: Path) -> None:
    """A service account or a container has none; the lines of this session are still recalled."""
    if what == "folder":
        home = tmp_path / "no folder"
        home.write_text("")
    else:
        home = tmp_path
        (home / "seustream" / "sql-history").mkdir(parents=True)  # is not opened, also not by root
    terminal = Terminal(home)
    terminal.until("seustream>")
    terminal.type("CREATE STREAM Readings (a int);\r")
    terminal.until("stream Readings is created")
    terminal.type("\x1b[A")
    terminal.until("Readings")
    terminal.type("\x15")
    assert terminal.close() == 0
    assert "Traceback" not in terminal.seen


def test_a_history_that_can_no_longer_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    kept = sql._history()
    kept.append_string("SELECT a FROM R;")
    assert list(sql._history().load_history_strings()) == ["SELECT a FROM R;"]
    (tmp_path / "seustream" / "sql-history").unlink()
    (tmp_path / "seustream" / "sql-history").mkdir()
    kept.append_string("SELECT b FROM R;")
    assert kept.get_strings()[-1] == "SELECT b FROM R;"
