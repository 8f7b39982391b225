"""Tests messages to and from a board, whose part is played here: an encoder by hand beside the one
by columns."""

from __future__ import annotations

import random

import numpy as np
import pytest

from seustream.cosim.link.errors import LinkError
from seustream.cosim.link.messages import MessageReader, MessageWriter
from seustream.hdl.boards.protocol import Reply
from seustream.hdl.config import CONFIGURATIONS
from tests.hdl.boards.written import WIDTHS, Written

TINY = CONFIGURATIONS["tiny"]


def test_tuples_are_written_as_by_hand() -> None:
    """Holds in one piece or many; fields that need not travel do not."""
    seed = 3
    print(f"seed {seed}")
    chance = random.Random(seed)
    by_hand, writer = Written(chance, often=0.0), MessageWriter(TINY)
    for _ in range(20):
        raws, want = [], b""
        for _ in range(chance.randrange(1, 40)):
            raws.append(by_hand.random_raw())
            want += by_hand.raw(raws[-1])
        names = ("stream", "admit", "filler", "timestamp", "sequence")
        columns = {name: np.array([raw[name] for raw in raws], np.uint64) for name in names}
        for i in range(4):
            columns[f"attributes.{i}"] = np.array([r["attributes"][i] for r in raws], np.uint64)
        assert writer.tuples(columns) == want
    assert writer.mark(9) == by_hand.mark(9)
    number = chance.getrandbits(83)
    words, data = np.array([number & 0x7FFFF], np.uint64), np.array([number >> 19], np.uint64)
    assert writer.commands(words, data) == by_hand.command(number)


def test_two_columns_of_32_bits_take_eleven_bytes() -> None:
    writer = MessageWriter(CONFIGURATIONS["default3"])
    one = dict.fromkeys(
        ("stream", "filler", "attributes.2", "attributes.3"), np.zeros(10, np.uint64)
    )
    one |= {"admit": np.ones(10, np.uint64), "timestamp": np.arange(10, dtype=np.uint64)}
    one |= {f"attributes.{i}": np.full(10, 0xFFFFFFFF, np.uint64) for i in range(2)}
    one["sequence"] = np.arange(1, 11, dtype=np.uint64)
    assert len(writer.tuples(one)) == 110


def _result(query: int, members: int, fields: bytes) -> bytes:
    return (Reply.RESULT | query << 3 | members << 9).to_bytes(2, "little") + fields


def _results(queries: int, members: int, fields: bytes) -> bytes:
    head = (Reply.RESULTS | members << 9).to_bytes(2, "little")
    return head + fields[:1] + queries.to_bytes(8, "little") + fields[1:]


def test_results_are_read_wherever_they_are_cut() -> None:
    time = WIDTHS["newest"] // 8
    # At its time; 5 later and 300 old; at its time and very old; a mark; 1 later, of three queries and
    # 2 old; 1 later.
    said = (
        _result(7, 0b0011001, bytes([0]) + (1000).to_bytes(time, "little") + b"\1\0\2\0")
        + _result(8, 0b0010010, bytes([5]) + b"\x2c\1" + b"\3\0")
        + _result(
            9,
            0b1000101,
            bytes([0]) + (99999).to_bytes(time, "little") + (7).to_bytes(time, "little") + b"\4\0",
        )
        + bytes([Reply.MARK, 0, 6])
        + _results(1 << 63 | 5, 0b0010010, bytes([1]) + b"\2\0" + b"\7\0")
        + _result(63, 0, bytes([1]))
    )
    want = [
        (1 << 7, 0b0011, 1000, 1000, 1, 2, 0, 0),
        (1 << 8, 0b0010, 1005, 705, 0, 3, 0, 0),
        (1 << 9, 0b1000, 99999, 7, 0, 0, 0, 4),
        (1 << 63 | 5, 0b0010, 100000, 99998, 0, 7, 0, 0),
        (1 << 63, 0, 100001, 100001, 0, 0, 0, 0),
    ]
    for cut in range(len(said) + 1):
        reader, got, marks = MessageReader(TINY), [], []
        for piece in (said[:cut], said[cut:]):
            came = reader.add(piece)
            marks += came.get(Reply.MARK, {"step": np.zeros(0)})["step"].tolist()
            if results := came.get(Reply.RESULT):
                names = [
                    "queries",
                    "carries",
                    "newest",
                    "oldest",
                    *(f"sequences.{i}" for i in range(4)),
                ]
                got += list(zip(*(results[name].tolist() for name in names), strict=True))
        assert (got, marks) == (want, [6])


def test_a_kind_no_board_sends_is_told() -> None:
    with pytest.raises(LinkError, match="unknown kind 7"):
        MessageReader(TINY).add(bytes([7, 0]))
