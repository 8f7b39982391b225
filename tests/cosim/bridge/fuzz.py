"""Damaged and random messages to a bridge: a typed error or success, never a fault, and the next
client is served. `python -m tests.cosim.bridge.fuzz --cases N` does more of them than the tests.

`--messages N` sends so many to one bridge without a socket, where a message takes a fraction of a
millisecond; `--journals N` opens so many journals with several kinds of damage each.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import random
import socket
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.client import BridgeClient, message_of
from seustream.cosim.bridge.errors import KINDS, BridgeError, from_flight
from seustream.cosim.bridge.journal_errors import JournalDamaged, JournalRefused
from seustream.cosim.bridge.limits import USUAL
from seustream.cosim.golden import GoldenDevice
from tests import campaigns
from tests.cosim.bridge import storage
from tests.cosim.bridge.serving import (
    TINY,
    Chunks,
    bridge,
    compiled,
    feed_epoch,
    multiset,
    results,
    stage_epoch,
    streams,
    wanted,
)
from tests.cosim.bridge.simdisk import SimDisk

VALUES: list[Any] = [None, True, -1, 0, 1 << 70, 1.5, "", "R", "\x00", "x" * 300, [], {}, [[]]]


@functools.cache
def loaded() -> p.Load:
    return message_of(compiled())


def message(chance: random.Random) -> object:
    """Returns some intact message."""
    epoch = chance.randint(-1, 3)
    return chance.choice(
        (
            loaded(),
            p.Stage("w", chance.choice(("R", "S", "none")), epoch, 0, "s"),
            p.Commit(
                "w",
                epoch,
                (p.StagedPart("s", chance.randint(-1, 5)),),
                {"R": chance.choice((1, -(1 << 62)))},
            ),
            p.Abort("w", epoch),
            p.Promise("R", chance.choice((0, 1 << 62, -(1 << 62)))),
            p.Latest("pairs", *(chance.randint(-5, 5) for _ in range(3))),
            p.Read("pairs", chance.randint(-2, 2), chance.randint(-2, 2)),
            p.Trim("pairs", chance.randint(-2, 2), chance.choice(("", "a"))),
            p.Lease(),
        )
    )


def of_a_query(chance: random.Random) -> tuple[str, object]:
    """Returns some action on queries, and its message."""
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
    """Changes bytes, drops a member or gives it another type; leaves some messages as they are."""
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
    """Returns rows of R, or rows that are nearly so."""
    columns: dict[str, pa.Array] = {}
    for name in chance.choice((("ts", "a", "b"), ("ts", "a"), ("ts", "a", "b", "c"), ("a", "b"))):
        kind = chance.choice(
            (pa.int64(), pa.int32(), pa.string(), pa.float64(), pa.timestamp("us"))
        )
        values = [chance.choice((None, 1, 5)) for _ in range(3)]
        columns[name] = pa.array(values, pa.int64()).cast(kind)
    return pa.table(columns)


def send(chance: random.Random, connection: flight.FlightClient, port: int) -> None:
    """Makes one call of some kind; raises the bridge's error."""
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
    """Makes some calls to one bridge, then an honest client's; raises if that client is not
    served."""
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


# --- without a socket -------------------------------------------------------------

ACTIONS = [name for name in p.ACTIONS if name not in ("close", "reset", "end", "flush")]
_SLOWEST = 20.0
"""Seconds after which a message is considered to hang."""


def messages(seed: int, count: int) -> Counter[str]:
    """Sends this many messages to one bridge, then an honest client's; returns the number of
    answers of each kind."""
    chance, found = random.Random(seed), Counter[str]()
    limits = replace(USUAL, patience=0.05)
    with tempfile.TemporaryDirectory() as folder:
        made = Bridge(GoldenDevice(TINY), Path(folder) / "j", "golden", limits, disk=SimDisk())
        with contextlib.closing(made):
            made.act("load", p.write(message_of(compiled())))
            for number in range(count):
                begun = time.monotonic()
                found[_one(chance, made)] += 1
                took = time.monotonic() - begun
                assert took < _SLOWEST, f"seed {seed}, message {number}: {took:.0f} s"
            assert made.session.failure is None, f"seed {seed}: {made.session.failure}"
            made.act("reset", b"{}")
            made.session.limits = USUAL  # a busy machine must not refuse the honest client
            rows = streams(40, 3)
            stage_epoch(made, 0, rows)
            made.act("end", p.write(p.End(None)))
            made.session.flush()
            for name, want in wanted(compiled(), rows).items():
                end = made.session.logs[name].end
                assert multiset(made.read(p.Read(name, 0, end))) == want, f"seed {seed}: {name}"
    return found


