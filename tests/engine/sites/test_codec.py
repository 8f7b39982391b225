"""Messages survive encoding and decoding; anything that is no message is refused."""

from __future__ import annotations

import math
import random

import pyarrow as pa
import pytest

from seustream.engine.sites.codec import Malformed, decode, encode
from seustream.engine.sites.messages import SiteMessage
from seustream.engine.sites.model import EquiJoin, SiteRow, Stored
from seustream.engine.sites.synopsis import CountMin
from seustream.engine.times import TICKS, UNKNOWN
from tests.engine.sites.network import LineFaults
from tests.engine.sites.oracle import random_blocks
from tests.engine.sites.running import feed, network


@pytest.mark.parametrize(
    ("strategy", "wanted"),
    [
        ("planned", {"Delta", "Plan", "Probe", "Deliver", "Done", "Expire", "Ack", "Rebuild"}),
        ("auto", {"Announce", "Ask", "Changes", "Ship", "Fetch", "Fetched", "Joined", "NewEpoch"}),
    ],
)
def test_every_message_of_a_stormy_run_survives(strategy: str, wanted: set[str]) -> None:
    faults = LineFaults(30, 0.1, 0.1)
    net = network(EquiJoin.on_one_key([2, 3, math.inf]), 5, faults, strategy=strategy)
    kinds: set[str] = set()

    def check(sender: int, to: int, message: SiteMessage) -> bool:
        assert decode(encode(message)) == message
        kinds.add(type(message).__name__)
        return True

    net.passes = check
    blocks = random_blocks(random.Random(5), 3)
    feed(net, blocks[:8])
    net.crash_centre(net.layout.first_epoch[1], net.now + 300)
    feed(net, blocks[8:])
    assert kinds >= wanted
    for block in blocks:
        assert decode(encode(block)) == block


@pytest.mark.parametrize(
    "value",
    [
        (1, 2.5, "x", None, True, b"\x00\xff", math.inf, -math.inf),
        {(1, "a"): 3, (b"k", 2.5): 4},
        frozenset({1, 2}),
        CountMin(3, 8),
        SiteRow((1, None), 5, ("payload", {"a": 1})),
        {"R": pa.timestamp("us", "UTC"), "S": pa.timestamp("ms"), "T": TICKS, "U": UNKNOWN},
    ],
)
def test_values(value: object) -> None:
    assert decode(encode(value)) == value


def test_rows_are_compared_whole() -> None:
    row = Stored((0, 1, 2), ("k",), 3, 4, (math.inf,), ("x", 1))
    back = decode(encode(row))
    assert (back.values, back.t, back.tau, back.ends, back.payload) == (
        row.values,
        row.t,
        row.tau,
        row.ends,
        row.payload,
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b'{"no":"name"}',
        b'{"type":"float"}',
        b'{"timestamp":["hours",null]}',
        b'{"Popen":[]}',
        b'{"Done":[[0,0]]}',
        b'{"Done":[[0,0],1,2,3,4]}',
        b'{"Done":{"block":[0,0]}}',
        b'{"bytes":"?"}',
        b'{"Decimal":"x"}',
        b'{"Done":[[0,0],1,0,0],"Ack":[[]]}',
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_what_is_no_message(data: bytes) -> None:
    with pytest.raises(Malformed):
        decode(data)


def test_what_does_not_cross() -> None:
    with pytest.raises(Malformed, match="Random does not cross"):
        encode(random.Random())
