"""Dewey numbers: they tell which way through the shared buffer an edge belongs to.

A version is a tuple of digits, written 1.0.2. An edge with version `w` may be walked by a run with
version `v` if `w` is an ancestor of `v`: `compatible(v, w)`.
"""

from __future__ import annotations

import enum

Version = tuple[int, ...]


def root(number: int) -> Version:
    return (number,)


def increase(version: Version, by: int = 1) -> Version:
    """Returns the version with its last digit increased by `by`."""
    return (*version[:-1], version[-1] + by)


def add_stage(version: Version) -> Version:
    """Returns the version with one more digit, 0."""
    return (*version, 0)


def compatible(v: Version, w: Version) -> bool:
    """Returns whether `w` is a prefix of `v`, or of equal length and different at most in the last
    digit, where that of `v` must not be smaller. It may be equal, because the edges of a loop
    repeat a version."""
    if len(v) > len(w):
        return v[: len(w)] == w
    return len(v) == len(w) and v[:-1] == w[:-1] and v[-1] >= w[-1]


def show(version: Version) -> str:
    return ".".join(map(str, version))


class Numbering(enum.Enum):
    PER_TAKE = "per_take"
    PER_STATE = "per_state"