def _one(chance: random.Random, made: Bridge) -> str:
    """Sends one message of some kind; returns the kind of the answer."""
    kind = chance.random()
    try:
        if kind < 0.1:
            made.read(p.read(p.Read, damaged(chance, p.write(message(chance)))))
        elif kind < 0.2:
            stage = p.read(p.Stage, damaged(chance, p.write(p.Stage("w", "R", 0, 0, "s"))))
            made.stage(stage, Chunks(batch(chance)))
        elif kind < 0.25:
            name, asked = of_a_query(chance)
            made.act(name, damaged(chance, p.write(asked)))
        else:
            asked = message(chance)
            fitting = [name for name in ACTIONS if p.ACTIONS[name][0] is type(asked)]
            name = chance.choice(fitting or ACTIONS) if chance.random() < 0.9 else "\u2620"
            made.act(name, damaged(chance, p.write(asked)) if kind < 0.7 else p.write(asked))
    except BridgeError as error:
        if error.kind not in KINDS or error.kind == "internal":
            raise AssertionError(f"{error.kind}: {error}") from error
        return error.kind
    except pa.ArrowException as error:  # bad columns, which the service reports as malformed
        return type(error).__name__
    return "answered"


def journal(seed: int, made: storage.Run) -> str:
    """Opens a journal with several damaged files: all of it is there, or it is refused with the
    place of the damage."""
    chance = random.Random(seed)
    disk = storage.at_rest(made.disks[-1])
    paths = [path for path in disk.files if path.name != "lock"]
    for path in chance.sample(paths, chance.randint(1, 3)):
        data = disk.files[path].data
        at = chance.randrange(len(data) + 1)
        match chance.choice(("bytes", "cut", "more", "hole", "other", "gone")):
            case "bytes":
                data[at : at + 4] = chance.randbytes(chance.randint(0, 4))
            case "cut":
                del data[at:]
            case "more":
                data += chance.randbytes(chance.randint(1, 99))
            case "hole":
                data[at : at + 512] = bytes(len(data[at : at + 512]))
            case "other":
                data[:] = disk.files[chance.choice(list(disk.files))].data
            case _:
                del disk.files[path]
    try:
        with contextlib.closing(storage.opened(disk)) as bridge:
            if not bridge.has_session:
                raise AssertionError(f"seed {seed}: an empty bridge")
            storage.check(bridge, made, len(made.epochs), f"seed {seed}")
    except (JournalDamaged, JournalRefused, BridgeError) as error:
        # A damaged part shows only when its epoch is processed; a damaged journal may also seem to
        # be of another format.
        if "/j" not in str(error):
            raise AssertionError(f"seed {seed}: {error}") from error
        return "refused later" if isinstance(error, BridgeError) else "refused"
    return "whole"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--journals", type=int, default=2_000)
    parser.add_argument("--cases", type=int, default=500)
    campaigns.add_options(parser)
    options = parser.parse_args()
    for name, most, case_of in (
        ("damaged bridges", options.cases, _bridge),
        ("hostile messages", options.messages, _messages),
        ("damaged journals", options.journals, _journal),
    ):
        if most:
            work = campaigns.Work(name, options)
            for seed in work.cases(work.first + most, _STEPS.get(name, 1)):
                work.found += case_of(seed)
            work.close()
            print(dict(work.found), flush=True)


def _bridge(seed: int) -> Counter[str]:
    case(seed)
    return Counter(stands=1)


def _messages(first: int) -> Counter[str]:
    return messages(first // _STEPS["hostile messages"], _STEPS["hostile messages"])


@functools.cache
def _run() -> storage.Run:
    return storage.run(12, 1)


def _journal(seed: int) -> Counter[str]:
    return Counter([journal(seed, _run())])


_STEPS = {"hostile messages": 10_000}


if __name__ == "__main__":
    main()
