"""Tests the service against clients that are wrong, hostile or gone: it answers with a typed error
and goes on."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as flight
import pytest
import trustme

from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge import service
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import BridgeError, from_flight
from seustream.cosim.bridge.limits import USUAL
from seustream.engine.stream.schema import stream_schema
from tests.cosim.bridge.serving import (
    bridge,
    compiled,
    feed_epoch,
    goes_on,
    refused,
    streams,
    wanted,
)

TOKEN = "0123456789abcdef"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Bridge, str, BridgeClient]]:
    limits = replace(USUAL, batch_rows=1000, batch_bytes=1 << 20, patience=0.5)
    with bridge(tmp_path, limits=limits) as (made, url), BridgeClient(url, patience=0) as client:
        client.load(compiled())
        yield made, url, client


# --- access ---------------------------------------------------------------------


@pytest.mark.parametrize("token", [None, "wrong", TOKEN + "x", TOKEN[:-1]])
def test_without_the_token_nobody_gets_in(token: str | None, tmp_path: Path) -> None:
    with bridge(tmp_path, token=TOKEN) as (made, url):
        with BridgeClient(url, token=token, patience=0) as client:
            if token == "ü":  # no header can carry it
                with pytest.raises((BridgeError, UnicodeError)):
                    client.health()
                return
            for call in (
                client.health,
                lambda: client.load(compiled()),
                lambda: client.read("q", 0, 1),
                lambda: client.schema("query", "pairs"),
                lambda: feed_epoch(client, 0, streams(5, 1)),
                client.device,
            ):
                assert refused(call).kind == "unauthenticated"
            assert made.counts.errors["unauthenticated"] >= 6
        with BridgeClient(url, token=TOKEN) as client:
            client.load(compiled())
            goes_on(client)


def test_nobody_learns_what_there_is_without_the_token(tmp_path: Path) -> None:
    with bridge(tmp_path, token=TOKEN) as (_, url), flight.connect(url) as stranger:
        for call in (stranger.list_actions, stranger.list_flights):
            with pytest.raises(flight.FlightUnauthenticatedError, match="wants a token"):
                list(call())


def test_a_stranger_who_knocks_too_often_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "KNOCKS", 0.0)
    with (
        bridge(tmp_path, token=TOKEN) as (made, url),
        BridgeClient(url, token=TOKEN) as known,
        BridgeClient(url, token="wrong", patience=0) as stranger,
    ):
        known.load(compiled())
        for _ in range(3):
            # Its connection ends before there is an answer.
            assert refused(stranger.health).kind == "unavailable"
        assert made.counts.errors["rate-limited"] >= 1
        assert known.health()["session"] is not None


def test_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    made = authority.issue_cert("127.0.0.1")
    pair = (made.cert_chain_pems[0].bytes(), made.private_key_pem.bytes())
    with bridge(tmp_path, token=TOKEN, tls=pair) as (_, url):
        with BridgeClient(url, TOKEN, authority.cert_pem.bytes()) as client:
            client.load(compiled())
            goes_on(client)
        other = trustme.CA().cert_pem.bytes()
        with BridgeClient(url, TOKEN, other, patience=0) as client:
            assert refused(client.health).kind == "unavailable"


def test_clients_show_a_certificate_where_one_is_wanted(tmp_path: Path) -> None:
    authority, others = trustme.CA(), trustme.CA()
    made = authority.issue_cert("127.0.0.1")
    pair = (made.cert_chain_pems[0].bytes(), made.private_key_pem.bytes())
    ca = authority.cert_pem.bytes()

    def identity(of: trustme.CA) -> tuple[bytes, bytes]:
        issued = of.issue_cert("client@example.org")
        return issued.cert_chain_pems[0].bytes(), issued.private_key_pem.bytes()

    with bridge(tmp_path, tls=pair, client_ca=ca) as (_, url):
        with BridgeClient(url, None, ca, identity=identity(authority)) as client:
            client.load(compiled())
            goes_on(client)
        for wrong in (None, identity(others)):
            with BridgeClient(url, None, ca, patience=0, identity=wrong) as client:
                assert refused(client.health).kind == "unavailable"


# --- what is sent ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ({"ts": [1], "a": [1]}, "column b: want one"),
        ({"ts": ["x"], "a": [1], "b": [1]}, "ts: string, want integers"),
        ({"ts": [1], "a": ["x"], "b": [1]}, "column a"),
        ({"ts": [1], "a": [1 << 40], "b": [1]}, "column a"),
        ({"ts": [None], "a": [1], "b": [1]}, "ts"),
    ],
)
def test_rows_of_something_else_are_refused(
    served: tuple[Bridge, str, BridgeClient], rows: dict[str, list[object]], complaint: str
) -> None:
    made, _, client = served
    error = refused(lambda: feed_epoch(client, 0, {"R": pa.table(rows)}))
    assert error.kind == "schema"
    assert complaint in str(error)
    assert not list(made.journal.staged.iterdir())
    goes_on(client)


def test_large_batches_are_refused(served: tuple[Bridge, str, BridgeClient]) -> None:
    _, _, client = served
    many = streams(1001, 1)
    assert refused(lambda: feed_epoch(client, 0, many)).kind == "too-large"
    long = pa.table({"ts": [1], "d": [1], "name": ["x" * (1 << 21)]})
    assert refused(lambda: feed_epoch(client, 0, {"S": long})).kind == "too-large"
    goes_on(client)


def test_rows_of_every_type_come_back(tmp_path: Path) -> None:
    """An epoch that is sent again is also recognized by its rows."""
    kinds = [
        "smallint", "int", "bigint", "real", "double precision", "decimal(30,3)", "char(3)", "varchar",
        "date", "time", "timestamp", "boolean", "interval",
    ]  # fmt: skip
    columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(kinds))
    text = f"CREATE STREAM T ({columns}); REGISTER QUERY q AS SELECT T.* FROM T WINDOW NOW;"
    compilation = compiled(text)
    (stream,) = compilation.program.streams
    schema = stream_schema(stream)
    others = {pa.string(): "é", pa.bool_(): True}
    bits = {pa.date32(): pa.int32(), pa.time32("ms"): pa.int32()}
    made = {}
    for field in schema:
        ints = pa.array([7, None if field.nullable else 8], bits.get(field.type, pa.int64()))
        other = others.get(field.type)
        made[field.name] = ints.cast(field.type) if other is None else pa.array([other, None])
    rows = pa.table(made, schema=schema)
    with bridge(tmp_path) as (_, url), BridgeClient(url, patience=0) as client:
        client.load(compilation)
        feed_epoch(client, 0, {"T": rows})
        parts = feed_epoch(client, 0, {"T": rows}, attempt="again", commit=False)
        assert client.commit(p.Commit("w", 0, tuple(parts)))["already"]
        client.end()
        found = pa.concat_tables(client.results("q"))
        assert (
            found.select(schema.names[1:]).to_pylist() == rows.select(schema.names[1:]).to_pylist()
        )


def test_what_there_is_not(served: tuple[Bridge, str, BridgeClient]) -> None:
    _, _, client = served
    for call in (
        lambda: client.act("nonsense"),
        lambda: client.read("none", 0, 1),
        lambda: client.schema("stream", "none"),
        lambda: feed_epoch(client, 0, {"none": streams(1, 1)["R"]}),
        lambda: client.promise("none", 1),
        lambda: client.end("none"),
    ):
        assert refused(call).kind == "unknown"
    assert refused(lambda: client.schema("table", "R")).kind == "malformed"
    assert refused(lambda: client.read("pairs", 5, 9)).kind == "gap"
    goes_on(client)


@pytest.mark.parametrize("end", ["vanish", "wrong count", "garbage", "half-closed"])
def test_a_stage_without_its_end_is_none(
    served: tuple[Bridge, str, BridgeClient], end: str
) -> None:
    made, url, client = served
    rows = streams(10, 1)["R"]
    connection = flight.connect(url)
    stage = p.Stage("w", "R", 0, 0, "s")
    writer, reader = connection.do_exchange(flight.FlightDescriptor.for_command(p.write(stage)))
    writer.begin(rows.schema)
    writer.write_table(rows)
    if end == "vanish":
        reader.cancel()
    elif end == "half-closed":
        writer.done_writing()
    else:
        writer.write_metadata(b"\xff\x00" if end == "garbage" else p.write(p.StageEnd(11)))
    if end != "vanish":
        with pytest.raises(flight.FlightError) as caught:
            reader.read_chunk()
        kind = from_flight(caught.value).kind
        assert kind == ("conflict" if end == "wrong count" else "malformed")
    connection.close()
    error = refused(lambda: client.commit(p.Commit("w", 0, (p.StagedPart("s", 10),))))
    assert error.kind == "unknown"
    goes_on(client)
    while made.exchanges:
        pass
    assert [path.suffix for path in made.journal.staged.iterdir()] == [".part"] * 2


def test_a_stage_that_a_bridge_ends_as_it_stops_may_be_tried_again(
    served: tuple[Bridge, str, BridgeClient],
) -> None:
    made, url, _ = served
    rows = streams(10, 1)["R"]
    descriptor = flight.FlightDescriptor.for_command(p.write(p.Stage("w", "R", 0, 0, "s")))
    with flight.connect(url) as connection:
        writer, reader = connection.do_exchange(descriptor)
        writer.begin(rows.schema)
        writer.write_table(rows)
        made.stopping.set()
        writer.done_writing()
        with pytest.raises(flight.FlightError) as caught:
            reader.read_chunk()
    assert from_flight(caught.value).kind == "stopping"


def test_garbage_on_the_socket(served: tuple[Bridge, str, BridgeClient]) -> None:
    _, url, client = served
    port = int(url.rpartition(":")[2])
    for bytes_sent in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 100, b"PRI * HTTP/2.0\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", port)) as raw:
            raw.sendall(bytes_sent)
    goes_on(client)


def test_a_command_that_is_none(served: tuple[Bridge, str, BridgeClient]) -> None:
    _, url, client = served
    with flight.connect(url) as connection:
        for command in (b"", b"\xff", b"{}", b'{"lease":1}', b'{"lease":"device","x":1}'):
            descriptor = flight.FlightDescriptor.for_command(command)
            writer, reader = connection.do_exchange(descriptor)
            with pytest.raises(flight.FlightError) as caught:
                reader.read_chunk()
            assert from_flight(caught.value).kind == "malformed"
            with contextlib.suppress(flight.FlightError):
                writer.close()
    goes_on(client)


# --- what can be listed -----------------------------------------------------------


def test_flights_and_actions_can_be_listed(served: tuple[Bridge, str, BridgeClient]) -> None:
    _, url, client = served
    rows = streams(50, 3)
    feed_epoch(client, 0, rows)
    client.end()
    client.flush()
    with flight.connect(url) as connection:
        assert {action.type for action in connection.list_actions()} == set(p.ACTIONS)
        found = {
            tuple(part.decode() for part in i.descriptor.path): i for i in connection.list_flights()
        }
        assert set(found) == {
            ("stream", "R"),
            ("stream", "S"),
            ("query", "pairs"),
            ("query", "large"),
        }
        info = found["query", "pairs"]
        table = connection.do_get(info.endpoints[0].ticket).read_all()
        assert table.num_rows == info.total_records == wanted(compiled(), rows)["pairs"].total()
        assert info.schema == table.schema
    assert client.act("queries")["streams"]["R"] == {"ts": "int64", "a": "int32", "b": "int32"}
    assert json.loads(json.dumps(client.status()))["rows_total"] == {"R": 50, "S": 50}


# --- clients that stay ------------------------------------------------------------


def opened(url: str, command: object, rows: pa.Table | None = None) -> tuple[object, object]:
    """Opens an exchange on a connection of its own, in which nothing more comes."""
    connection = flight.connect(url)
    descriptor = flight.FlightDescriptor.for_command(p.write(command))
    writer, reader = connection.do_exchange(descriptor)
    if rows is not None:
        writer.begin(rows.schema)
        writer.write_table(rows)
    return connection, (writer, reader)


def wait_for(made: Bridge, open_exchanges: int) -> None:
    until = time.monotonic() + 10
    while len(made.exchanges) != open_exchanges:
        assert time.monotonic() < until, len(made.exchanges)
        time.sleep(0.01)


def test_an_idle_exchange_ends_and_one_that_is_slow_does_not(tmp_path: Path) -> None:
    rows, now = streams(60, 1), [0.0]

    def wait(condition: Callable[[], bool]) -> None:
        until = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < until
            time.sleep(0.01)

    with bridge(tmp_path, idle=0.6) as (made, url), BridgeClient(url, patience=0) as client:
        made.exchanges.clock = lambda: now[0]
        idle = opened(url, p.Lease())
        wait(lambda: any(one.waiting is not None for one in made.exchanges._open))
        assert refused(lambda: client.load(compiled())).kind == "in-use"
        now[0] += 1.0
        wait_for(made, 0)
        client.load(compiled())
        gone = opened(url, p.Stage("w", "R", 0, 0, "x"), rows["R"])
        wait(lambda: made.counts.rows == 60)
        with client.stage(p.Stage("w", "S", 0, 0, "y")) as part:
            for start in range(0, 60, 10):
                part.write(rows["S"].slice(start, 10))
                wait(lambda want=70 + start: made.counts.rows == want)
                wait(lambda: all(one.waiting is not None for one in made.exchanges._open))
                now[0] += 0.4
        wait_for(made, 0)
        assert client.status()["idle_total"] >= 2
        assert not [n for n in (tmp_path / "staged").iterdir() if n.suffix == ".partial"]
        goes_on(client)
        del idle, gone


def test_one_client_leaves_room_for_others(tmp_path: Path) -> None:
    """Holds however many exchanges the client opens, on one connection or on several."""
    rows = streams(30, 1)
    stage = p.write(p.Stage("w", "R", 0, 0, "x"))
    with bridge(tmp_path) as (made, url), BridgeClient(url, patience=0) as client:
        client.load(compiled())
        with contextlib.closing(flight.connect(url)) as greedy:
            kept, refused = [], []
            for _ in range(256):
                writer, reader = greedy.do_exchange(flight.FlightDescriptor.for_command(stage))
                try:
                    writer.begin(rows["R"].schema)
                except flight.FlightError as error:  # the refusal may overtake the schema
                    refused.append(from_flight(error))
                else:
                    kept.append((writer, reader))
            wait_for(made, 64)
            if not refused:
                with pytest.raises(flight.FlightError) as caught:
                    kept[-1][1].read_chunk()
                refused.append(from_flight(caught.value))
            for error in refused:
                assert (error.kind, error.retriable) == ("busy", True)
                assert "64 exchanges of this connection are open" in str(error)
            goes_on(client)
            for _, reader in kept:
                reader.cancel()


def test_it_ends_where_no_thread_can_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From Python 3.12 on, no thread can be started in a function that runs at the interpreter's
    exit."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    with bridge(tmp_path) as (_, url), BridgeClient(url, patience=0) as client:
        client.load(compiled())
        feed_epoch(client, 0, streams(50, 1))
        monkeypatch.setattr(threading.Thread, "start", refuse)
    with (
        pytest.raises(OSError, match="refused"),
        socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=1),
    ):
        pass
