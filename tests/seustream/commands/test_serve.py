"""`seustream serve`, started and stopped as its users do, and `run` on the device it serves."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import socket
import threading
import time
from pathlib import Path

import pyarrow.flight as flight
import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from seustream.cli import main
from seustream.commands import serve
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.journal_errors import JournalHeld
from tests.cosim.bridge.serving import Process, compiled, feed_epoch, results, streams, wanted

STREAMS = "CREATE STREAM R (a int, b int);\nCREATE STREAM S (d int, e int);\n"
QUERY = STREAMS + "SELECT R.b, S.e FROM R, S WHERE R.a = S.d WINDOW RANGE 20;\n"
RESULT = "b,e,ts_oldest,ts_newest\n10,20,1,2\n11,21,4,8\n"
RUN = ["run", "q.xsql", "--input", "R=r.csv", "--input", "S=s.csv", "-o", "-", "--backend"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.xsql").write_text(QUERY)
    Path("r.csv").write_text("ts,a,b\n1,5,10\n4,6,11\n")
    Path("s.csv").write_text("ts,d,e\n2,5,20\n8,6,21\n")


def test_serve_run_and_stop(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Runs on the served device, then keeps a session over a graceful stop and start."""
    bridge = Process(tmp_path / "journal")
    rows, names = streams(100, 1), ("pairs", "large")
    assert main([*RUN, bridge.url, "--config", "tiny"]) == 0
    out, err = capfd.readouterr()
    assert out == RESULT
    assert f"on backend {bridge.url}" in err
    assert main([*RUN, bridge.url]) == 2
    said = capfd.readouterr().err
    assert "serves configuration 'tiny', not 'default'" in said
    assert "hint: --config tiny\n" in said
    with BridgeClient(bridge.url) as client:
        client.load(compiled())
        feed_epoch(client, 0, rows)
        assert main([*RUN, bridge.url, "--config", "tiny"]) == 2
        assert "the bridge serves a query set" in capfd.readouterr().err
        status, said = bridge.terminate()
        assert (status, "stopped" in said) == (0, True)
        bridge.start()
        client.end()
        assert results(client, names) == wanted(compiled(), rows)
    status, said = bridge.terminate()
    assert status == 0
    assert "0 records to replay" in said  # it has left a snapshot
    assert "--strict" not in said
    bridge.options = ("--strict",)
    bridge.start()
    status, said = bridge.terminate()
    assert (status, "warning: --strict has no effect" in said) == (0, True)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--listen", "grpc://0.0.0.0:0"], "there is no token"),
        (["--listen", "127.0.0.1"], "no address of a bridge"),
        (["--metrics", "0.0.0.0:0"], "there is no token"),
        (["--metrics", "127.0.0.1"], "--metrics 127.0.0.1: want HOST:PORT"),
        (["--metrics", "[::1]"], "--metrics [::1]: want HOST:PORT"),
        (["--metrics", "[::1:9"], "want HOST:PORT"),
        (["--metrics", ":9"], "want HOST:PORT"),
        (["--metrics", "127.0.0.1:99999"], "want HOST:PORT"),
        (["--token-file", "none"], "No such file"),
        (["--token-file", "r.csv"], "want a token of 16"),
        (["--tls-cert", "r.csv"], "TLS takes"),
        (["--listen", "grpc+tls://127.0.0.1:0"], "TLS takes"),
        (["--backend", "goldn"], "did you mean golden?"),
        (["--config", "tinny"], "did you mean tiny?"),
        (["--most-epoch-rows", "0"], "--most-epoch-rows 0: want 1 or more"),
        (["--sources", "tcp://0.0.0.0:0"], "sources have no token"),
        (["--sources", "127.0.0.1:9000"], "no address for sources"),
        (["--sources", "tcp://[::1"], "no address for sources"),
        (["--sources", "tcp://127.0.0.1"], "no address for sources"),
        (["--idle-timeout", "0"], "--idle-timeout 0: want more than 0"),
        (["--most-calls", "0"], "--most-calls 0: want 1 or more"),
    ],
)
def test_what_serve_refuses(
    options: list[str], complaint: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *options]) == 2
    assert complaint in capfd.readouterr().err


