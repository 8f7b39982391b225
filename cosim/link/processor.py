"""A processor at the other end of a line, with the same calls as
`seustream.cosim.processor.device.Processor`."""

from __future__ import annotations

import itertools

import numpy as np

from seustream.cosim.link.errors import BoardRefused, BoardStuck
from seustream.cosim.link.messages import MessageReader, MessageWriter
from seustream.cosim.link.session import LinkSession
from seustream.cosim.processor.bits import Column, Words, flatten, pack, unpack
from seustream.cosim.processor.device import HANDED_OVER, RESULTS
from seustream.hdl.boards.identity import Identity, config_digest, version
from seustream.hdl.boards.messages import WORD_BITS
from seustream.hdl.boards.protocol import Reply
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.control_words import DATA_BITS, ControlOperation, Verdict

_AT_ONCE = 1 << 15
"""The most bytes that wait in the session."""
_TUPLES = 1 << 11
"""Tuples put into it at a time."""
_COMMAND = {"word": (0, WORD_BITS), "data": (WORD_BITS, DATA_BITS)}
_REPLIES = {RESULTS: Reply.RESULT, HANDED_OVER: Reply.HANDED_OVER}
_STEP = 0.05
"""The longest wait of a step in seconds, so that Ctrl-C takes effect."""


class LinkProcessor:
    """Drives a processor over a session.

    stall   seconds without progress after which a board that answers counts as stuck
    """

    def __init__(self, session: LinkSession, config: DeviceConfig, stall: float = 60.0) -> None:
        from seustream.hdl.control import RESPONSE
        from seustream.hdl.layouts import Layouts

        layouts = Layouts(config)
        self._session, self._stall = session, stall
        self._raw = flatten(layouts.raw)
        self._fields = {
            Reply.RESPONSE: flatten(RESPONSE),
            Reply.RESULT: flatten(layouts.result),
            Reply.HANDED_OVER: flatten(layouts.handed_over),
        }
        self._writer, self._reader = MessageWriter(config), MessageReader(config)
        self._came: dict[Reply, list[dict[str, Column]]] = {reply: [] for reply in Reply}
        self._marks = itertools.cycle(range(256))
        self.identity = _checked(session.open(), config)
        self._clean()

    def _clean(self) -> None:
        """Resets the board. It has dropped what was under way, but its tables and windows are still
        those of an earlier session."""
        for operation in (ControlOperation.ABORT, ControlOperation.RESUME, ControlOperation.RESET):
            row = np.zeros((1, 8), np.uint32)
            row[0, 0] = operation
            _, answer = self.commands(row, 0)
        if answer[0] & 15 != Verdict.OK:
            raise BoardStuck("the board does not reset", "switch it off and on again")

    def close(self) -> None:
        self._session.close()

    def commands(self, rows: Words, patience: int) -> tuple[int, Words]:
        """Sends commands one after the other, up to one that is refused; returns how many were
        answered, and the last answer. Writes are sent together; those after a refused one do not
        matter, since their target is discarded."""
        answered, answer = 0, np.zeros(8, np.uint32)
        for first, stop in _runs(rows):
            part = rows[first:stop]
            columns = unpack(_COMMAND, part)
            self._session.put(self._writer.commands(columns["word"], columns["data"]))
            self._until(Reply.RESPONSE, len(part))
            got = self._rows(Reply.RESPONSE)
            refused = np.flatnonzero(got[:, 0] & 15)
            last = int(refused[0]) if refused.size else len(part) - 1
            answered = first + last + 1
            answer = np.zeros(8, np.uint32)
            answer[: got.shape[1]] = got[last]
            if refused.size:
                break
        return answered, answer

    def run(self, raws: Words, patience: int) -> None:
        """Pushes raw tuples, and waits until all of their results are here."""
        for first in range(0, len(raws), _TUPLES):
            while self._session.backlog > _AT_ONCE:
                self._step()
            columns = unpack(self._raw, raws[first : first + _TUPLES])
            self._session.put(self._writer.tuples(columns))
        mark = next(self._marks)
        self._session.put(self._writer.mark(mark))
        self._until(Reply.MARK, 1)
        came = self._taken(Reply.MARK)["step"].tolist()
        if came != [mark]:
            raise BoardStuck(f"marks {came} came for {mark}")

    def take(self, what: int, words: int) -> Words:
        """Returns the output since the last call, in rows."""
        reply = _REPLIES[what]
        return self._rows(reply) if self._came[reply] else np.zeros((0, words), np.uint32)

    def _taken(self, reply: Reply) -> dict[str, Column]:
        came, self._came[reply] = self._came[reply], []
        return {name: np.concatenate([columns[name] for columns in came]) for name in came[0]}

    def _rows(self, reply: Reply) -> Words:
        columns = self._taken(reply)
        return pack(self._fields[reply], columns, len(next(iter(columns.values()))))

    def _until(self, reply: Reply, count: int) -> None:
        while sum(len(next(iter(columns.values()))) for columns in self._came[reply]) < count:
            self._step()

    def _step(self) -> None:
        while not self._session.step(_STEP):
            if self._session.still > self._stall:
                raise BoardStuck(f"the board did nothing for {self._stall:g} seconds")
        for reply, columns in self._reader.add(self._session.take()).items():
            self._came[reply].append(columns)


def _runs(rows: Words) -> list[tuple[int, int]]:
    """Groups commands that may be sent together: writes."""
    writes = (rows[:, 0] & 7) == ControlOperation.WRITE
    borders = [0, *(i for i in range(1, len(rows)) if not (writes[i] and writes[i - 1])), len(rows)]
    return list(itertools.pairwise(borders))


def _checked(said: bytes, config: DeviceConfig) -> Identity:
    """Returns the board's identity, if it is the expected one."""
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
