"""The codec of states: everything is restored, and any damage is found."""

from __future__ import annotations

import hashlib
import json
import random

import pyarrow as pa
import pytest

from seustream.engine.stream.snapshot import MAGIC, Snapshot, SnapshotDamaged, kind_of, unpack

PLAIN = {"text": "a\u20ac\0", "marks": {"R": -(1 << 63), "S": 1 << 62}, "none": None, "list": [1.5]}
TABLES = {
    "kept R": pa.table({"ts": [1, 2], "a": pa.array([None, 7], pa.int32())}),
    "kept S": pa.table({"ts": pa.array([], pa.int64()), "name": pa.array([], pa.string())}),
    "chunks": pa.table({"x": pa.chunked_array([["p", None], ["q"]])}),
}
STATE = Snapshot("some kind", PLAIN, TABLES, version=3)


def test_everything_comes_back() -> None:
    found = unpack(STATE.pack(), "some kind", 3)
    assert (found.kind, found.version, found.plain) == ("some kind", 3, PLAIN)
    assert kind_of(STATE.pack()) == "some kind"
    assert list(found.tables) == list(TABLES)
    for name, table in TABLES.items():
        assert found.tables[name].equals(table)
        assert found.tables[name].schema.equals(table.schema)


def test_equal_states_are_equal_bytes() -> None:
    assert STATE.pack() == STATE.pack() == unpack(STATE.pack(), "some kind", 3).pack()


def test_an_empty_state() -> None:
    found = unpack(Snapshot("k").pack(), "k")
    assert (found.plain, found.tables, found.version) == ({}, {}, 1)


@pytest.mark.parametrize("seed", range(4))
def test_random_states(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    for _ in range(20):
        rows = chance.randint(0, 50)
        tables = {
            f"t{number}": pa.table(
                {
                    "ts": pa.array([chance.randint(-(1 << 63), (1 << 63) - 1) for _ in range(rows)]),
                    "v": pa.array([chance.choice((None, "", "\u00e9", "long" * 9))] * rows, pa.string()),
                    "b": pa.array([chance.random() < 0.5 for _ in range(rows)], pa.bool_()),
                }
            ).slice(chance.randint(0, 5))
            for number in range(chance.randint(0, 3))
        }  # fmt: skip
        plain = {"n": chance.getrandbits(80), "s": chr(chance.randint(0, 0xD7FF))}
        found = unpack(Snapshot("k", plain, tables).pack(), "k")
        assert found.plain == plain
        assert {name: table.to_pylist() for name, table in found.tables.items()} == {
            name: table.to_pylist() for name, table in tables.items()
        }


def test_every_byte_changed() -> None:
    """Changes each byte in turn, once by one bit and once by all of them."""
    data = STATE.pack()
    for place in range(len(data)):
        for change in (1 << place % 8, 0xFF):
            damaged = bytearray(data)
            damaged[place] ^= change
            with pytest.raises(SnapshotDamaged):
                unpack(bytes(damaged), "some kind", 3)


def test_every_cut() -> None:
    data = STATE.pack()
    for size in range(len(data)):
        with pytest.raises(SnapshotDamaged):
            unpack(data[:size], "some kind", 3)
    for size in range(1, 40):
        with pytest.raises(SnapshotDamaged):
            unpack(data[size:], "some kind", 3)
    with pytest.raises(SnapshotDamaged, match="bytes have changed"):
        unpack(data + b"\0", "some kind", 3)


def test_other_kinds_and_versions_are_refused() -> None:
    data = STATE.pack()
    with pytest.raises(SnapshotDamaged, match=r"of some kind 3 where one of pattern 3 is wanted"):
        unpack(data, "pattern", 3)
    with pytest.raises(SnapshotDamaged, match=r"of some kind 3 where one of some kind 1 is wanted"):
        unpack(data, "some kind")


def test_another_format_is_named() -> None:
    """Holds even if its bytes are intact by its own rules."""
    body = MAGIC + (2).to_bytes(2, "little") + STATE.pack()[6:-16]
    with pytest.raises(SnapshotDamaged, match="of format 2, this release reads 1"):
        unpack(body + hashlib.blake2b(body, digest_size=16).digest(), "some kind", 3)


@pytest.mark.parametrize("data", [b"", b"SEUS", b"PAR1" * 20, json.dumps(PLAIN).encode()])
def test_anything_else_is_no_snapshot(data: bytes) -> None:
    with pytest.raises(SnapshotDamaged, match="this is no snapshot"):
        unpack(data, "some kind")
