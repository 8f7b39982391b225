"""Messages of the host link, bit by bit. Redundant fields are left out: an attribute that is 0, as is every
attribute that no query compares; a timestamp near the one before; a sequence number that is the next one; the
streams that take no part in a result.

A message begins with two bytes, the least significant first: an opcode, the members of this opcode,
and a bit for each of its optional fields. Its fields follow, in the order of `INCOMING` and `OUTGOING`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from seustream.hdl.boards.protocol import Opcode, Reply
from seustream.hdl.config import MAX_ATTRIBUTES, MAX_STREAMS, DeviceConfig
from seustream.hdl.control_words import (
    ADDRESS_BITS,
    DATA_BITS,
    OPERATION_BITS,
    TARGET_BITS,
    UNIT_BITS,
)

OPCODE_BITS, HEAD_BITS = 3, 16
WORD_BITS = OPERATION_BITS + TARGET_BITS + UNIT_BITS + ADDRESS_BITS
STEP_BITS, AGE_BITS, QUERY_BITS, MAP_BITS = 8, 16, 6, 64
ATTRIBUTES = tuple(f"attribute{number}" for number in range(MAX_ATTRIBUTES))
SEQUENCES = tuple(f"sequence{number}" for number in range(MAX_STREAMS))
INCOMING = ("step", "timestamp", "sequence", *ATTRIBUTES, "word", "data")
OUTGOING = ("step", "queries", "newest", "age", "oldest", *SEQUENCES, "data")


@dataclass(frozen=True, slots=True)
class Message:
    """Format of the messages of an opcode.

    head      members behind the opcode, and their widths
    always    fields that every message has
    optional  fields that a message has if their bit is set; these bits are behind the members
    """

    always: tuple[str, ...] = ()
    head: dict[str, int] = field(default_factory=dict)
    optional: tuple[str, ...] = ()

    def at(self, name: str) -> int:
        """The bit position in the head of a member, or of an optional field's bit."""
        place = OPCODE_BITS
        for member, bits in (*self.head.items(), *((each, 1) for each in self.optional)):
            if member == name:
                return place
            place += bits
        raise KeyError(name)

    def has(self, head: int) -> tuple[str, ...]:
        """The fields that follow this head."""
        return (*self.always, *(name for name in self.optional if head >> self.at(name) & 1))


MESSAGES: dict[Opcode, Message] = {
    Opcode.COMMAND: Message(("word", "data")),
    # A missing timestamp is the last one plus `step`, a missing sequence number is one more than the last of
    # its stream, and a missing attribute is 0.
    Opcode.RAW: Message(
        ("step",),
        {"stream": 2, "admit": 1, "filler": 1},
        ("timestamp", "sequence", *ATTRIBUTES),
    ),
    Opcode.MARK: Message(("step",)),
}
_OF_RESULT = ("newest", "age", "oldest", *SEQUENCES)
REPLIES: dict[Reply, Message] = {
    Reply.RESPONSE: Message(("data",), {"verdict": 4}),
    # A missing `newest` is that of the last result plus `step`. A missing `oldest` is `newest` minus `age`, or
    # equal to `newest` if `age` is missing, too.
    Reply.RESULT: Message(("step",), {"query": QUERY_BITS}, _OF_RESULT),
    Reply.HANDED_OVER: Message(SEQUENCES[:2], {"stream": 2, "taker": 2}),
    Reply.MARK: Message(("step",)),
    # Like RESULT, but with its queries as a bit map.
    Reply.RESULTS: Message(("step", "queries"), {"unused": QUERY_BITS}, _OF_RESULT),
}


def widths(config: DeviceConfig) -> dict[str, int]:
    """Width of each field in bits; it travels in whole bytes."""
    time, sequence = config.timestamp_width, config.sequence_width
    return {
        "step": STEP_BITS,
        "age": AGE_BITS,
        "queries": MAP_BITS,
        "word": WORD_BITS,
        "data": DATA_BITS,
        "sequence": sequence,
        **dict.fromkeys(("timestamp", "newest", "oldest"), time),
        **dict.fromkeys(ATTRIBUTES, config.attribute_width),
        **dict.fromkeys(SEQUENCES, sequence),
    }


def bytes_of(bits: int) -> int:
    return -(-bits // 8)
