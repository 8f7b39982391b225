"""`seustream studio`: its link, and the requests it refuses."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from seustream.cli import main
from seustream.commands import studio


@pytest.mark.parametrize("listen", ["8000", "127.0.0.1:", "127.0.0.1:http", ":99999999"])
def test_an_address_that_is_none(listen: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["studio", "--no-browser", "--listen", listen]) == 2
    assert "hint: 127.0.0.1:8000" in capsys.readouterr().err


def test_a_file_that_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["studio", "--no-browser", str(tmp_path / "q.xsql")]) == 2
    assert "q.xsql" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--bridge", "http://x"], "http://x: no address of a bridge"),
        (
            ["--bridge", "grpc://x", "--token-file", "none"],
            "the token or certificate cannot be read",
        ),
    ],
)
def test_a_bridge_that_is_none(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["studio", "--no-browser", *options]) == 2
    assert said in capsys.readouterr().err


def test_two_links(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["studio", "http://x/#share=a", "http://x/#share=b"]) == 2
    assert "two links" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2 is another address on Linux alone")
@pytest.mark.parametrize(("asked", "reached"), [([], False), (["--listen", "0.0.0.0:0"], True)])
def test_no_address_but_loopback_is_listened_at_unless_asked(
    asked: list[str],
    reached: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A socket bound to all addresses also answers at 127.0.0.2; one bound to 127.0.0.1 does
    not."""
    found = []

    class Looked(studio.EndSignal):
        """Finds where the studio listens, and ends it."""

        def wait(self) -> None:
            (port,) = re.findall(r":(\d+)/#token", capsys.readouterr().out)
            for address in ("127.0.0.1", "127.0.0.2"):
                try:
                    socket.create_connection((address, int(port))).close()
                except ConnectionRefusedError:
                    continue
                found.append(address)

    monkeypatch.setattr(studio, "EndSignal", Looked)
    # Wait long on a slow machine: giving up would end the process, and the tests with it.
    monkeypatch.setattr(studio, "_GRACE", 300)
    assert main(["studio", "--no-browser", *asked]) == 0
    assert found == ["127.0.0.1", *["127.0.0.2"] * reached]


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["studio", "--no-browser", "--listen", address]) == 2
    assert address in capsys.readouterr().err


LONG = (
    "".join(f"CREATE STREAM A{n} (k int, v int);" for n in range(4))
    + "SELECT A0.v FROM A0, A1, A2, A3 WHERE A0.k = A1.k AND A1.k = A2.k AND A2.k = A3.k"
    " WINDOW RANGE 1 hour;"
)
"""A text whose run over the rows of a seed takes minutes."""


def _ticks(process: int) -> int:
    """Returns the processor time of a process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_a_run_is_cut_off_without_a_word() -> None:
    command = [sys.executable, "-m", "seustream", "studio", "--no-browser"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        found = re.search(r"127.0.0.1:(\d+)/#token=(\S+)", process.stdout.readline())
        assert found is not None
        body = json.dumps({"text": LONG, "count": 1000})
        with closing(HTTPConnection("127.0.0.1", int(found[1]))) as asked:
            asked.request("POST", "/ask/run", body, {"x-studio-token": found[2]})
            begun = _ticks(process.pid)
            while _ticks(process.pid) < begun + 2 * os.sysconf("SC_CLK_TCK"):  # it runs by then
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "stopped\n")


def test_texts_of_one_name_are_all_opened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one whose name looks like a link's end."""
    texts = [tmp_path / "a" / "q.xsql", tmp_path / "b" / "q.xsql", tmp_path / "my_share=1.xsql"]
    for number, path in enumerate(texts):
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"-- {number}\n", encoding="utf-8")
    opened: list[Mapping[str, str]] = []

    class Opened(studio.EndSignal):
        def wait(self) -> None:
            host, token = re.findall(r"http://(\S+)/#token=(\S+)", capsys.readouterr().out)[0]
            with closing(HTTPConnection(host)) as asked:
                asked.request("POST", "/ask/start", "{}", {"x-studio-token": token})
                opened.extend(json.loads(asked.getresponse().read())["named"])

    monkeypatch.setattr(studio, "EndSignal", Opened)
    monkeypatch.setattr(studio, "_GRACE", 300)
    assert main(["studio", "--no-browser", *map(str, texts)]) == 0
    assert [one["text"] for one in opened] == ["-- 0\n", "-- 1\n", "-- 2\n"]
    assert [one["name"] for one in opened] == [*map(str, texts)]


def test_it_prints_its_link_with_what_was_shared_and_stops_when_told() -> None:
    link = "http://a:1/#share=eyJ9"
    command = [sys.executable, "-m", "seustream", "studio", "--no-browser", link]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "stopped\n")
    assert "http://127.0.0.1:" in said
    assert "#token=" in said
    assert said.rstrip().endswith("&share=eyJ9")
