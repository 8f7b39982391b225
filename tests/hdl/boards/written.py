"""Messages as a host writes them, by hand."""

from __future__ import annotations

import random
from typing import Any

from seustream.hdl.boards.messages import ATTRIBUTES, INCOMING, MESSAGES, bytes_of, widths
from seustream.hdl.boards.protocol import Opcode
from seustream.hdl.config import CONFIGURATIONS, MAX_STREAMS

WIDTHS = widths(CONFIGURATIONS["tiny"])


class Written:
    """Writes messages as a host does; at times even what need not travel."""

    def __init__(self, chance: random.Random, often: float = 0.2) -> None:
        self._chance, self._often = chance, often
        self._time, self._last = 0, [0] * MAX_STREAMS

    def command(self, value: int) -> bytes:
        word = WIDTHS["word"]
        return _message(
            Opcode.COMMAND, {}, {"word": value & (1 << word) - 1, "data": value >> word}
        )

    def mark(self, value: int) -> bytes:
        return _message(Opcode.MARK, {}, {"step": value})

    def raw(self, raw: dict[str, Any]) -> bytes:
        time, sequence, often = (
            raw["timestamp"],
            raw["sequence"],
            self._chance.random() < self._often,
        )
        step = (time - self._time) % (1 << WIDTHS["timestamp"])
        fields = {"step": step if step < 256 else 0}
        if step > 255 or often:
            fields["timestamp"] = time
        last = self._last[raw["stream"]]
        if often or sequence != (last + 1) % (1 << WIDTHS["sequence"]):
            fields["sequence"] = sequence
        for name, value in zip(ATTRIBUTES, raw["attributes"], strict=True):
            if value or often:
                fields[name] = value
        self._time, self._last[raw["stream"]] = time, sequence
        return _message(
            Opcode.RAW, {name: raw[name] for name in ("stream", "admit", "filler")}, fields
        )

    def random_raw(self) -> dict[str, Any]:
        chance = self._chance
        stream = chance.randrange(MAX_STREAMS)
        return {
            "stream": stream,
            "admit": chance.getrandbits(1),
            "filler": chance.getrandbits(1),
            "timestamp": (self._time + chance.choice([0, 1, 255, 256, chance.getrandbits(24)]))
            % (1 << WIDTHS["timestamp"]),
            "sequence": (self._last[stream] + chance.choice([1, 1, 1, 0, chance.getrandbits(16)]))
            % (1 << WIDTHS["sequence"]),
            "attributes": [chance.choice([0, chance.getrandbits(16)]) for _ in ATTRIBUTES],
        }


def _message(opcode: Opcode, members: dict[str, int], fields: dict[str, int]) -> bytes:
    message = MESSAGES[opcode]
    head = int(opcode)
    for name, value in (
        *members.items(),
        *((name, 1) for name in fields if name in message.optional),
    ):
        head |= value << message.at(name)
    return head.to_bytes(2, "little") + b"".join(
        fields[name].to_bytes(bytes_of(WIDTHS[name]), "little")
        for name in INCOMING
        if name in fields
    )
