"""The page's server answers only requests with the token, reads no other file, and reports
errors."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pytest

pytest.importorskip("starlette", reason="the studio's packages are an extra")
from starlette.testclient import TestClient

from seustream.cli import main
from seustream.studio.server import Studio, application, gallery

TEXT = """CREATE STREAM R (a int); CREATE STREAM S (d int);
REGISTER QUERY q AS SELECT * FROM R, S WHERE R.a = S.d WINDOW RANGE 10;"""


@pytest.fixture
def browser() -> Iterator[TestClient]:
    studio = Studio("secret", {"mine.xsql": TEXT})
    with TestClient(application(studio), base_url="http://127.0.0.1") as client:
        yield client


def ask(client: TestClient, what: str, about: object = None, token: str = "secret") -> Any:
    about = {} if about is None else about
    return client.post(f"/ask/{what}", content=json.dumps(about), headers={"x-studio-token": token})


def test_the_page_comes_with_its_policy(browser: TestClient) -> None:
    answer = browser.get("/")
    assert answer.status_code == 200
    assert "studio.js" in answer.text
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert browser.get("/studio.js").status_code == 200


@pytest.mark.parametrize(
    "path", ["/../server.py", "/%2e%2e/server.py", "/gallery/eight.xsql", "/..%2f..%2fcli.py"]
)
def test_no_other_file_is_read(browser: TestClient, path: str) -> None:
    assert browser.get(path).status_code == 404


@pytest.mark.parametrize("token", ["", "secre", "secret2", "ünï"])
def test_a_wrong_token_gets_nothing(browser: TestClient, token: str) -> None:
    for what in (
        "start",
        "compile",
        "run",
        "watch",
        "flow",
        "sites",
        "boards",
        "live",
        "rows",
        "statement",
        "identify",
    ):
        headers = {"x-studio-token": token.encode()}
        assert browser.post(f"/ask/{what}", json={}, headers=headers).status_code == 403
    assert browser.get("/ask/start").status_code in (404, 405)


def test_another_host_name_is_refused() -> None:
    with TestClient(application(Studio("secret")), base_url="http://evil.example") as client:
        assert client.get("/").status_code == 400


def test_it_starts_with_what_was_named(browser: TestClient) -> None:
    found = ask(browser, "start").json()
    assert found["named"] == [{"name": "mine.xsql", "text": TEXT}]
    assert found["backends"] == ["golden", "iss", "verilated"]


def test_every_text_of_the_gallery_compiles_and_runs(browser: TestClient) -> None:
    for one in gallery():
        assert ask(browser, "compile", {"text": one["text"]}).json()["problems"] == [], one["name"]
        about = {"text": one["text"], "backend": "iss", "count": 80}
        if one["name"] == "pattern":
            assert ask(browser, "watch", about).json()["matches"]
            continue
        if one["name"] == "intervals":
            assert ask(browser, "flow", about).json()["steps"][-1]["edges"]
            continue
        found = ask(browser, "run", about).json()
        assert any(step["results"] for step in found["steps"]), one["name"]
        assert one["said"].endswith((".", "tuple")), one["name"]


def test_dropped_files_are_the_streams(browser: TestClient) -> None:
    files = {"A": "ts,k,n\n1,7,x\n5,8,y\n", "B": "ts,k\n4,7\n6,7\n"}
    text = "REGISTER QUERY q AS SELECT A.n FROM A, B WHERE A.k = B.k WINDOW RANGE 10;"
    about = {"text": text, "files": files, "backend": "golden"}
    assert ask(browser, "compile", about).json()["streams"]["A"] == [
        ["k", "bigint"],
        ["n", "varchar"],
    ]
    found = ask(browser, "run", about).json()
    assert found["results"]["q"]["rows"] == [["x", 1, 4], ["x", 1, 6]]


JOIN = "REGISTER QUERY q AS SELECT S.y FROM R, S WHERE R.a = S.a WINDOW RANGE 10 s;"
CELLS = [
    ("varchar(10)", ["", '""', "NULL", "NA"], [None, "", "NULL", "NA"]),
    ("varchar(10)", ["007", "12"], ["007", "12"]),
    ("varchar(10)", ["2026-01-02", "12:30"], ["2026-01-02", "12:30"]),
    ("varchar(10)", ["true"], ["true"]),
    ("boolean", ["t", "F", "1"], [True, False, True]),
    ("int", ["  ", "5"], [None, 5]),
    ("real", ["0.1"], [0.1]),
    ("double precision", ["inf", "5"], ["Infinity", 5]),
    ("decimal(10,2)", ["1.10", "5"], ["1.10", "5.00"]),
    ("bigint", ["9007199254740993"], ["9007199254740993"]),
    ("time", ["12:30"], ["12:30:00.000"]),
    (
        "timestamp",
        ["2026-01-02", "2026-01-02T12:30:00+02:00"],
        ["2026-01-02T00", "2026-01-02T10:30"],
    ),
    ("interval", ["5 s"], ["5000 ms"]),
]


@pytest.mark.parametrize(("kind", "cells", "values"), CELLS)
def test_dropped_files_have_the_declared_types(
    browser: TestClient, kind: str, cells: list[str], values: list[Any]
) -> None:
    """The forms of cells are those of docs/reference/files.md."""
    text = f"CREATE STREAM R (a int); CREATE STREAM S (a int, y {kind}); {JOIN}"
    rows = "".join(f"{ts},1,{cell}\n" for ts, cell in enumerate(cells, 2))
    about = {"text": text, "files": {"R": "ts,a\n1,1\n", "S": f"ts,a,y\n{rows}"}}
    found = [row[0] for row in ask(browser, "run", about).json()["results"]["q"]["rows"]]
    if kind == "timestamp":
        found = [shown[: len(want)] for shown, want in zip(found, values, strict=True)]
    assert found == values


def test_bad_cells_are_said_by_line_and_leave_nothing(
    browser: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    text = f"CREATE STREAM R (a int); CREATE STREAM S (a int, y int); {JOIN}"
    about = {"text": text, "files": {"R": "ts,a\n1,1\n", "S": "ts,a,y\n2,1,5\n3,1,NA\n4,1,x\n"}}
    assert ask(browser, "run", about).json()["error"].splitlines() == [
        "S.csv:3: column y: 'NA' is not an int",
        "S.csv:4: column y: 'x' is not an int",
    ]
    assert not list(tmp_path.iterdir())


def test_files_are_named_after_streams_in_any_case(browser: TestClient) -> None:
    files = {"r": "ts,a\n1,5\n", "S": "ts,d\n2,5\n"}
    quoted = TEXT.replace("STREAM S", 'STREAM "my rows"').replace(", S", ', "my rows" AS S')
    mine = {"text": quoted, "files": {"r": files["r"], "My rows": files["S"]}}
    assert ask(browser, "run", mine).json()["results"]["q"]["rows"] == [[5, 5, 1, 2]]
    found = ask(browser, "run", {"text": TEXT, "files": files}).json()
    assert found["results"]["q"]["rows"] == [[5, 5, 1, 2]]
    answer = ask(browser, "run", {"text": TEXT, "files": files | {"R": files["r"]}})
    assert answer.json()["error"] == "r.csv and R.csv are of one stream"


@pytest.mark.parametrize("seed", range(5))
def test_a_run_of_dropped_files_is_one_of_the_command_line(
    browser: TestClient, seed: int, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """With timestamps, out of order: the same rows are late, and times have the same form."""
    chance = random.Random(seed)
    files = {}
    for name, column in (("R", "a"), ("S", "d")):
        rows = [f"2026-01-01 00:00:00.{chance.randrange(40):03},{n % 3}" for n in range(30)]
        files[name] = "\n".join([f"ts,{column}", *rows, ""])
        (tmp_path / f"{name}.csv").write_text(files[name], encoding="utf-8")
    (tmp_path / "q.xsql").write_text(TEXT, encoding="utf-8")
    given = [f"--input={name}={tmp_path / name}.csv" for name in files]
    assert main(["run", f"{tmp_path}/q.xsql", *given, "-o", "-", "--format", "jsonl"]) == 0
    lines = capfdbinary.readouterr().out.splitlines()
    expected = [[*json.loads(line).values()][1:] for line in lines]
    found = ask(browser, "run", {"text": TEXT, "files": files}).json()
    assert sorted(found["results"]["q"]["rows"]) == sorted(expected) != []
    assert found["left_out"]["R"]["rows"], f"seed {seed}"
    for step in found["steps"]:  # each step is of the row that it names
        table = found["rows"]["RS"[step["stream"]]]["rows"]
        assert int(table[step["sequence"]][0][-3:]) == step["ts"] % 1000


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"text": 5}, "want a text"),
        ({"text": TEXT, "count": -1}, "count = -1"),
        ({"text": TEXT, "count": 10**9}, "count = 1000000000"),
        ({"text": TEXT, "seed": True}, "seed = True"),
        ({"text": TEXT, "plan": "best"}, "no plan 'best'"),
        ({"text": TEXT, "backend": "grpc://elsewhere:1"}, "no device"),
        ({"text": TEXT, "files": {"../etc/passwd": "ts,a\n1,2\n"}}, "named after a stream"),
        ({"text": TEXT, "files": {"R": "ts,a\n1,2,3\n", "S": "ts,d\n"}}, "R.csv:2: 3 cells"),
        ({"text": TEXT, "files": {"R" * 300: "ts,a\n1,2\n"}}, "R.csv: File name too long"),
        ({"text": TEXT, "files": {"R": "\ud800"}}, "R.csv: 'utf-8' codec"),
        ({"text": TEXT, "files": {"my-rows": "ts,a\n1,2\n"}}, "my-rows.csv: want a file named"),
        ({"text": TEXT, "files": ["R"]}, "want files by stream"),
        ({"text": "SELECT"}, "SELECT"),
    ],
)
def test_what_is_wrong_is_said(browser: TestClient, about: object, said: str) -> None:
    answer = ask(browser, "run", about)
    assert answer.status_code == 422
    assert said in answer.json()["error"]


@pytest.mark.parametrize("what", ["compile", "run", "watch", "flow"])
def test_half_of_a_character(browser: TestClient, what: str) -> None:
    answer = ask(browser, what, {"text": TEXT + "\n-- \ud83d"})
    assert answer.status_code < 500
    assert "half of a character" in answer.text


def test_what_is_no_question_is_refused(browser: TestClient) -> None:
    head = {"x-studio-token": "secret"}
    for what in (b"{", b"[" * 100_000):
        assert browser.post("/ask/run", content=what, headers=head).status_code == 400
    assert ask(browser, "run", [1]).status_code == 400
    long = (b" " * (1 << 20) for _ in range(9))  # in chunks, so that no header states the length
    assert browser.post("/ask/run", content=long, headers=head).status_code == 413


@pytest.mark.parametrize("start", [-1, 0, 3, 70_000, 99_999, 100_000, 100_001])
def test_results_come_in_slices(
    browser: TestClient, monkeypatch: pytest.MonkeyPatch, start: int
) -> None:
    """Together the slices are the results from the offset on, or the last ones; each is short and
    states its end."""
    kept = pa.table({"a": range(100_000)}).slice(3)  # the first three are gone
    bridge = MagicMock()
    bridge.__enter__.return_value = bridge
    bridge.latest.return_value = {"first": 3, "end": 100_000, "run": 2}
    bridge.read.side_effect = lambda _, first, end, run: kept.slice(first - 3, end - first)
    monkeypatch.setattr(Studio, "_client", lambda _: bridge)
    answer = ask(browser, "rows", {"query": "q", "run": 2, "from": start})
    first = start if 3 <= start <= 100_000 else 100_000 - (1 << 15)
    end = min(first + (1 << 15), 100_000)
    assert (answer.headers["x-first"], answer.headers["x-end"]) == (str(first), str(end))
    found, stop = [], 0
    for after, until in json.loads(answer.headers["x-slices"]):
        slice_ = pa.ipc.open_stream(answer.content[stop:until]).read_all()["a"].to_pylist()
        stop = until
        assert 0 < len(slice_) <= 2048
        found += slice_
        assert found[-1] == after - 1
    assert stop == len(answer.content)
    assert found == list(range(first, end))


def test_results_of_a_later_run_are_no_continuation(
    browser: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query that was registered anew has other rows at the same offsets, even other columns."""
    bridge = MagicMock()
    bridge.__enter__.return_value = bridge
    bridge.latest.return_value = {"first": 0, "end": 5, "run": 3}
    bridge.read.side_effect = lambda _, first, end, run: pa.table({"b": range(first, end)})
    monkeypatch.setattr(Studio, "_client", lambda _: bridge)
    answer = ask(browser, "rows", {"query": "q", "run": 2, "from": 3})
    assert (answer.headers["x-first"], answer.headers["x-run"]) == ("0", "3")
    assert pa.ipc.open_stream(answer.content).read_all()["b"].to_pylist() == [0, 1, 2, 3, 4]
    bridge.read.assert_called_with("q", 0, 5, 3)
    again = ask(browser, "rows", {"query": "q", "run": 3, "from": 3})
    assert again.headers["x-first"] == "3"


