"""`seustream query` against `seustream serve --sources`, as its users type it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from seustream.cli import main
from tests.docs.blocks import ROOT

FAST = "where $I.v > 5 select [v = $I.v, at = $I.at]\n"
HEADER = {"type": "HEADER", "stream": "I", "schema": [["v", "INTEGER"], ["at", "DATETIME"]]}
COMMAND = [sys.executable, "-m", "seustream"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}


class Served:
    """Runs `seustream serve --sources` in a process of its own, with a source of stream I."""

    def __init__(self, *options: str) -> None:
        listen = ["--listen", "grpc://127.0.0.1:0", "--sources", "tcp://127.0.0.1:0"]
        self.process = subprocess.Popen(
            [*COMMAND, "serve", "--config", "tiny", *listen, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        said = self.process.stderr.readline()
        found = re.fullmatch(r"sources on tcp://127\.0\.0\.1:(\d+)\n", said)
        if not found:
            raise AssertionError(said + self.process.communicate(timeout=60)[1])
        self.bridge = ["--bridge", self.process.stdout.readline().split(" on ")[1].strip()]
        self.source = socket.create_connection(("127.0.0.1", int(found[1])))

    def send(self, *messages: dict[str, object]) -> None:
        self.source.sendall(b"".join(json.dumps(m).encode() + b"\n" for m in messages))

    def insert(self, *values: int) -> None:
        """Inserts values of I, each lasting a millisecond, and promises that nothing earlier
        comes."""
        for v in values:
            self.send({"type": "INSERTION", "ts": v, "te": v + 1, "values": [v, 1000 * v]})
        self.send({"type": "BOUNDARY", "ts": values[-1] + 1})

    def end(self) -> tuple[int, str]:
        self.process.terminate()
        _, said = self.process.communicate(timeout=60)
        self.source.close()
        return self.process.returncode, said


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.chdir(tmp_path)
    Path("fast.apas").write_text(FAST)
    made = Served()
    try:
        made.send(HEADER)
        yield made
    finally:
        if made.process.poll() is None:
            made.end()


def query(*words: str) -> int:
    return main(["query", *words])


def wait_for(served: Served, capfd: pytest.CaptureFixture[str], shown: str) -> str:
    """Lists until a line matches; returns the listing."""
    for _ in range(500):
        assert query("list", *served.bridge) == 0
        out = capfd.readouterr().out
        if re.search(shown, out, re.M):
            return out
        time.sleep(0.01)
    raise AssertionError(out)


def test_a_query_from_registration_to_end(
    served: Served, capfd: pytest.CaptureFixture[str]
) -> None:
    wait_for(served, capfd, r"^I +CONNECTED")
    assert query("register", "fast", "fast.apas", *served.bridge) == 0
    assert capfd.readouterr().err == "fast is RUNNING, run 1\n"
    command = [*COMMAND, "query", "results", "fast", "--follow", "--format", "jsonl"]
    with (
        subprocess.Popen(
            [*command, *served.bridge], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
        ) as follow,
        contextlib.ExitStack() as failing,
    ):
        failing.callback(follow.kill)  # otherwise a failure below would wait for it
        served.insert(3, 7)
        assert follow.stdout is not None
        # A result comes before the query ends.
        first = json.loads(follow.stdout.readline())
        assert (first["ts"], first["te"], first["v"]) == (7, 8, 7)
        served.insert(9, 4)
        served.send({"type": "BOUNDARY", "ts": 10})
        figures = r"fast +[\d.]+ +[\d.]+ +0 +0.667 +[\d.]+ % +- +-$"
        shown = rf"^fast +RUNNING +1 +2 +2 +1 +- +from the beginning$[\s\S]+^{figures}"
        listed = wait_for(served, capfd, shown)
        assert max(map(len, listed.splitlines())) <= 80
        assert re.search(r"^I +CONNECTED +3 +2 +I\{v INTEGER, at DATETIME\}$", listed, re.M)
        assert query("results", "fast", *served.bridge) == 0
        assert capfd.readouterr().out == (
            "ts,te,v,at\n7,8,7,1970-01-01T00:00:07.000000\n9,10,9,1970-01-01T00:00:09.000000\n"
        )
        assert query("results", "fast", "--start", "1", *served.bridge) == 0
        assert capfd.readouterr().out.splitlines()[1:] == ["9,10,9,1970-01-01T00:00:09.000000"]
        assert query("stop", "fast", *served.bridge) == 0
        assert "fast is STOPPED" in capfd.readouterr().err
        rest, _ = follow.communicate(timeout=30)
        assert follow.returncode == 0
        assert [json.loads(line)["v"] for line in rest.splitlines()] == [9]
    assert query("log", "fast", *served.bridge) == 0
    lines = capfd.readouterr().out.splitlines()
    assert all(re.match(r"20\d\d-\d\d-\d\dT[\d:.]{12}Z run 1 ", line) for line in lines)
    assert [line.split()[4].rstrip(":") for line in lines] == ["RUNNING", "STOPPED"]
    assert query("drop", "fast", *served.bridge) == 0
    assert query("log", "fast", *served.bridge) == 2


def test_queries_of_all_languages(served: Served, capfd: pytest.CaptureFixture[str]) -> None:
    wait_for(served, capfd, r"^I +CONNECTED")
    Path("q.xsql").write_text(
        "CREATE STREAM big AS SELECT v FROM I WHERE v > 5 WINDOW NOW;\n"
        "REGISTER QUERY biggest AS SELECT max(v) AS m FROM big WINDOW ROWS 9;\n"
        "REGISTER QUERY rise AS PATTERN ANY x; ANY y FROM I WHERE y.v > x.v WITHIN 2 ms"
        " RETURN x.v, y.v AS w;\n"
        "SHOW STREAMS;"
    )
    Path("one.xsql").write_text("SELECT v + 1 AS w FROM I WINDOW NOW;")
    assert query("register", "q.xsql", *served.bridge) == 0
    assert capfd.readouterr().err.splitlines() == [
        "stream I (te bigint, v bigint, at timestamp)",
        "stream big (v bigint)",
        "stream big is created",
        "biggest is RUNNING, run 1",
        "rise is RUNNING, run 1",
    ]
    assert query("register", "one", "one.xsql", *served.bridge) == 0
    Path("long.xsql").write_text("REGISTER QUERY long FOR 500000 weeks AS SELECT v FROM I;")
    assert query("register", "long.xsql", *served.bridge) == 0
    capfd.readouterr()
    assert query("list", *served.bridge) == 0  # a year that no date has
    assert re.search(r"^long .* never ", capfd.readouterr().out, re.MULTILINE)
    served.insert(3, 7, 8)
    served.send({"type": "STOP"})
    wait_for(served, capfd, r"^I +STOPPED")
    for name, rows in (("biggest", "m:7,8"), ("rise", "7:8"), ("one", "w:4,8,9")):
        assert query("results", name, "--follow", *served.bridge) == 0
        head, *found = capfd.readouterr().out.splitlines()
        first, _, cells = rows.rpartition(":")
        assert (head.split(",")[0], [row.split(",")[0] for row in found]) == (
            first if name != "rise" else "v",
            cells.split(",") if name != "rise" else ["7"],
        )
    Path("wrong.xsql").write_text("REGISTER QUERY w AS\nSELECT z FROM I WINDOW NOW;")
    assert query("register", "wrong.xsql", *served.bridge) == 2
    assert "wrong.xsql:2:8: " in capfd.readouterr().err
    assert query("register", "fast.apas", *served.bridge) == 2
    assert "an APAS query needs a name" in capfd.readouterr().err


def test_a_graceful_stop_ends_queries_too(
    served: Served, capfd: pytest.CaptureFixture[str]
) -> None:
    wait_for(served, capfd, r"^I +CONNECTED")
    assert query("register", "fast", "fast.apas", *served.bridge) == 0
    status, said = served.end()
    assert status == 0
    assert said.endswith("stopping\nstopped\n")


def test_what_query_refuses(served: Served, capfd: pytest.CaptureFixture[str]) -> None:
    wait_for(served, capfd, r"^I +CONNECTED")
    Path("wrong.apas").write_text("where $I.v > 5\nselect [v = $I.w,\nx = $J.v]\n")
    assert query("register", "wrong", "wrong.apas", *served.bridge) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("wrong.apas:2:14: ")
    assert "\n  select [v = $I.w,\n" in err
    assert "\nwrong.apas:3:" in err
    assert "hint: " in err
    for words, complaint in (
        (["register", "q", "none.apas"], "none.apas: No such file"),
        (["register", "", "fast.apas"], "want 1 to 200 printable characters"),
        (["stop", "none"], "there is no query none"),
        (["log", "none"], "there is no query none"),
        (["results", "none"], "there is no query none"),
        (["drop", "none"], "there is no query none"),
        (["results", "wrong", "--start", "-5"], "--start -5: want 0 or more"),
        (["list", "--token-file", "none"], "cannot be read"),
    ):
        assert query(*words, *served.bridge) == 2, words
        assert complaint in capfd.readouterr().err
    assert query("register", "fast", "fast.apas", *served.bridge) == 0
    assert query("register", "fast", "fast.apas", *served.bridge) == 2
    assert "fast is live already" in capfd.readouterr().err
    assert query("results", "fast", "--start", "5", *served.bridge) == 2
    assert "none from 5 on" in capfd.readouterr().err


def test_a_token_is_asked_for(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-of-this-test")
    made = Served("--token-file", str(token))
    try:
        assert query("list", *made.bridge) == 2
        assert "--token-file F" in capfd.readouterr().err
        assert query("list", *made.bridge, "--token-file", str(token)) == 0
        assert capfd.readouterr().out.startswith("query")
    finally:
        assert made.end()[0] == 0


def test_nobody_there(capfd: pytest.CaptureFixture[str]) -> None:
    assert query("list", "--bridge", "grpc://127.0.0.1:1") == 2
    assert "is the bridge running there?" in capfd.readouterr().err
    with pytest.raises(SystemExit) as caught:
        query("lis")
    assert caught.value.code == 2
