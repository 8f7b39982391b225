"""Tests the files that open a bridge, through the commands; certificates are made on the spot."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from seustream.cli import main
from seustream.cosim.bridge.access import Access
from seustream.cosim.bridge.client import BridgeClient
from tests.cosim.bridge.serving import bridge

TOKEN = "0123456789abcdef"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Yields a bridge that requires a token and a client certificate, and the folder with both."""
    folder = tmp_path_factory.mktemp("access")
    authority = trustme.CA()
    served, own = authority.issue_cert("127.0.0.1"), authority.issue_cert("client@example.org")
    pair = (served.cert_chain_pems[0].bytes(), served.private_key_pem.bytes())
    (folder / "token").write_text(TOKEN + "\n")
    (folder / "ca").write_bytes(authority.cert_pem.bytes())
    (folder / "cert").write_bytes(own.cert_chain_pems[0].bytes())
    (folder / "key").write_bytes(own.private_key_pem.bytes())
    (folder / "q.xsql").write_text(
        "CREATE STREAM R (a int); CREATE STREAM S (a int);"
        "SELECT R.a FROM R, S WHERE R.a = S.a WINDOW RANGE 20;"
    )
    (folder / "r.csv").write_text("ts,a\n1,5\n2,6\n")
    with bridge(folder / "j", token=TOKEN, tls=pair, client_ca=(folder / "ca").read_bytes()) as it:
        yield it[1], folder


OPTIONS = ["--token-file", "token", "--tls-ca", "ca", "--tls-cert", "cert", "--tls-key", "key"]
COMMANDS = [
    ["query", "list", "--bridge"],
    ["sql", "--bridge"],
    [
        "run",
        "q.xsql",
        "--input",
        "R=r.csv",
        "--input",
        "S=r.csv",
        "--config",
        "tiny",
        "-o",
        "-",
        "--backend",
    ],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_commands_come_in_with_a_certificate_and_not_without(
    command: list[str],
    place: tuple[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    url, folder = place
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"LIST;")))
    assert main([*command, url, *OPTIONS]) == 0, capfd.readouterr().err
    with monkeypatch.context() as quick:
        quick.setattr("seustream.cosim.bridge.client._FIRST_PAUSE", 9.0)
        assert main([*command, url, *OPTIONS[:4]]) == 2
    said = capfd.readouterr().err
    assert url in said
    assert "--tls-cert" in said


@pytest.mark.parametrize("option", ["--tls-cert", "--tls-key"])
def test_a_certificate_without_its_key_is_refused(
    option: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["query", "list", option, "c.pem"]) == 2
    assert "come together" in capfd.readouterr().err


def test_files_that_are_not_there_are_named(capfd: pytest.CaptureFixture[str]) -> None:
    given = ["query", "list", "--tls-cert", "none.pem", "--tls-key", "no.key"]
    assert main(given) == 2
    assert "none.pem" in capfd.readouterr().err
    with pytest.raises(ValueError, match="come together"):
        Access(tls_cert="c.pem")


def test_without_files_a_client_has_no_secrets() -> None:
    with BridgeClient.of("grpc://127.0.0.1:1") as client:
        assert client._options == {}
