"""Rows of words, as the ports of a processor have them, to messages of the link and back."""

from __future__ import annotations

import numpy as np

from seustream.cosim.link.errors import LinkError
from seustream.cosim.processor.bits import Words, words_of
from seustream.hdl.boards.protocol import Opcode, Reply


def bytes_of(bits: int) -> int:
    return -(-bits // 8)


def to_messages(opcode: Opcode, rows: Words, bits: int) -> bytes:
    """Payloads of so many bits, one a row, as messages."""
    wide = np.ascontiguousarray(rows.astype("<u4")).view(np.uint8)
    messages = np.empty((len(rows), 1 + bytes_of(bits)), np.uint8)
    messages[:, 0] = opcode
    messages[:, 1:] = wide[:, : bytes_of(bits)]
    return messages.tobytes()


def to_rows(payloads: list[bytes], bits: int) -> Words:
    """Payloads of messages of one kind, as rows."""
    wide = np.zeros((len(payloads), 4 * words_of(bits)), np.uint8)
    if payloads:
        joined = np.frombuffer(b"".join(payloads), np.uint8)
        wide[:, : bytes_of(bits)] = joined.reshape(len(payloads), -1)
    return wide.view("<u4").astype(np.uint32)


class Unknown(LinkError):
    """An opcode no board sends: the streams are no longer in step."""


class Messages:
    """Cuts a stream into messages."""

    def __init__(self, bits: dict[Reply, int]) -> None:
        self._lengths = {int(reply): bytes_of(width) for reply, width in bits.items()}
        self._rest = b""

    def add(self, data: bytes) -> list[tuple[Reply, bytes]]:
        """The messages that are complete now."""
        data = self._rest + data
        at, found = 0, []
        while at < len(data):
            length = self._lengths.get(data[at])
            if length is None:
                raise Unknown(
                    f"the board sends a message of unknown kind {data[at]}",
                    "run again: a new session begins with an empty board",
                )
            if at + 1 + length > len(data):
                break
            found.append((Reply(data[at]), data[at + 1 : at + 1 + length]))
            at += 1 + length
        self._rest = data[at:]
        return found