@pytest.mark.parametrize("what", ["listen", "metrics", "sources"])
def test_a_port_that_is_taken_leaves_no_journal(
    what: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "j"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        scheme = {"listen": "grpc://", "sources": "tcp://"}.get(what, "")
        options = ["--listen", "grpc://127.0.0.1:0"] if what != "listen" else []
        options += [f"--{what}", f"{scheme}{at}", "--journal", str(folder)]
        assert main(["serve", *options]) == 2
        assert at in capfd.readouterr().err
        assert not folder.exists()


@pytest.mark.parametrize(
    "options",
    ["--journal j", "--metrics 127.0.0.1:0", "--sources tcp://127.0.0.1:0", "--backend golden", "--strict",
     "--max-memory 1GB", "--tls-client-ca ca", "--most-epoch-rows 5", "--idle-timeout 9", "--config tiny"],
)  # fmt: skip
def test_options_of_a_bridge_are_refused_for_a_site(
    options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["serve", "--site", "R=r.csv", *options.split()]) == 2
    assert f"{options.split()[0]} has no effect with --site" in capfd.readouterr().err
    assert not Path("j").exists()


def test_defaults_of_a_bridge_do_not_concern_a_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEUSTREAM_BACKEND", "golden")
    assert main(["serve", "--site", "R=none.csv"]) == 2
    assert "none.csv" in capfd.readouterr().err


@pytest.mark.parametrize("bad", ["cert", "key", "ca", "locked"])
@pytest.mark.parametrize("site", [[], ["--site", "R=r.csv"]])
def test_files_of_tls_that_are_bad_are_named(
    bad: str, site: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """No traceback, and no question for a password."""
    if site and bad == "ca":
        pytest.skip("a site takes no certificates of clients")
    issued = trustme.CA().issue_cert("127.0.0.1")
    files = {"cert": issued.cert_chain_pems[0].bytes(), "key": issued.private_key_pem.bytes()}
    files |= {} if site else {"ca": files["cert"]}
    if bad == "locked":
        key = serialization.load_pem_private_key(files["key"], None)
        lock = serialization.BestAvailableEncryption(b"secret")
        form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        files["key"] = key.private_bytes(*form, lock)
    options = ["--listen", "grpc+tls://127.0.0.1:0", *site]
    for name, content in files.items():
        Path(name).write_bytes(b"x\n" if name == bad else content)
        options += ["--tls-client-ca" if name == "ca" else f"--tls-{name}", name]
    assert main(["serve", *options]) == 2
    said = capfd.readouterr().err
    assert "Traceback" not in said
    assert (
        "ca: no certificate" if bad == "ca" else "cert, key: no certificate and its key"
    ) in said


def test_an_address_that_is_taken_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"grpc://127.0.0.1:{taken.getsockname()[1]}"
        assert main(["serve", "--listen", address]) == 2
    said = capfd.readouterr().err
    assert f"{address}: nothing can listen there" in said
    assert "Traceback" not in said


def test_a_signal_ends_it_whatever_clients_do(tmp_path: Path) -> None:
    """Covers idle exchanges of every kind, calls that wait, and readers that do not read."""
    bridge = Process(tmp_path / "journal", "--most-result-rows", "50")
    rows, kept = streams(3000, 1), []
    with BridgeClient(bridge.url) as client:
        client.load(compiled())
        feed_epoch(client, 0, rows)
        for number, table in enumerate((None, rows["R"])):
            connection = flight.connect(bridge.url)
            stage = p.Stage("w", "R", 1, number, f"{number}")
            writer, reader = connection.do_exchange(
                flight.FlightDescriptor.for_command(p.write(stage))
            )
            if table is not None:
                writer.begin(table.schema)
                writer.write_table(table)
            kept.append((connection, writer, reader))
        waiting = threading.Thread(target=_flush, args=(bridge.url,))
        waiting.start()
        time.sleep(0.5)
        start = time.monotonic()
        status, said = bridge.terminate()
        assert time.monotonic() - start < 8
        assert (status, "stopped" in said) == (0, True)
        assert not list(tmp_path.rglob("*.partial"))
        bridge.start()
        waiting.join()
        assert client.status()["writer_epoch"] == {"w": 0}
        assert bridge.terminate()[0] == 0


def _flush(url: str) -> None:
    with BridgeClient(url, patience=0) as client, contextlib.suppress(BridgeError):
        client.flush()


def test_a_journal_is_no_place_for_other_files(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """No command touches anything in the folder."""
    folder = tmp_path / "Documents"
    (folder / "photos").mkdir(parents=True)
    (folder / "photos" / "1.jpg").write_text("x")
    (folder / "thesis.txt").write_text("x")
    assert main(["serve", "--journal", str(folder)]) == 2
    said = capfd.readouterr().err
    assert f"{folder}: no journal puts there photos/, thesis.txt" in said
    assert "hint: give a folder that is empty" in said
    assert sorted(path.name for path in folder.rglob("*")) == ["1.jpg", "photos", "thesis.txt"]


def test_a_journal_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    assert main(["serve", "--journal", str(tmp_path / "j")]) == 2
    monkeypatch.undo()
    said = capfd.readouterr().err
    assert "the journal cannot be written: No space left on device" in said
    assert "hint: is there room" in said
    (tmp_path / "file").write_text("x")
    assert main(["serve", "--journal", str(tmp_path / "file")]) == 2
    assert str(tmp_path / "file") in capfd.readouterr().err


def test_a_damaged_journal_is_named_or_made_good(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "journal"
    bridge = Process(folder, "--config", "tiny")
    rows, names = streams(100, 1), ("pairs", "large")
    with BridgeClient(bridge.url) as client:
        client.load(compiled())
        feed_epoch(client, 0, rows)
        bridge.kill()
        other = shutil.copytree(folder, tmp_path / "other")
        log = next(folder.glob("log-*.a"))
        log.write_bytes(log.read_bytes()[:-30])
        bridge.start()
        client.end()
        assert results(client, names) == wanted(compiled(), rows)
        assert f"journal: made good: {log}: byte" in bridge.terminate()[1]
    part = next((other / "staged").glob("*.part"))
    data = bytearray(part.read_bytes())
    data[700] ^= 1
    part.write_bytes(bytes(data))
    assert main(["serve", "--config", "tiny", "--journal", str(other)]) == 2
    said = capfd.readouterr().err
    assert f"{part}: byte 0: not the bytes that were written" in said
    assert "seustream journal check" in said
    assert part.read_bytes() == data


def test_a_folder_that_another_bridge_has_just_begun_stays(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def held(*_: object) -> None:
        Path("j").mkdir()
        Path("j/log").touch()
        raise JournalHeld("j is the journal of a bridge that is running")

    monkeypatch.setattr(serve, "_bridge", held)
    assert main(["serve", "--journal", "j", "--listen", "grpc://127.0.0.1:0"]) == 2
    assert "a bridge that is running" in capfd.readouterr().err
    assert Path("j/log").exists()


def test_nobody_there(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "grpc://127.0.0.1:1"]) == 2
    assert "is the bridge running there?" in capfd.readouterr().err
    assert main([*RUN, "grpc://127.0.0.1:1/x"]) == 2
