"""Join keys: one form for equal values, and one hash that every site computes alike.

Values that are equal in SQL are equal here: an integral float is the integer, and minus zero is
zero. NULL and NaN equal nothing. A boolean is refused: Python's `True == 1` would join rows that
SQL does not.
"""

from __future__ import annotations

import hashlib
import struct
from typing import TypeAlias

import numpy as np

from seustream.engine.sites.errors import BadKey

Key: TypeAlias = int | float | str | bytes


def canonical(value: object) -> Key | None:
    """The one form of a key; None if it can equal nothing.

    >>> canonical(3.0), canonical(-0.0), canonical(float("nan")), canonical("a")
    (3, 0, None, 'a')
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        raise BadKey(f"{value} is a boolean, and booleans are no join keys", "cast it to a number")
    if value is None:
        return None
    if isinstance(value, float):
        if value != value:
            return None
        return int(value) if value.is_integer() else value
    if isinstance(value, int | str | bytes):
        return value
    raise BadKey(
        f"{value!r} is of type {type(value).__name__}, which is no join key",
        "use integers, floats, strings or bytes",
    )


def spelled(key: Key) -> bytes:
    """Returns the bytes that stand for a canonical key in a hash."""
    if isinstance(key, int):
        return b"i%d" % key
    if isinstance(key, str):
        return b"s" + key.encode("utf-8", "surrogatepass")
    if isinstance(key, bytes):
        return b"b" + key
    return b"f" + struct.pack(">d", key)


def hashed(key: Key, function: int, size: int) -> int:
    """Hash function number `function`, into 0..size-1.

    >>> hashed(1, 0, 1000), hashed(1, 1, 1000), hashed(42, 0, 1000)
    (486, 383, 518)
    """
    salt = function.to_bytes(8, "little")
    digest = hashlib.blake2b(spelled(key), digest_size=8, salt=salt).digest()
    return int.from_bytes(digest, "little") % size
