"""Frames and identities, against bytes worked out by hand and against damage."""

from __future__ import annotations

import random
import zlib
from pathlib import Path

import pytest

from seustream.hdl.boards import identity as identities
from seustream.hdl.boards.identity import LENGTH, Identity, config_digest, version
from seustream.hdl.boards.protocol import FLAG, MOST, FrameKind, LinkFrame
from seustream.hdl.config import CONFIGURATIONS


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


def test_identities() -> None:
    config = CONFIGURATIONS["tiny"]
    identity = Identity.of("ulx3s", config, 62.5)
    assert len(identity.encode()) == LENGTH
    assert Identity.decode(identity.encode()) == identity
    assert identity.clock == 62_500
    assert identity.version == version()
    assert Identity.decode(identity.encode()[:-1]) is None
    assert Identity.decode(b"\x09" + identity.encode()[1:]) is None
    with pytest.raises(ValueError, match="at most 15 letters"):
        Identity("a-board-with-a-long-name", 1, 2, 3).encode()


def test_the_version_is_of_what_a_source_does(tmp_path: Path) -> None:
    def code(text: str) -> str:
        source = tmp_path / "one.py"
        source.write_text(text)
        return identities.code(source)

    written = code("def f(a, b=1):\n    return a + b\n")
    assert written == code('def f(a, b=1):  # why\n    "What."\n\n    return (a + b)\n')
    assert written != code("def f(a, b=1):\n    return a - b\n")
    assert written != code("def f(a, b=2):\n    return a + b\n")
    # Members that a newer Python has, and leaves empty, say nothing.
    assert "type_params" not in written
    assert "[]" not in written


def test_a_configuration_is_more_than_its_name() -> None:
    import dataclasses

    digests = {config_digest(config) for config in CONFIGURATIONS.values()}
    assert len(digests) == len(CONFIGURATIONS)
    tiny = CONFIGURATIONS["tiny"]
    assert config_digest(dataclasses.replace(tiny, name="other")) == config_digest(tiny)
