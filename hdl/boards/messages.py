"""Messages of the host link, bit by bit. What need not travel does not: an attribute that is 0, as all
are that no query compares, a timestamp near the one before, a sequence number that is the next one, the
streams that have no part in a result.

A message begins with two bytes, the least significant first: an opcode, members that belong to it,
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
    """
    head      bits of the members behind the opcode
    always    fields it has
    optional  fields that it has if their bit is set, which are behind the members
    """

    always: tuple[str, ...] = ()
    head: dict[str, int] = field(default_factory=dict)
    optional: tuple[str, ...] = ()

    def at(self, name: str) -> int:
        """The place in the head of a member, or of an optional field's bit."""
        place = OPCODE_BITS
        for member, bits in (*self.head.items(), *((each, 1) for each in self.optional)):
            if member == name:
                return place
            place += bits
        raise KeyError(name)

    def has(self, head: int) -> tuple[str, ...]:
        """The fields behind this head."""
        return (*self.always, *(name for name in self.optional if head >> self.at(name) & 1))


MESSAGES: dict[Opcode, Message] = {
    Opcode.COMMAND: Message(("word", "data")),
    # Without a timestamp it is the last one's and `step`, without a sequence number one more than
    # the last of its stream, and without an attribute that is 0.
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
    # Without `newest` that is the last result's and `step`; without `oldest` it is so much older as
    # `age` says, and without either as old.
    Reply.RESULT: Message(("step",), {"query": QUERY_BITS}, _OF_RESULT),
    Reply.HANDED_OVER: Message(SEQUENCES[:2], {"stream": 2, "taker": 2}),
    Reply.MARK: Message(("step",)),
    # As a RESULT, of all queries in a bit map.
    Reply.RESULTS: Message(("step", "queries"), {"unused": QUERY_BITS}, _OF_RESULT),
}


def widths(config: DeviceConfig) -> dict[str, int]:
    """Bits of each field; it travels in whole bytes."""
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
