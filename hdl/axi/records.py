"""Records on the data ports: C structs, so that a DMA engine can move a buffer in memory as it is.

A record takes as many beats of 64 bits as it needs, least significant byte first, each member at a
multiple of its size. The gateware, the C header and the columns of a host are made from the same table.

*In*: TUPLE and MARK. *Out*: RESULT, HANDED_OVER, and the MARK that came in, after all output that
the tuples before it lead to. `tlast` comes with a mark: a packet is the answer to a batch.
Timestamps and sequence numbers wrap around at the width of the configuration.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from seustream.hdl.config import MAX_ATTRIBUTES, DeviceConfig

BEAT = 8
"""Bytes of a beat."""


class RecordKind(enum.IntEnum):
    """First byte of a record. A record of another kind is dropped and counted."""

    TUPLE = 1
    MARK = 2
    RESULT = 3
    HANDED_OVER = 4


@dataclass(frozen=True, slots=True)
class RecordMember:
    """A member of a record: `count` values of `bytes` bytes each, from byte `at` on."""

    name: str
    bytes: int
    about: str
    count: int = 1
    at: int = 0

    @property
    def bit(self) -> int:
        return 8 * self.at


@dataclass(frozen=True, slots=True)
class Record:
    name: str
    members: tuple[RecordMember, ...]

    @classmethod
    def of(cls, name: str, *members: RecordMember) -> Record:
        """Places the members as a C compiler would."""
        placed, at = [], 0
        for member in members:
            at = -(-at // member.bytes) * member.bytes
            placed.append(RecordMember(member.name, member.bytes, member.about, member.count, at))
            at += member.bytes * member.count
        return cls(name, tuple(placed))

    @property
    def bytes(self) -> int:
        last = self.members[-1]
        return -(-(last.at + last.bytes * last.count) // BEAT) * BEAT

    @property
    def beats(self) -> int:
        return self.bytes // BEAT

    def __getitem__(self, name: str) -> RecordMember:
        return next(member for member in self.members if member.name == name)

    @property
    def dtype(self) -> np.dtype[np.void]:
        """The record as the element type of a numpy array."""
        shapes = [
            (f"<u{m.bytes}", (m.count,)) if m.count > 1 else f"<u{m.bytes}" for m in self.members
        ]
        return np.dtype(
            {
                "names": [member.name for member in self.members],
                "formats": shapes,
                "offsets": [member.at for member in self.members],
                "itemsize": self.bytes,
            }
        )  # fmt: skip


def input_record(config: DeviceConfig) -> Record:
    """Layout of a record in: a raw tuple, or a mark."""
    return Record.of(
        "seustream_input",
        RecordMember("kind", 1, "TUPLE or MARK"),
        RecordMember("stream", 1, "of a tuple"),
        RecordMember("flags", 1, "of a tuple: bit 0 admit, bit 1 filler"),
        RecordMember("mark", 1, "of a mark: its number"),
        RecordMember("sequence", _count_bytes(config), "of a tuple, in its source"),
        RecordMember("timestamp", 8, "of a tuple"),
        RecordMember("attributes", config.attribute_width // 8, "of a tuple", MAX_ATTRIBUTES),
    )


def output_record(config: DeviceConfig) -> Record:
    """Layout of a record out: a result, a tuple handed over, or a mark."""
    return Record.of(
        "seustream_output",
        RecordMember("kind", 1, "RESULT, HANDED_OVER or MARK"),
        RecordMember("carries", 1, "of a result: a bit for each stream that has a part"),
        RecordMember("mark", 1, "of a mark: its number"),
        RecordMember("stream", 1, "of a tuple handed over"),
        RecordMember("taker", 1, "stream of the tuple that displaced it"),
        RecordMember("queries", 8, "of a result: a bit for each query that it is of"),
        RecordMember("newest", 8, "timestamp of a result"),
        RecordMember("oldest", 8, "timestamp of its oldest component"),
        RecordMember(
            "sequences",
            _count_bytes(config),
            "of a result: by stream; of a tuple handed over: its own, and that of the taker",
            config.streams,
        ),
    )


def _count_bytes(config: DeviceConfig) -> int:
    return 4 if config.sequence_width <= 32 else 8
