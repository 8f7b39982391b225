"""The command line, as scripts depend on it: files, exit status, and which output gets what."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from seustream import cli
from seustream.cli import main, module_of
from seustream.errors import OutputError
from seustream.hdl.config import CONFIGURATIONS
from seustream.writing import Writer
from tests.docs.blocks import ROOT
from tests.seustream.texts import JOIN, STREAMS, names

R = "ts,a,b\n1,1,10\n2,2,20\n30,1,30\n"
S = "ts,d,name\n1,1,one\n5,2,two\n6,1,uno\n"
RESULT = "a,b,d,name,ts_oldest,ts_newest\n1,10,1,one,1,1\n2,20,2,two,2,5\n1,10,1,uno,1,6\n"
INPUTS = ("--input", "R=r.csv", "--input", "S=s.csv")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("q.xsql").write_text(STREAMS + JOIN)
    Path("r.csv").write_text(R)
    Path("s.csv").write_text(S)
    return tmp_path


# --- run ----------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["golden", "iss"])
@pytest.mark.parametrize("plan", ["cost", "thesis"])
@pytest.mark.parametrize("config", list(CONFIGURATIONS))
def test_run(backend: str, plan: str, config: str, capfd: pytest.CaptureFixture[str]) -> None:
    options = ("--backend", backend, "--plan", plan, "--config", config, "-o", "out")
    assert main(["run", "q.xsql", *INPUTS, *options]) == 0
    assert Path("out/q0.csv").read_text() == RESULT
    out, err = capfd.readouterr()
    assert out == ""
    assert "q0           3  out/q0.csv" in err


def test_results_alone_on_stdout(capfd: pytest.CaptureFixture[str]) -> None:
    Path("q.xsql").write_text(STREAMS + JOIN + "SHOW STREAMS; EXPLAIN q0;")
    before = names()
    assert main(["run", "q.xsql", *INPUTS, "-o", "-", "--backend", "golden"]) == 0
    out, err = capfd.readouterr()
    assert out == RESULT
    assert "stream R (a int, b int)" in err
    assert "R arrives" in err
    assert names() == before


def test_json_lines_on_stdout_name_their_query(capfd: pytest.CaptureFixture[str]) -> None:
    Path("q.xsql").write_text(
        STREAMS + JOIN + "REGISTER QUERY big AS SELECT b FROM R WHERE b > 15 WINDOW NOW;"
    )
    assert main(["run", "q.xsql", *INPUTS, "-o", "-", "--format", "jsonl", "--quiet"]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["b"] for row in rows if row["query"] == "big"] == [20, 30]
    assert len([row for row in rows if row["query"] == "q0"]) == 3


def test_late_tuples_are_counted_and_kept(capfd: pytest.CaptureFixture[str]) -> None:
    Path("r.csv").write_text("ts,a,b\n9,1,10\n2,2,20\n")
    assert main(["run", "q.xsql", *INPUTS, "-o", "out", "--late", "late"]) == 0
    assert "stream R: 1 late tuple, written to late" in capfd.readouterr().err
    assert Path("late/R.csv").read_text() == "ts,a,b\n2,2,20\n"
    assert names("late") == ["late/R.csv"]
    assert main(["run", "q.xsql", *INPUTS, "-o", "out", "--slack", "7"]) == 0
    assert "warning" not in capfd.readouterr().err


def test_overflow_is_joined_in_software_or_refused(capfd: pytest.CaptureFixture[str]) -> None:
    Path("r.csv").write_text("ts,a,b\n" + "".join(f"{i},{i},0\n" for i in range(40)))
    Path("s.csv").write_text("ts,d,name\n40,0,x\n")
    Path("q.xsql").write_text(STREAMS + JOIN.replace("RANGE 10", "UNBOUNDED"))
    golden = ["--backend", "golden", "--config", "tiny"]
    assert main(["run", "q.xsql", *INPUTS, *golden, "-o", "out"]) == 0
    assert "needed 40 tuples, its buffer holds 12; 28 tuples joined in software" in (
        capfd.readouterr().err
    )
    assert Path("out/q0.csv").read_text().splitlines()[1:] == ["0,0,0,x,0,40"]
    refused = ["run", "q.xsql", *INPUTS, *golden, "-o", "no", "--overflow", "error"]
    assert main(refused) == 2
    err = capfd.readouterr().err
    assert "the window of stream R (UNBOUNDED) needs" in err
    assert "a window that tuples leave" in err
    assert not Path("no").exists()


def test_what_the_counters_cannot_tell_is_joined_in_software_or_refused(
    capfd: pytest.CaptureFixture[str],
) -> None:
    Path("r.csv").write_text("ts,a,b\n0,7,1\n")
    Path("s.csv").write_text("ts,d,name\n40000,7,x\n")
    Path("q.xsql").write_text(STREAMS + JOIN.replace("RANGE 10", "UNBOUNDED"))
    Path("narrow.json").write_text('{"name": "narrow", "timestamp_width": 16}')
    narrow = ["run", "q.xsql", *INPUTS, "--backend", "golden", "--config", "narrow.json"]
    assert main([*narrow, "-o", "out"]) == 0
    assert (
        "note: stream R: window UNBOUNDED needed a tuple 40,000 ticks old, 16-bit timestamps tell"
        " 32,767; 1 tuple joined in software"
    ) in capfd.readouterr().err
    assert Path("out/q0.csv").read_text().splitlines()[1:] == ["7,1,7,x,0,40000"]
    assert main([*narrow, "-o", "no", "--overflow", "error"]) == 2
    err = capfd.readouterr().err
    assert "the window of stream R (UNBOUNDED) needs a tuple 40,000 ticks old" in err
    assert "a window that tuples leave; or let the host join" in err


# --- user errors: status 2, a message, nothing left behind --------------------

WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "no such file": (("run", "none.xsql"), "none.xsql: No such file"),
    "no input": (("run", "q.xsql"), "no input for stream R, S"),
    "input of no stream": (
        ("run", "q.xsql", "--input", "Q=r.csv"),
        "--input Q=r.csv: there is no stream Q",
    ),
    "input twice": (("run", "q.xsql", *INPUTS, "--input", "r=r.csv"), "already has an input"),
    "malformed input": (("run", "q.xsql", "--input", "R"), "--input R: want STREAM=FILE"),
    "input missing": (
        ("run", "q.xsql", "--input", "R=x.csv", "--input", "S=s.csv"),
        "x.csv: no such file",
    ),
    "unknown backend": (("run", "q.xsql", *INPUTS, "--backend", "goldn"), "did you mean golden?"),
    "unknown configuration": (("compile", "q.xsql", "--config", "tini"), "did you mean tiny?"),
    "negative slack": (("run", "q.xsql", *INPUTS, "--slack", "-1"), "--slack -1: want 0 or more"),
    "no terms": (("compile", "q.xsql", "--max-terms", "0"), "--max-terms 0: want 1 or more"),
    "unknown stage": (("explain", "q.xsql", "--stage", "route"), "did you mean routes?"),
    "no picture": (
        ("explain", "q.xsql", "--stage", "tokens", "--format", "svg"),
        "no picture of stage 'tokens'",
    ),
    "unknown query": (("explain", "q.xsql", "--query", "q9"), "there is no query 'q9'"),
    "late on stdout": (
        ("run", "q.xsql", *INPUTS, "--late", "-"),
        "--late -: stdout is for results",
    ),
    "parquet on stdout": (("run", "q.xsql", *INPUTS, "-o", "-", "--format", "parquet"), "stdout"),
    "unknown benchmark": (("bench", "nope"), "there is no benchmark 'nope'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_user_errors(case: str, capfd: pytest.CaptureFixture[str]) -> None:
    arguments, message = WRONG[case]
    before = names()
    assert main(list(arguments)) == 2
    out, err = capfd.readouterr()
    assert message in err
    assert "Traceback" not in err
    assert out == ""
    assert names() == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (STREAMS + "SELECT * FROM R, T WINDOW 5;", "q.xsql:3:18: there is no stream T"),
        ("", "q.xsql: there are no queries in it"),
        (STREAMS, "q.xsql: there are no queries in it"),
    ],
)
def test_texts_that_do_not_run(text: str, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("q.xsql").write_text(text)
    before = names()
    assert main(["run", "q.xsql", *(INPUTS if text else ()), "-o", "out"]) == 2
    assert message in capfd.readouterr().err
    assert names() == before


def test_what_is_there_is_told_without_a_query(capfd: pytest.CaptureFixture[str]) -> None:
    text = "CREATE STREAM R (a int); DESCRIBE R; SHOW CREATE STREAM R; SHOW QUERIES"
    assert main(["run", "-c", text]) == 0
    out, err = capfd.readouterr()
    assert (out, err.split()[:6]) == ("", ["ts", "bigint", "NOT", "NULL", "a", "int"])
    assert "CREATE STREAM R (a int)" in err


def test_a_bad_cell_is_named_and_nothing_written(capfd: pytest.CaptureFixture[str]) -> None:
    Path("s.csv").write_text("ts,d,name\n1,1,one\n5,two,two\n")
    assert main(["run", "q.xsql", *INPUTS, "-o", "out"]) == 2
    assert "s.csv:3: column d: 'two' is not an int" in capfd.readouterr().err
    assert not Path("out").exists()


@pytest.mark.parametrize(
    "pattern",
    [
        "PATTERN ANY x; ANY y FROM S WHERE 1 / (x.d - 1) > y.d WITHIN 9 s RETURN x.d",
        "SELECT * FROM S MATCH_RECOGNIZE (ORDER BY ts MEASURES A.d AS d PATTERN (A B)"
        " WITHIN INTERVAL '9' SECOND DEFINE B AS 1 / (A.d - 1) > B.d)",
    ],
)
def test_a_strict_pattern(pattern: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A fault ends the run if the pattern is strict, and is counted otherwise."""
    Path("s.csv").write_text("ts,d,name\n1,1,one\n5,2,two\n")
    run = ["run", "q.xsql", "--input", "S=s.csv", "-o", "out"]
    Path("q.xsql").write_text(f"{STREAMS}REGISTER QUERY p AS {pattern};")
    assert main(run) == 0
    assert "division by zero in 1 / (" in capfd.readouterr().err
    Path("q.xsql").write_text(f"{STREAMS}REGISTER QUERY p AS {pattern} WITH (strict);")
    assert main(run) == 2
    assert "division by zero in 1 / (" in capfd.readouterr().err
    Path("q.xsql").write_text(f"{STREAMS}REGISTER QUERY p AS {pattern} WITH (strit);")
    assert main(run) == 2
    assert "there is no option strit" in capfd.readouterr().err


