"""Takes image files apart, damages them, and rebuilds them with correct lengths and checksum."""

from __future__ import annotations

import random
import struct
import zlib

from seustream.compiler.wjasip.image import MAGIC, VERSION


def taken_apart(image: bytes) -> tuple[bytes, bytes]:
    """Returns configuration and body."""
    (n,) = struct.unpack_from("<H", image, 6)
    return image[8 : 8 + n], image[12 + n : -4]


def put_together(head: bytes, body: bytes, version: int = VERSION) -> bytes:
    data = MAGIC + struct.pack("<HH", version, len(head)) + head
    data += struct.pack("<I", len(body)) + body
    return data + struct.pack("<I", zlib.crc32(data))


def mutated(chance: random.Random, data: bytes) -> bytes:
    """Makes one to three changes: flips a bit, replaces a byte, writes a boundary value, adds or
    removes a byte, or copies a run of bytes from elsewhere."""
    out = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(out))
        match chance.randrange(6):
            case 0:
                out[at] ^= 1 << chance.randrange(8)
            case 1:
                out[at] = chance.randrange(256)
            case 2:
                out[at] = chance.choice([0, 1, 2, 3, 4, 0x7F, 0x80, 0xFF])
            case 3:
                out.insert(at, chance.randrange(256))
            case 4:
                del out[at]
            case _:
                source = chance.randrange(len(out))
                run = out[source : source + chance.randrange(1, 9)]
                out[at : at + len(run)] = run
    return bytes(out)
