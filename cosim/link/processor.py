"""A processor at the other end of a line: the same calls as `seustream.cosim.processor.device.Processor`."""

from __future__ import annotations

import itertools

import numpy as np

from seustream.cosim.link.errors import BoardRefused, BoardStuck
from seustream.cosim.link.messages import Messages, to_messages, to_rows
from seustream.cosim.link.session import LinkSession
from seustream.cosim.processor.bits import Words
from seustream.cosim.processor.device import HANDED_OVER, RESULTS
from seustream.hdl.boards.identity import Identity, config_digest, version
from seustream.hdl.boards.protocol import Opcode, Reply
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.control_words import ControlOperation, Verdict

_AT_ONCE = 1 << 15
"""Bytes put into the session at a time."""
_STEP = 0.05
"""Seconds a step waits at most, so that Ctrl-C is heard."""


class LinkProcessor:
    """
    stall  seconds without progress after which a board that answers counts as stuck
    """

    def __init__(self, session: LinkSession, config: DeviceConfig, stall: float = 60.0) -> None:
        from seustream.hdl.control import COMMAND, RESPONSE
        from seustream.hdl.layouts import Layouts

        layouts = Layouts(config)
        self._session, self._stall = session, stall
        self._bits = {Opcode.COMMAND: COMMAND.size, Opcode.RAW: layouts.raw.size}
        self._reply_bits = {
            Reply.RESPONSE: RESPONSE.size,
            Reply.RESULT: layouts.result.size,
            Reply.HANDED_OVER: layouts.handed_over.size,
            Reply.MARK: 8,
        }
        self._messages = Messages(self._reply_bits)
        self._came: dict[Reply, list[bytes]] = {reply: [] for reply in Reply}
        self._marks = itertools.cycle(range(256))
        self.identity = _checked(session.open(), config)
        self._clean()

    def _clean(self) -> None:
        """The board has dropped what was under way; its tables and windows are still those of
        an earlier session."""
        for operation in (ControlOperation.ABORT, ControlOperation.RESUME, ControlOperation.RESET):
            row = np.zeros((1, 8), np.uint32)
            row[0, 0] = operation
            _, answer = self.commands(row, 0)
        if answer[0] & 15 != Verdict.OK:
            raise BoardStuck("the board does not reset", "switch it off and on again")

    def close(self) -> None:
        self._session.close()

    def commands(self, rows: Words, patience: int) -> tuple[int, Words]:
        """Commands one after the other, up to one that is refused: how many were answered, and
        the last answer. Writes go together; of those after a refused one none matters, because
        what they write into is given up."""
        answered, answer = 0, np.zeros(8, np.uint32)
        for first, stop in _runs(rows):
            part = rows[first:stop]
            self._session.put(to_messages(Opcode.COMMAND, part, self._bits[Opcode.COMMAND]))
            self._until(Reply.RESPONSE, len(part))
            got = to_rows(self._came[Reply.RESPONSE], self._reply_bits[Reply.RESPONSE])
            self._came[Reply.RESPONSE] = []
            refused = np.flatnonzero(got[:, 0] & 15)
            last = int(refused[0]) if refused.size else len(part) - 1
            answered = first + last + 1
            answer = np.zeros(8, np.uint32)
            answer[: got.shape[1]] = got[last]
            if refused.size:
                break
        return answered, answer

    def run(self, raws: Words, patience: int) -> None:
        """Pushes raw tuples, and waits until all that comes of them is here."""
        bits = self._bits[Opcode.RAW]
        at_once = max(1, _AT_ONCE // (bits // 8 + 2))
        for first in range(0, len(raws), at_once):
            while self._session.backlog > _AT_ONCE:
                self._step()
            self._session.put(to_messages(Opcode.RAW, raws[first : first + at_once], bits))
        mark = bytes([next(self._marks)])
        self._session.put(bytes([Opcode.MARK]) + mark)
        self._until(Reply.MARK, 1)
        if self._came[Reply.MARK] != [mark]:
            raise BoardStuck(f"mark {self._came[Reply.MARK][0].hex()} came for {mark.hex()}")
        self._came[Reply.MARK] = []

    def take(self, what: int, words: int) -> Words:
        """Returns what came out since it was last asked, in rows."""
        reply = {RESULTS: Reply.RESULT, HANDED_OVER: Reply.HANDED_OVER}[what]
        rows = to_rows(self._came[reply], self._reply_bits[reply])
        self._came[reply] = []
        return rows

    def _until(self, reply: Reply, count: int) -> None:
        while len(self._came[reply]) < count:
            self._step()

    def _step(self) -> None:
        while not self._session.step(_STEP):
            if self._session.still > self._stall:
                raise BoardStuck(f"the board did nothing for {self._stall:g} seconds")
        for reply, payload in self._messages.add(self._session.take()):
            self._came[reply].append(payload)


def _runs(rows: Words) -> list[tuple[int, int]]:
    """Commands that may be sent together: writes."""
    writes = (rows[:, 0] & 7) == ControlOperation.WRITE
    borders = [0, *(i for i in range(1, len(rows)) if not (writes[i] and writes[i - 1])), len(rows)]
    return list(itertools.pairwise(borders))


def _checked(said: bytes, config: DeviceConfig) -> Identity:
    """The board's identity, if it is what the host wants."""
    identity = Identity.decode(said)
    if identity is None:
        raise BoardRefused(
            f"the board speaks another protocol: {said[:1].hex() or 'nothing'}",
            "program it with a bitstream of this version: seustream bitstream",
        )
    wanted = version()
    build = f"seustream bitstream --board {identity.board} --config {config.name}"
    if identity.version != wanted:
        raise BoardRefused(
            f"the board holds bitstream version {identity.version:08x},"
            f" this host wants {wanted:08x}",
            f"program it anew: {build}",
        )
    if identity.config != config_digest(config):
        names = {config_digest(known): name for name, known in CONFIGURATIONS.items()}
        held = names.get(identity.config)
        raise BoardRefused(
            f"the board holds configuration {held or f'{identity.config:08x}'},"
            f" not {config.name} ({config_digest(config):08x})",
            (f"--config {held}, or " if held else "") + f"program it anew: {build}",
        )
    return identity
