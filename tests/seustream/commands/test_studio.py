"""`seustream studio`: its link, and the requests it refuses."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
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


def test_it_prints_its_link_with_what_was_shared_and_stops_when_told() -> None:
    import signal

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