def test_a_value_that_does_not_exist_names_query_and_expression(
    capfd: pytest.CaptureFixture[str],
) -> None:
    Path("q.xsql").write_text(STREAMS + "SELECT CAST(S.name AS int) AS n FROM S WINDOW NOW;")
    run = ["run", "q.xsql", "--input", "S=s.csv", "-o", "out"]
    assert main([*run, "--strict"]) == 2
    assert "in CAST(S.name AS int) at 3:8, row 1 of S at ts 1" in capfd.readouterr().err
    assert not Path("out").exists()
    assert main(run) == 0
    assert "in CAST(S.name AS int) at 3:8, " in capfd.readouterr().err


def test_inputs_are_never_overwritten(capfd: pytest.CaptureFixture[str]) -> None:
    Path("q.xsql").write_text(STREAMS + "REGISTER QUERY r AS " + JOIN)
    assert main(["run", "q.xsql", *INPUTS]) == 2
    assert "r.csv would be overwritten, and it is an input" in capfd.readouterr().err
    assert Path("r.csv").read_text() == R
    Path("many").mkdir()
    Path("many/r.csv").write_text(R)
    for given in ("R=many", "R=many/*.csv"):
        assert main(["run", "q.xsql", "--input", given, "--input", "S=s.csv", "-o", "many"]) == 2
        assert "many/r.csv would be overwritten" in capfd.readouterr().err
        assert Path("many/r.csv").read_text() == R
    Path("q.json").write_text(STREAMS + JOIN)
    assert main(["compile", "q.json"]) == 2
    assert Path("q.json").read_text() == STREAMS + JOIN
    assert main(["explain", "q.xsql", "-o", "q.xsql"]) == 2
    Path("q.xsql").write_text(STREAMS + "REGISTER QUERY S AS " + JOIN)
    assert main(["run", "q.xsql", *INPUTS, "-o", "out", "--late", "out"]) == 2
    assert "out/S.csv would hold results and late tuples" in capfd.readouterr().err


