"""Converts columns, as the ports of a processor have them, to messages of the link and back.

A side omits what the other can derive: time and sequence numbers before the first message of a
session are 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from seustream.cosim.link.errors import LinkError
from seustream.cosim.processor.bits import Column
from seustream.hdl.boards.messages import (
    ATTRIBUTES,
    HEAD_BITS,
    INCOMING,
    MESSAGES,
    OPCODE_BITS,
    OUTGOING,
    REPLIES,
    SEQUENCES,
    STEP_BITS,
    Message,
    bytes_of,
    widths,
)
from seustream.hdl.boards.protocol import Opcode, Reply
from seustream.hdl.config import MAX_STREAMS, DeviceConfig

_LIKE = {Reply.RESULTS: Reply.RESULT}
"""Messages that share the columns of others and alternate with them."""

Flags = npt.NDArray[np.bool_]
_HEAD = HEAD_BITS // 8
_NONE = np.uint64(0)


class MessageWriter:
    """Writes messages to a board, from the columns of `Layouts.raw` and `control.COMMAND`."""

    def __init__(self, config: DeviceConfig) -> None:
        self._widths = widths(config)
        self._time = _NONE
        self._last = np.zeros(MAX_STREAMS, np.uint64)

    def commands(self, words: Column, data: Column) -> bytes:
        """Writes commands; `word` is all of a command except its data."""
        return self._written(Opcode.COMMAND, len(words), {"word": words, "data": data})

    def mark(self, number: int) -> bytes:
        return self._written(Opcode.MARK, 1, {"step": np.array([number], np.uint64)})

    def tuples(self, columns: Mapping[str, Column]) -> bytes:
        streams, times = columns["stream"], columns["timestamp"]
        steps = np.diff(times, prepend=self._time) & _mask(self._widths["timestamp"])
        far = steps > _mask(STEP_BITS)
        numbers = columns["sequence"]
        other = np.zeros(len(streams), np.bool_)
        for stream in range(MAX_STREAMS):
            rows = np.flatnonzero(streams == np.uint64(stream))
            if rows.size:
                mine = numbers[rows]
                moved = np.diff(mine, prepend=self._last[stream]) & _mask(self._widths["sequence"])
                other[rows] = moved != np.uint64(1)
                self._last[stream] = mine[-1]
        self._time = times[-1]
        values = {
            "step": np.where(far, _NONE, steps),
            "timestamp": times,
            "sequence": numbers,
            **{name: columns[f"attributes.{i}"] for i, name in enumerate(ATTRIBUTES)},
        }
        has = {"timestamp": far, "sequence": other}
        has |= {name: values[name] != _NONE for name in ATTRIBUTES}
        members = {name: columns[name] for name in MESSAGES[Opcode.RAW].head if name in columns}
        return self._written(Opcode.RAW, len(streams), values, members, has)

    def _written(
        self,
        opcode: Opcode,
        rows: int,
        values: Mapping[str, Column],
        members: Mapping[str, Column] | None = None,
        has: Mapping[str, Flags] | None = None,
    ) -> bytes:
        message, has = MESSAGES[opcode], has or {}
        head = np.full(rows, opcode, np.uint64)
        flags = {name: there.astype(np.uint64) for name, there in has.items()}
        for name, column in (dict(members or {}) | flags).items():
            head |= column << np.uint64(message.at(name))
        parts, kept = [_octets(head, _HEAD)], [np.ones((rows, _HEAD), np.bool_)]
        for name in INCOMING:
            if name in values:
                width = bytes_of(self._widths[name])
                parts.append(_octets(values[name], width))
                there = has.get(name, np.ones(rows, np.bool_))
                kept.append(np.repeat(there[:, None], width, 1))
        # Row by row, the bytes that are present.
        written: bytes = np.concatenate(parts, 1)[np.concatenate(kept, 1)].tobytes()
        return written


class Unknown(LinkError):
    """An opcode that no board sends: the streams are no longer in step."""


class MessageReader:
    """Decodes messages from a board to columns."""

    def __init__(self, config: DeviceConfig) -> None:
        self._widths = widths(config)
        self._streams = config.streams
        self._newest = _NONE
        self._lengths: dict[int, int] = {}
        self._rest = b""

    def add(self, data: bytes) -> dict[Reply, dict[str, Column]]:
        """Returns the messages that are now complete, by kind: columns of `Layouts.result` and the
        others."""
        data = self._rest + data
        at, end = 0, len(data)
        found: dict[Reply, list[int]] = {}
        while at + _HEAD <= end:
            head = data[at] | data[at + 1] << 8
            length = self._lengths.get(head) or self._length(head)
            if at + length > end:
                break
            reply = Reply(head & (1 << OPCODE_BITS) - 1)
            found.setdefault(_LIKE.get(reply, reply), []).append(at)
            at += length
        self._rest = data[at:]
        octets = np.frombuffer(data, np.uint8)
        return {reply: self._columns(reply, octets, places) for reply, places in found.items()}

    def _length(self, head: int) -> int:
        opcode = head & (1 << OPCODE_BITS) - 1
        if opcode not in set(Reply):
            raise Unknown(
                f"the board sends a message of unknown kind {opcode}",
                "run again: a new session begins with an empty board",
            )
        names = REPLIES[Reply(opcode)].has(head)
        length = _HEAD + sum(bytes_of(self._widths[name]) for name in names)
        self._lengths[head] = length
        return length

    def _columns(
        self, reply: Reply, octets: npt.NDArray[np.uint8], places: Sequence[int]
    ) -> dict[str, Column]:
        at = np.array(places)
        head = _numbers(octets, at, _HEAD)
        # Results with a bit map and those without may alternate.
        mapped = head & _mask(OPCODE_BITS) == np.uint64(Reply.RESULTS)
        message = REPLIES[Reply.RESULTS if reply is Reply.RESULT else reply]
        columns = {name: _member(message, name, head) for name in message.head}
        at += _HEAD
        for name in OUTGOING:
            if name in (*message.always, *message.optional):
                width = bytes_of(self._widths[name])
                if name == "queries":
                    there = mapped
                elif name in message.always:
                    there = np.ones(len(at), np.bool_)
                else:
                    there = _member(message, name, head).astype(np.bool_)
                values = np.zeros(len(at), np.uint64)
                values[there] = _numbers(octets, at[there], width)
                columns[name], at = values, at + width * there
        if reply is Reply.RESULT:
            one = np.uint64(1) << _member(REPLIES[reply], "query", head)
            return self._result(
                head, columns | {"queries": np.where(mapped, columns["queries"], one)}
            )
        if reply is Reply.HANDED_OVER:
            columns["sequence"], columns["taken_by"] = map(columns.pop, SEQUENCES[:2])
        return columns

    def _result(self, head: Column, columns: dict[str, Column]) -> dict[str, Column]:
        message, mask = REPLIES[Reply.RESULT], _mask(self._widths["newest"])
        # At an explicit time, counting begins again.
        given = _member(message, "newest", head).astype(np.bool_)
        moved = np.where(given, columns["newest"], columns["step"])
        sums = np.cumsum(np.concatenate(([self._newest], moved)))[1:]
        begins = np.maximum.accumulate(np.where(given, np.arange(len(given)), -1))
        before = np.where(begins < 0, _NONE, (sums - moved)[np.maximum(begins, 0)])
        newest = (sums - before) & mask
        self._newest = newest[-1]
        old = _member(message, "oldest", head).astype(np.bool_)
        carries = np.zeros(len(head), np.uint64)
        for stream, name in enumerate(SEQUENCES[: self._streams]):
            carries |= _member(message, name, head) << np.uint64(stream)
        return {
            "queries": columns["queries"],
            "carries": carries,
            "newest": newest,
            "oldest": np.where(old, columns["oldest"], newest - columns["age"] & mask),
            **{
                f"sequences.{i}": columns[name] for i, name in enumerate(SEQUENCES[: self._streams])
            },
        }


def _member(message: Message, name: str, head: Column) -> Column:
    return head >> np.uint64(message.at(name)) & _mask(message.head.get(name, 1))


def _octets(column: Column, width: int) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(column.astype("<u8")).view(np.uint8).reshape(-1, 8)[:, :width]


def _numbers(octets: npt.NDArray[np.uint8], at: npt.NDArray[np.int_], width: int) -> Column:
    wide = np.zeros((len(at), 8), np.uint8)
    wide[:, :width] = octets[at[:, None] + np.arange(width)]
    numbers: Column = wide.view("<u8")[:, 0].astype(np.uint64)
    return numbers


def _mask(bits: int) -> np.uint64:
    return np.uint64((1 << bits) - 1)
