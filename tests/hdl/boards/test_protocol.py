"""Tests frames and identities against bytes worked out by hand, and against damage."""

from __future__ import annotations

import random
import zlib

import pytest

from seustream.hdl.boards.protocol import FLAG, MOST, FrameKind, LinkFrame


def test_a_frame_by_hand() -> None:
    frame = LinkFrame(FrameKind.DATA, 0x1234, 5, 6, 0x400, bytes([0x7E, 1]))
    body = bytes([3, 0x34, 0x12, 5, 0, 6, 0, 0, 4, 2, 0x7E, 1])
    crc = zlib.crc32(body).to_bytes(4, "little")
    assert not {0x7D, 0x7E} & {*crc}, "else the next line would be wrong"
    assert frame.encode() == bytes([0x7E]) + body[:10] + bytes([0x7D, 0x5E, 1]) + crc + b"\x7e"


@pytest.mark.parametrize("seed", range(20))
def test_what_is_sent_is_what_comes(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    numbers = [chance.getrandbits(16) for _ in range(4)]
    payload = bytes(chance.choice([FLAG, 0x7D, 0x5E, 1]) for _ in range(chance.randrange(MOST)))
    frame = LinkFrame(chance.choice([*FrameKind]), *numbers, payload=payload)
    sent = frame.encode()
    assert FLAG not in sent[1:-1]
    assert LinkFrame.decode(sent[1:-1]) == frame


@pytest.mark.parametrize("seed", range(20))
def test_damage_is_noticed(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    sent = LinkFrame(FrameKind.DATA, 1, 2, 3, 4, chance.randbytes(60)).encode()[1:-1]
    for at in range(len(sent)):
        wrong = bytearray(sent)
        wrong[at] ^= 1 << chance.randrange(8)
        for piece in bytes(wrong).split(bytes([FLAG])):
            assert LinkFrame.decode(piece) is None
        assert LinkFrame.decode(sent[:at]) is None
        assert LinkFrame.decode(sent[at + 1 :]) is None