def test_late_rows_beside_the_results_do_not_replace_an_input(
    capfd: pytest.CaptureFixture[str],
) -> None:
    text = "CREATE STREAM R (a int) WITH (late = 'side'); SELECT a FROM R WINDOW NOW"
    Path("late.R.csv").write_text("ts,a\n5,2\n4,4\n")
    assert main(["run", "-c", text, "--input", "R=late.R.csv"]) == 2
    assert "late.R.csv would be overwritten" in capfd.readouterr().err
    assert Path("late.R.csv").read_text() == "ts,a\n5,2\n4,4\n"


@pytest.mark.parametrize("fails", ["finish", "publish"])
@pytest.mark.parametrize("which", ["q0", "R"])
def test_late_rows_and_results_appear_together(
    which: str, fails: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("r.csv").write_text("ts,a,b\n9,1,10\n2,2,20\n")
    for folder, name in (("late", "R"), ("out", "q0")):
        Path(folder).mkdir()
        Path(folder, f"{name}.csv").write_text("old\n")
    works = getattr(Writer, fails)

    def full(writer: Writer) -> None:
        if writer.path.stem == which:
            raise OutputError(f"{writer.path}: cannot be written: No space left on device")
        works(writer)

    monkeypatch.setattr(Writer, fails, full)
    assert main(["run", "q.xsql", *INPUTS, "-o", "out", "--late", "late"]) == 2
    assert "No space left" in capfd.readouterr().err
    assert {path.read_text() for path in Path().glob("*/*")} == {"old\n"}
    assert names("late") + names("out") == ["late/R.csv", "out/q0.csv"]


# --- usage and faults ----------------------------------------------------------


@pytest.mark.parametrize("arguments", [[], ["nope"], ["run", "q.xsql", "--format", "x"]])
def test_usage_errors(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "q.xsql", "--input", "R=loop", "--input", "S=s.csv"],
        ["run", "q.xsql", "--input", f"R={'a' * 300}.csv", "--input", "S=s.csv"],
        ["run", "q.xsql", *INPUTS, "-o", "loop/x"],
        ["run", "q.xsql", *INPUTS, "-o", "a" * 300],
        ["compile", "q.xsql", "-o", "loop/x"],
        ["compile", "q.xsql", "-o", "r.csv/x"],
        ["explain", "\udcff.xsql"],
        ["journal", "check", "a" * 300],
        ["query", "list", "--bridge", "grpc://[::1"],
    ],
)
def test_what_a_system_refuses_is_one_message(
    arguments: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    Path("loop").symlink_to("loop")
    before = names()
    assert main(arguments) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("seustream: ")
    assert "Traceback" not in err
    assert names() == before


@pytest.mark.parametrize("arguments", [["completion", "bash"], ["explain", "q.xsql"]])
def test_an_output_that_is_full_is_said(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "seustream", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment
        )
    assert (run.returncode, run.stderr) == (2, "seustream: No space left on device\n")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_without_inputs_and_outputs_it_does_its_work(closed: str) -> None:
    command = f'exec "$0" -m seustream run q.xsql {" ".join(INPUTS)} -o out {closed}'
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        ["bash", "-c", command, sys.executable], capture_output=True, text=True, env=environment
    )
    assert (run.returncode, "Traceback" in run.stderr) == (0, False)
    assert Path("out/q0.csv").read_text() == RESULT


