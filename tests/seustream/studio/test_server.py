"""The page's server answers only requests with the token, reads no other file, and reports
errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pytest

pytest.importorskip("starlette", reason="the studio's packages are an extra")
from starlette.testclient import TestClient

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
    return client.post(f"/ask/{what}", json=about, headers={"x-studio-token": token})


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


def test_dropped_files_are_read_once_a_run(
    browser: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyarrow import csv

    read, whole = [], csv.read_csv

    def noted(source: Any) -> Any:
        read.append(source)
        return whole(source)

    monkeypatch.setattr(csv, "read_csv", noted)
    text = "REGISTER QUERY q AS SELECT A.k FROM A, B WHERE A.k = B.k WINDOW RANGE 10;"
    files = {"A": "ts,k\n1,7\n", "B": "ts,k\n4,7\n"}
    assert ask(browser, "run", {"text": text, "files": files}).status_code == 200
    assert len(read) == 2


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
        ({"text": TEXT, "files": {"R": "ts,a\n1,2,3\n"}}, "R.csv"),
        ({"text": TEXT, "files": ["R"]}, "want files by stream"),
        ({"text": "SELECT"}, "SELECT"),
    ],
)
def test_what_is_wrong_is_said(browser: TestClient, about: object, said: str) -> None:
    answer = ask(browser, "run", about)
    assert answer.status_code == 422
    assert said in answer.json()["error"]


def test_what_is_no_question_is_refused(browser: TestClient) -> None:
    head = {"x-studio-token": "secret"}
    assert browser.post("/ask/run", content=b"{", headers=head).status_code == 400
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
    bridge.latest.return_value = {"first": 3, "end": 100_000}
    bridge.read.side_effect = lambda _, first, end: kept.slice(first - 3, end - first)
    monkeypatch.setattr(Studio, "_client", lambda _: bridge)
    answer = ask(browser, "rows", {"query": "q", "from": start})
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


def test_without_a_bridge_there_is_nothing_live(browser: TestClient) -> None:
    answer = ask(browser, "live")
    assert answer.status_code == 422
    assert answer.json()["error"] == "no bridge is named"


def test_a_bridge_that_is_gone_is_said_to_be_gone() -> None:
    studio = Studio("secret", bridge="grpc://127.0.0.1:1")
    with TestClient(application(studio), base_url="http://127.0.0.1") as client:
        assert "127.0.0.1:1" in ask(client, "live").json()["error"]
