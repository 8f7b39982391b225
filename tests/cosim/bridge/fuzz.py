"""Damaged and random messages to a bridge: a typed error or success, never a fault, and the next
client is served. `python -m tests.cosim.bridge.fuzz --cases N` does more of them than the tests.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.client import BridgeClient, message_of
from seustream.cosim.bridge.errors import KINDS, from_flight
from tests.cosim.bridge.serving import bridge, compiled, feed_epoch, results, streams, wanted

VALUES: list[Any] = [None, True, -1, 0, 1 << 70, 1.5, "", "R", "\x00", "x" * 300, [], {}, [[]]]


def message(chance: random.Random) -> object:
    """Some message, whole."""
    epoch = chance.randint(-1, 3)
    return chance.choice(
        (
            message_of(compiled()),
            p.Stage("w", chance.choice(("R", "S", "none")), epoch, 0, "s"),
            p.Commit(
                "w",
                epoch,
                (p.StagedPart("s", chance.randint(-1, 5)),),
                {"R": chance.choice((1, -(1 << 62)))},
            ),
            p.Abort("w", epoch),
            p.Promise("R", chance.choice((0, 1 << 62, -(1 << 62)))),
            p.Latest("pairs", chance.randint(-5, 5), chance.randint(-1, 2)),
            p.Read("pairs", chance.randint(-2, 2), chance.randint(-2, 2)),
            p.Trim("pairs", chance.randint(-2, 2), chance.choice(("", "a"))),
            p.Lease(),
        )
    )


def of_a_query(chance: random.Random) -> tuple[str, object]:
    """Some action on queries, and its message."""
    name, number = chance.choice(("q", "r", "\u20ac")), chance.randint(-1, 3)
    text = chance.choice(("select [x = $I.v]", "select [x = $I.w]", "select [", "\u2620" * 900, ""))
    return chance.choice(
        (
            ("query-register", p.Register(name, text, chance.choice(("", "f.apas")))),
            (
                "statement",
                p.Statement(f"CREATE STREAM I{number} (v int); DROP QUERY {name}; {text}"),
            ),
            ("query-list", p.Nothing()),
            ("query-stop", p.Named(name)),
            ("query-log", p.QueryLog(name, number)),
        )
    )


def damaged(chance: random.Random, data: bytes) -> bytes:
    """Bytes changed, or a member of another type."""
    if chance.random() < 0.2:
        return data
    if chance.random() < 0.5:
        found = json.loads(data)
        member = chance.choice(sorted(found) or ["x"])
        if member in found and chance.random() < 0.3:
            del found[member]
        else:
            found[member] = chance.choice(VALUES)
        return json.dumps(found).encode()
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(changed) or 1)
        changed[at : at + chance.randint(0, 3)] = chance.randbytes(chance.randint(0, 3))
    return bytes(changed)


def batch(chance: random.Random) -> pa.Table:
    """Rows of R, or nearly."""
    columns: dict[str, pa.Array] = {}
    for name in chance.choice((("ts", "a", "b"), ("ts", "a"), ("ts", "a", "b", "c"), ("a", "b"))):
        kind = chance.choice(
            (pa.int64(), pa.int32(), pa.string(), pa.float64(), pa.timestamp("us"))
        )
        values = [chance.choice((None, 1, 5)) for _ in range(3)]
        columns[name] = pa.array(values, pa.int64()).cast(kind)
    return pa.table(columns)


def send(chance: random.Random, connection: flight.FlightClient, port: int) -> None:
    """One call of some kind; raises what the bridge answers."""
    body = damaged(chance, p.write(message(chance)))
    match chance.choice(
        ("action", "action", "query", "query", "get", "exchange", "info", "socket")
    ):
        case "action":
            names = [name for name in p.ACTIONS if name not in ("close", "reset", "end", "flush")]
            name = chance.choice([*names, "none", "\u2620"])
            list(connection.do_action(flight.Action(name, body)))
        case "query":
            name, asked = of_a_query(chance)
            list(connection.do_action(flight.Action(name, damaged(chance, p.write(asked)))))
        case "get":
            connection.do_get(flight.Ticket(body)).read_all()
        case "info":
            path = [chance.choice(("stream", "query", "", "R", "pairs")) for _ in range(2)]
            connection.get_flight_info(flight.FlightDescriptor.for_path(*path))
        case "socket":
            with socket.create_connection(("127.0.0.1", port)) as raw:
                raw.sendall(
                    chance.choice((b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")) + chance.randbytes(60)
                )
        case _:
            writer, reader = connection.do_exchange(flight.FlightDescriptor.for_command(body))
            try:
                rows = batch(chance)
                if chance.random() < 0.8:
                    writer.begin(rows.schema)
                    writer.write_table(rows)
                if chance.random() < 0.7:
                    writer.write_metadata(damaged(chance, p.write(p.StageEnd(3))))
                if chance.random() < 0.5:
                    writer.done_writing()
                    reader.read_chunk()
            finally:
                reader.cancel()


def case(seed: int, calls: int = 40) -> None:
    """Some calls to one bridge, then an honest client's; raises if that one is not served."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, bridge(Path(folder)) as (made, url):
        port = int(url.rpartition(":")[2])
        with BridgeClient(url, patience=0) as client, flight.connect(url) as connection:
            client.load(compiled())
            client.act("statement", p.Statement("CREATE STREAM I (te bigint, v bigint)"))
            for _ in range(calls):
                try:
                    send(chance, connection, port)
                except (flight.FlightError, pa.ArrowException, OSError, StopIteration) as error:
                    found = from_flight(error)
                    assert found.kind in KINDS
                    assert found.kind != "internal", f"seed {seed}: {found}"
                    assert "Traceback" not in str(found), f"seed {seed}: {found}"
            assert not made.counts.errors["internal"], f"seed {seed}: {made.counts.errors}"
            assert made.session.failure is None, f"seed {seed}: {made.session.failure}"
            client.reset()
            rows = streams(40, 3)
            feed_epoch(client, 0, rows)
            client.end()
            assert results(client, ("pairs", "large")) == wanted(compiled(), rows), f"seed {seed}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    for seed in range(options.first, options.first + options.cases):
        case(seed)
    print(f"{options.cases} bridges, none fell")


if __name__ == "__main__":
    main()