DIVIDES = "CREATE STREAM I (v int, te bigint); REGISTER QUERY q AS APAS $$ select [z = 1 / $I.v] $$ WITH (strict)"
PATTERN = "CREATE STREAM E (x int); REGISTER QUERY p AS PATTERN ANY a; ANY b FROM E WITHIN 9 ms RETURN a.x;"


@pytest.mark.parametrize(
    ("what", "about", "said"),
    [
        ("flow", {"text": DIVIDES, "files": {"I": "ts,te,v\n1,3,0\n"}}, "division by zero"),
        ("watch", {"text": PATTERN, "engine": "columns"}, "no trace of engine columns"),
        ("run", {"text": TEXT, "files": {"\ud800": "x"}}, "\\ud800.csv"),
    ],
)
def test_what_fails_while_it_runs_is_said(
    browser: TestClient, what: str, about: object, said: str
) -> None:
    answer = ask(browser, what, about)
    assert answer.status_code == 422, answer.text
    assert said in answer.json()["error"]


def test_without_a_bridge_there_is_nothing_live(browser: TestClient) -> None:
    answer = ask(browser, "live")
    assert answer.status_code == 422
    assert answer.json()["error"] == "no bridge is named"


def test_a_bridge_that_is_gone_is_said_to_be_gone() -> None:
    studio = Studio("secret", bridge="grpc://127.0.0.1:1")
    with TestClient(application(studio), base_url="http://127.0.0.1") as client:
        assert "127.0.0.1:1" in ask(client, "live").json()["error"]
