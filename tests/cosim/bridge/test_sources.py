"""Tests live sources over TCP: announced, checked, committed, and harmless whatever they send."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.limits import USUAL, Limits
from seustream.cosim.bridge.security import Address, AddressRefused
from seustream.cosim.bridge.sources import _Entering, collecting, source_address
from tests.cosim.bridge.serving import bridge

HEADER = {"type": "HEADER", "stream": "I", "schema": [["v", "INTEGER"]]}
FEW = replace(USUAL, sources=2)
NOWHERE = source_address("tcp://127.0.0.1:0")


@contextlib.contextmanager
def served(folder: Path, limits: Limits = USUAL) -> Iterator[tuple[Bridge, Address, BridgeClient]]:
    with (
        bridge(folder, limits=limits) as (made, url),
        BridgeClient(url, patience=5) as client,
    ):
        yield made, made.listen(NOWHERE), client


def send(at: Address, *messages: dict[str, Any]) -> socket.socket:
    source = socket.create_connection((at.host, at.port))
    more(source, *messages)
    return source


def more(source: socket.socket, *messages: dict[str, Any]) -> None:
    source.sendall(b"".join(json.dumps(message).encode() + b"\n" for message in messages))


def insert(ts: int, *values: Any, te: int | None = None) -> dict[str, Any]:
    return {"type": "INSERTION", "ts": ts, "te": ts + 1 if te is None else te, "values": values}


@pytest.mark.parametrize(("of", "at"), [("bigint", 0), ("timestamp", 0.5)])
def test_the_column_with_the_time_orders_an_epoch(tmp_path: Path, of: str, at: float) -> None:
    """The times of INSERTIONs mean nothing there."""
    with served(tmp_path) as (_, address, client):
        text = f"CREATE STREAM I (v int, at {of}) WITH (time = 'at', late = 'side');"
        client.act("statement", p.Statement(text + "REGISTER QUERY q AS SELECT v FROM I;"))
        kind = "INTEGER" if of == "bigint" else "DATETIME"
        header = {"type": "HEADER", "stream": "I", "schema": [["v", "INTEGER"], ["at", kind]]}
        times = [1_000, 1_030, 1_010, 1_020]
        rows = [insert(9 - n, n, time + at) for n, time in enumerate(times)]
        source = send(address, header, *rows, {"type": "STOP"})
        until(lambda: client.latest("q")["over"])
        found = client.read("q", 0, client.latest("q")["end"])
        assert found.column("v").to_pylist() == [0, 2, 3, 1]
        assert found.column("ts_newest").to_pylist() == sorted(times)
        assert client.latest("late.I")["end"] == 0
        source.close()


def test_sources_over_ipv6(tmp_path: Path) -> None:
    with served(tmp_path) as (made, _, client):
        source = send(made.listen(source_address("tcp://[::1]:0")), HEADER)
        until(lambda: stream(client)["state"] == "CONNECTED")
        source.close()


@pytest.mark.parametrize(
    ("behind", "max_latency", "together"),
    [(0, 50, 2), (1, 50, 2), (9, 50, 9), (400, 50, 25), (400, 1_000, 400), (0, 1, 1), (7, 3, 1)],
)
def test_epochs_grow_with_the_work_up_to_half_of_what_rows_may_wait(
    behind: int, max_latency: int, together: int
) -> None:
    assert collecting(behind, max_latency) == together


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def hung_up(source: socket.socket) -> bool:
    """Returns whether the bridge closes the connection."""
    with source:
        source.settimeout(10)
        return source.recv(1) == b""


def stream(client: BridgeClient, name: str = "I") -> dict[str, Any]:
    found = [one for one in client.act("query-list")["streams"] if one["name"] == name]
    return dict(found[0]) if found else {"state": None}


def rows(client: BridgeClient, name: str = "q") -> list[tuple[object, ...]]:
    found = client.read(name, client.latest(name)["first"], client.latest(name)["end"])
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def test_sources_announce_themselves_and_feed_all_languages(tmp_path: Path) -> None:
    with served(tmp_path) as (_, at, client):
        source = send(at, HEADER)
        until(lambda: stream(client)["state"] == "CONNECTED")
        assert stream(client)["schema"] == "I{v INTEGER}"
        client.act("query-register", p.Register("q", "where $I.v > 5 select [x = $I.v]"))
        text = """REGISTER QUERY s AS SELECT v, te FROM I WHERE v > 5 WINDOW NOW;
            CREATE STREAM J (v int);
            REGISTER QUERY j AS SELECT I.v, J.v AS w FROM I, J WHERE I.v = J.v WINDOW RANGE 50;
            REGISTER QUERY p AS PATTERN ANY x; ANY y FROM I WHERE y.v > x.v + 2 WITHIN 9 ms RETURN x.v"""
        client.act("statement", p.Statement(text))
        more(source, *(insert(t, t) for t in range(4, 9)))
        other = send(at, {"type": "HEADER", "stream": "J", "schema": [["v", "DOUBLE"]]})
        assert hung_up(other)
        with client.stage(p.Stage("w", "J", 0, 0, "a")) as part:
            part.write(pa.table({"ts": [5], "v": pa.array([6], pa.int32())}))
        assert part.staged is not None
        client.commit(p.Commit("w", 0, (part.staged,)))
        source.sendall(b'no JSON\n{"type": "STOP"}\n')
        client.end("J")
        until(lambda: client.latest("q")["over"])
        assert rows(client) == [(6, 7, 6), (7, 8, 7), (8, 9, 8)]
        assert [row[:2] for row in rows(client, "s")] == [(6, 7), (7, 8), (8, 9)]
        assert [row[:2] for row in rows(client, "j")] == [(6, 6)]
        assert sorted(row[0] for row in rows(client, "p")) == [4, 4, 5]
        assert client.status()["source_rejected_total"] == {"I/malformed": 1}
        assert stream(client)["state"] == "STOPPED"
        source.close()


def test_a_stream_that_a_statement_created_is_fed(tmp_path: Path) -> None:
    """The stream may have shorter integers than a source, and no ends of intervals."""
    with served(tmp_path) as (_, at, client):
        text = "CREATE STREAM I (v int, r real); REGISTER QUERY q AS SELECT v, r FROM I"
        client.act("statement", p.Statement(text))
        header = {"type": "HEADER", "stream": "I", "schema": [["v", "INTEGER"], ["r", "DOUBLE"]]}
        source = send(at, header, insert(1, 1, 0.5), insert(2, 1 << 31, 0.5), {"type": "STOP"})
        until(lambda: client.latest("q")["over"])
        source.close()
        assert rows(client) == [(1, 0.5, 1, 1)]
        assert stream(client)["rejected"] == {"schema": 1}


@pytest.mark.acceptance(4)
def test_each_bad_element_is_counted_under_its_reason(tmp_path: Path) -> None:
    told: list[str] = []
    with served(tmp_path) as (made, at, client):
        assert made.sources is not None
        made.sources.note = lambda event, detail: told.append(f"{event}: {detail}")
        source = send(at, HEADER, insert(5, 1), insert(4, 1), insert(7, 1, te=6), insert(8, "x"))
        more(source, insert(8), insert(9, 3), {"type": "BOUNDARY", "ts": 3}, insert(10, 2.5))
        source.sendall(b"{\n" + b"x" * 10 + b"\n")
        more(source, {**HEADER, "schema": [["w", "INTEGER"]]}, HEADER, insert(11, 4))
        more(source, {"type": "STOP"}, insert(12, 1))
        until(lambda: stream(client).get("rejected", {}).get("stopped"))
        assert stream(client)["rejected"] == {
            "late": 1, "interval": 1, "schema": 3, "stale_boundary": 1, "malformed": 2, "stopped": 1
        }  # fmt: skip
        assert stream(client)["accepted"] == 3
        assert sum(line.startswith("rejected: ") for line in told) == 7
        assert any(line.startswith("header refused: stream I") for line in told)
        assert made.session.failure is None
        source.close()


@pytest.mark.parametrize(
    ("column", "type", "bad"),
    [
        ("v varchar", "STRING", "\ud800"),
        ("v varchar(3)", "STRING", "four"),
        ("v decimal(38,0)", "DECIMAL(38,0)", str(10**38)),
        ("v int NOT NULL", "INTEGER", None),
        ("te int, v int", "INTEGER", 1),
    ],
)
def test_a_value_that_no_column_holds_ends_its_tuple_alone(
    column: str, type: str, bad: object, tmp_path: Path
) -> None:
    """The stream of the tuple goes on, and so do the other ones."""
    good = "x" if type == "STRING" else 1
    with served(tmp_path) as (made, at, client):
        queries = "REGISTER QUERY q AS SELECT v FROM I; REGISTER QUERY r AS SELECT v FROM J"
        text = f"CREATE STREAM I ({column}); CREATE STREAM J (v int); {queries}"
        client.act("statement", p.Statement(text))
        source = send(at, {**HEADER, "schema": [["v", type]]}, insert(1, good))
        more(source, insert(2, bad, te=1 << 40), insert(3, good), {"type": "BOUNDARY", "ts": 99})
        other = send(at, {**HEADER, "stream": "J"}, insert(5, 7), insert(6, 7))
        until(lambda: client.latest("q")["end"] == 2 and client.latest("r")["end"] == 2)
        more(other, insert(7, 8))
        until(lambda: client.latest("r")["end"] == 3)
        assert stream(client)["rejected"] == {"schema": 1}
        assert made.session.failure is None
        source.close()
        other.close()


@pytest.mark.parametrize(
    ("type", "held"),
    [("bigint", (1 << 63) - 1), ("double precision", 2.0**63), ("int", None), ("timestamp", None)],
)
def test_the_end_of_an_interval_in_a_column_of_any_type(
    type: str, held: object, tmp_path: Path
) -> None:
    with served(tmp_path) as (made, at, client):
        text = f"CREATE STREAM I (v int, te {type}); REGISTER QUERY q AS SELECT te FROM I"
        client.act("statement", p.Statement(text))
        with send(at, HEADER, {**insert(1, 1), "te": "inf"}, {"type": "STOP"}):
            until(lambda: client.latest("q")["over"])
        assert [row[0] for row in rows(client)] == ([] if held is None else [held])
        assert stream(client)["rejected"] == ({"schema": 1} if held is None else {})
        assert made.session.failure is None


def test_a_fault_of_the_sources_is_a_failure_that_clients_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sources' thread goes on: a session that is begun anew is fed."""
    with served(tmp_path) as (made, at, client):
        assert made.sources is not None
        source = send(at, HEADER)
        until(lambda: stream(client)["state"] == "CONNECTED")
        with monkeypatch.context() as patched:
            patched.setattr(_Entering, "table", lambda *_: 1 // 0)
            more(source, insert(1, 1))
            until(lambda: client.health()["failure"])
        assert client.health()["failure"].startswith("ZeroDivisionError: ")
        assert made.sources.events["failed"] == 1
        until(lambda: made.sources and made.sources.states()["I"]["rejected"] == {"failed": 1})
        client.act("reset")
        assert hung_up(source)
        client.act("query-register", p.Register("q", "select [x = $I.v]"))
        source = send(at, HEADER, insert(1, 1), {"type": "BOUNDARY", "ts": 9})
        until(lambda: client.latest("q")["end"] == 1)
        source.close()


def test_a_stream_that_is_dropped_ends_its_source_alone(tmp_path: Path) -> None:
    with served(tmp_path) as (made, at, client):
        one = send(at, HEADER, insert(1, 1))
        two = send(at, {**HEADER, "stream": "J"}, insert(1, 1))
        until(lambda: stream(client)["state"] == stream(client, "J")["state"] == "CONNECTED")
        client.act("query-register", p.Register("r", "select [x = $J.v]"))
        client.act("statement", p.Statement("DROP STREAM I"))
        with contextlib.suppress(OSError):  # the bridge may have hung up already
            more(one, insert(2, 2))
        assert hung_up(one)
        more(two, insert(2, 2), insert(3, 3), {"type": "BOUNDARY", "ts": 4})
        until(lambda: [value for *_, value in rows(client, "r")][-2:] == [2, 3])
        assert made.sources is not None
        assert [*made.sources.states()] == ["J"]
        one = send(at, {**HEADER, "schema": [["w", "STRING"]]})
        until(lambda: stream(client)["state"] == "CONNECTED")
        client.act("query-register", p.Register("q", "select [x = $I.w]"))
        more(one, insert(1, "new"), {"type": "STOP"})
        until(lambda: client.latest("q")["end"] == 1)
        assert rows(client) == [(1, 2, "new")]
        assert made.session.failure is None
        one.close()
        two.close()


def taken(made: Bridge) -> int:
    """Returns how many elements have been rejected, or are in an epoch."""
    assert made.sources is not None
    (one,) = made.sources.streams.values()
    return one.accepted - len(one.waiting) + one.rejected.total()


@pytest.mark.parametrize(
    ("options", "given", "late"),
    [
        ("", [1000, 1100], None),
        ("max_out_of_orderness = '1 s'", [900, 950, 1000, 1100], None),
        ("max_out_of_orderness = '60 ms'", [950, 1000, 1100], None),
        ("late = 'side'", [1000, 1100], [900, 950]),
        ("late = 'side', max_out_of_orderness = '60 ms'", [950, 1000, 1100], [900]),
        ("late = 'error'", None, None),
    ],
)
def test_options_of_a_stream_hold_where_a_source_feeds_it(
    options: str, given: list[int] | None, late: list[int] | None, tmp_path: Path
) -> None:
    """Each tuple comes in an epoch of its own, since rows of one epoch are put in order."""
    with served(tmp_path) as (made, at, client):
        text = f"CREATE STREAM I (v int){f' WITH ({options})' * bool(options)};"
        client.act(
            "statement", p.Statement(f"{text} REGISTER QUERY q AS SELECT v FROM I;", "", True)
        )
        source = send(at, HEADER)
        until(lambda: stream(client)["state"] == "CONNECTED")
        for count, ts in enumerate((1000, 900, 950, 1100), start=1):
            more(source, insert(ts, ts))
            until(lambda count=count: taken(made) == count)
        source.close()
        client.end("I")
        if given is None:
            with pytest.raises(BridgeError, match="late"):
                until(lambda: client.latest("q", 9)["over"])
            return
        until(lambda: client.latest("q")["over"])
        assert [row[0] for row in rows(client)] == given
        if late is not None:
            assert [row[0] for row in rows(client, "late.I")] == late


def test_a_source_of_a_stream_with_its_own_time_promises_none_by_its_tuples(
    tmp_path: Path,
) -> None:
    """They are sent later than they were measured; boundaries count in the stream's time."""
    with served(tmp_path) as (made, at, client):
        text = "CREATE STREAM I (v int, at bigint) WITH (time = 'at'); REGISTER QUERY q AS SELECT v FROM I"
        client.act("statement", p.Statement(text, "", True))
        header = {**HEADER, "schema": [["v", "INTEGER"], ["at", "INTEGER"]]}
        source = send(at, header)
        for number in range(4):
            more(source, insert(1_000_000 + number, number, 5_000 + number))
            until(lambda end=number + 1: client.latest("q")["end"] == end)
        assert made.session.run.promises == {"I": 5_003}
        more(source, {"type": "BOUNDARY", "ts": 6_000}, {"type": "BOUNDARY", "ts": 5_500})
        until(lambda: stream(client)["rejected"] == {"stale_boundary": 1})
        until(lambda: made.session.run.promises == {"I": 6_000})
        source.close()
        assert rows(client) == [(n, 5_000 + n, 5_000 + n) for n in range(4)]


@pytest.mark.parametrize("schema", [[["v", "INTEGER"]], [["w", "STRING"]]])
def test_a_stream_that_has_ended_is_dropped_and_announced_anew(
    schema: list[list[str]], tmp_path: Path
) -> None:
    with served(tmp_path) as (_, at, client):
        with send(at, HEADER, insert(1, 1), {"type": "STOP"}):
            until(lambda: stream(client)["state"] == "STOPPED")
        client.act("statement", p.Statement("DROP STREAM I"))
        source = send(at, {**HEADER, "schema": schema})
        until(lambda: stream(client)["state"] == "CONNECTED")
        client.act("query-register", p.Register("q", f"select [x = $I.{schema[0][0]}]"))
        value = 7 if schema[0][1] == "INTEGER" else "x"
        more(source, insert(0, value), {"type": "STOP"})
        until(lambda: client.latest("q")["over"])
        assert rows(client) == [(0, 1, value)]
        source.close()


@pytest.mark.acceptance(3)
def test_a_source_may_have_a_long_name(tmp_path: Path) -> None:
    with served(tmp_path) as (_, address, client):
        name = "s" * 195
        header = {"type": "HEADER", "stream": name, "schema": [["v", "INTEGER"]]}
        with send(address, header):
            until(lambda: stream(client, name)["state"] == "CONNECTED")


def test_strangers_cannot_make_streams_without_end(tmp_path: Path) -> None:
    before = threading.active_count()
    with served(tmp_path, FEW) as (made, at, client):
        assert made.sources is not None
        sources = [send(at, {**HEADER, "stream": name}) for name in ("I", "J")]
        until(lambda: len(client.act("query-list")["streams"]) == 2)
        until(lambda: stream(client, "J")["state"] == stream(client)["state"] == "CONNECTED")
        assert hung_up(send(at, {**HEADER, "stream": "K"}))
        assert hung_up(send(at, {"type": "STOP"}))
        assert hung_up(send(at, HEADER)), "it has a source"
        assert hung_up(send(at, {**HEADER, "stream": "a b"}))
        assert hung_up(send(at, {**HEADER, "schema": [["ts", "INTEGER"]]}))
        assert made.sources.events["source refused"] == 5
        for source in sources:
            source.close()
    until(lambda: threading.active_count() <= before)


def test_a_source_goes_on_after_a_restart(tmp_path: Path) -> None:
    """Accepted rows are in the journal; the stream and its query are there when the source comes
    back."""
    with served(tmp_path) as (_, at, client):
        source = send(at, {**HEADER, "schema": [["at", [["x", "DOUBLE"]]], ["v", "INTEGER"]]})
        until(lambda: stream(client)["state"] == "CONNECTED")
        client.act("query-register", p.Register("q", "select [y = $I.at.x, z = $I.v]"))
        more(source, insert(1, 0.5, 7), insert(2, 1.5, 8))
        until(lambda: client.latest("q")["end"] == 1)
        source.close()
        until(lambda: stream(client)["state"] == "DISCONNECTED")
    with served(tmp_path) as (_, at, client):
        assert stream(client)["state"] == "UNCONNECTED"
        source = send(at, {**HEADER, "schema": [["at", [["x", "DOUBLE"]]], ["v", "INTEGER"]]})
        more(source, insert(1, 0.0, 0), insert(3, 2.5, 9), {"type": "STOP"})
        until(lambda: client.latest("q")["over"])
        assert rows(client) == [(1, 2, 0.5, 7), (2, 3, 1.5, 8), (3, 4, 2.5, 9)]
        assert stream(client)["rejected"]["late"] == 1
        source.close()


@pytest.mark.acceptance(12)
@pytest.mark.parametrize("seed", range(4))
def test_random_bytes_crash_nothing(seed: int, tmp_path: Path) -> None:
    """Nor do they change anything for an honest source beside them."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    with served(tmp_path) as (made, at, client):
        honest = send(at, {**HEADER, "stream": "J"})
        until(lambda: stream(client, "J")["state"] == "CONNECTED")
        client.act("query-register", p.Register("q", "select [x = $J.v]"))
        for number in range(20):
            lines = [
                json.dumps(m).encode() + b"\n" for m in (HEADER, insert(number, 1), insert(0, 2))
            ]
            data = bytearray(b"".join(lines))
            for _ in range(chance.randint(0, 6)):
                place = chance.randrange(len(data))
                data[place : place + chance.randint(0, 3)] = chance.randbytes(chance.randint(0, 4))
            with (
                socket.create_connection((at.host, at.port)) as source,
                contextlib.suppress(OSError),
            ):
                source.sendall(bytes(data))
            more(honest, insert(number, number))
        more(honest, {"type": "STOP"})
        until(lambda: client.latest("q")["end"] == 20)
        assert [row[2] for row in rows(client)] == list(range(20))
        assert made.session.failure is None
        honest.close()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("tcp://0.0.0.0:1", "have no token"),
        ("tcp://example.org:1", "have no token"),
        ("grpc://127.0.0.1:1", "no address for sources"),
        ("tcp://127.0.0.1", "no address for sources"),
        ("tcp://[::1", "no address for sources"),
        ("tcp://127.0.0.1:99999", "no address for sources"),
        ("tcp://127.0.0.1:1/x", "no address for sources"),
        ("", "no address for sources"),
    ],
)
def test_addresses_for_sources(text: str, complaint: str) -> None:
    with pytest.raises(AddressRefused, match=complaint):
        source_address(text)