def test_results_for_an_output_that_is_closed() -> None:
    command = f'exec "$0" -m seustream run q.xsql {" ".join(INPUTS)} -o - >&-'
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        ["bash", "-c", command, sys.executable], capture_output=True, text=True, env=environment
    )
    assert (run.returncode, run.stderr.splitlines()[0]) == (2, "seustream: stdout is closed")


def test_an_interrupt_while_a_command_is_imported(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupted(given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "parsed", interrupted)
    assert main(["sql"]) == 130
    assert capfd.readouterr().err == "seustream: interrupted\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_told_to_end_leaves_nothing_half_done(number: int) -> None:
    """SIGTERM while results are written leaves the earlier files as they were, and nothing else."""
    rows = 200_000
    Path("q.xsql").write_text(
        "CREATE STREAM R (a int, b int); SELECT * FROM R WHERE R.a < 5 WINDOW NOW;"
    )
    Path("r.csv").write_text("ts,a,b\n" + "".join(f"{ts},1,2\n" for ts in range(rows)))
    Path("out").mkdir()
    Path("out/q0.csv").write_text("before")
    command = [sys.executable, "-m", "seustream", "run", "q.xsql", "--input", "R=r.csv"]
    command += ["--backend", "iss", "--config", "tiny", "-o", "out"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        while not list(Path("out").glob(".*")) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(number)
        assert process.stderr is not None
        said = process.stderr.read()
    word = "seustream: terminated\n" if number == signal.SIGTERM else ""  # the terminal is gone
    assert (process.returncode, said) == (128 + number, word)
    assert [path.name for path in Path("out").iterdir()] == ["q0.csv"]
    assert Path("out/q0.csv").read_text() == "before"


def test_a_terminal_that_is_closed() -> None:
    """There is nobody to whom the end of the bar could be shown."""
    Path("q.xsql").write_text(
        "CREATE STREAM R (a int); SELECT x.a FROM R x, R y WHERE x.a = y.a WINDOW UNBOUNDED"
    )
    Path("r.csv").write_text("ts,a\n" + "".join(f"{ts},1\n" for ts in range(20_000)))
    process, terminal = pty.fork()
    if process == 0:
        os.environ["PYTHONPATH"] = str(ROOT)
        arguments = ["-m", "seustream", "run", "q.xsql", "--input", "R=r.csv", "-o", "out"]
        os.execv(sys.executable, [sys.executable, *arguments])
    while b"%" not in os.read(terminal, 1000):
        pass
    os.close(terminal)
    _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == 128 + signal.SIGHUP
    assert not Path("out").exists()


def test_a_fault_of_ours_is_status_1(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(arguments: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(module_of("compile"), "run", broken)
    assert main(["compile", "q.xsql"]) == 1
    assert "internal error" in capfd.readouterr().err


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
@pytest.mark.parametrize("arguments", [["explain", "q.xsql"], ["compile", "q.xsql", "-o", "image"]])
def test_standard_output_in_any_encoding(arguments: list[str], encoding: str) -> None:
    """What it lacks comes as a backslash and a number."""
    done = subprocess.run(
        [sys.executable, "-m", "seustream", *arguments],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, b"Error" in done.stderr) == (0, False)
    assert (b"\\u" in done.stdout) == (encoding != "utf-8")
