"""Tests the device contract over a processor's ports, which are played here: what is sent, and how
a batch is cut."""

from __future__ import annotations

import numpy as np
import pytest

from seustream.compiler.wjasip.image import decode, encode
from seustream.cosim.processor.bits import Words, unpack
from seustream.cosim.processor.device import ProcessorDevice
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.control_words import ControlOperation, Target, Verdict, load_commands
from seustream.hdl.device import LoadRefused, NotLoaded
from tests.cosim.contract import EQUALITY
from tests.cosim.queries import R, S, arrivals, batch, build

TINY = CONFIGURATIONS["tiny"]
IMAGE = encode(build([EQUALITY]), TINY)


class Ports:
    """A processor that answers OK to everything except the commands that it is to refuse, and gives
    no results."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.refused: int | None = None
        self.verdict = Verdict.OK
        self.pushed: list[Words] = []
        self.closed = False

    def commands(self, rows: Words, patience: int) -> tuple[int, Words]:
        answer = np.zeros(8, np.uint32)
        for number, row in enumerate(rows):
            self.asked.append(int(row[0]) & 7)
            if self.refused is not None and len(self.asked) > self.refused:
                self.refused = None
                answer[0] = self.verdict
                return number + 1, answer
        return len(rows), answer

    def run(self, raws: Words, patience: int) -> None:
        self.pushed.append(raws)

    def take(self, what: int, words: int) -> Words:
        return np.empty((0, words), np.uint32)

    def close(self) -> None:
        self.closed = True


def device() -> tuple[ProcessorDevice, Ports]:
    ports = Ports()
    return ProcessorDevice(TINY, ports), ports


def test_an_image_is_begun_written_and_committed() -> None:
    one, ports = device()
    with pytest.raises(NotLoaded):
        one.push(batch(arrivals([(R, 1, (5,))])))
    one.load(IMAGE)
    operations = [ControlOperation(asked) for asked in ports.asked]
    assert operations[0] is ControlOperation.BEGIN
    assert operations[-1] is ControlOperation.COMMIT
    assert set(operations[1:-1]) == {ControlOperation.WRITE}
    assert one.config is TINY
    one.close()
    assert ports.closed


def test_what_is_refused_is_given_up_and_the_device_as_it_was() -> None:
    one, ports = device()
    commands = [*load_commands(decode(IMAGE, TINY), TINY)]
    for target, place in (
        (Target.INSTRUCTION, (1, "instruction", 2)),
        (Target.TERMS, (2, "terms", 7)),
        (Target.DESTINATION, (None, "destination", 3)),
    ):
        wanted = (place[0] or 0, place[2])
        at = next(
            n
            for n, c in enumerate(commands)
            if c.target == target and (c.unit, c.address) == wanted
        )
        ports.refused, ports.verdict = len(ports.asked) + 1 + at, Verdict.BAD_ADDRESS
        with pytest.raises(LoadRefused, match="was answered: bad address") as caught:
            one.load(IMAGE)
        assert (caught.value.area, caught.value.table, caught.value.row) == place
        assert ControlOperation(ports.asked[-1]) is ControlOperation.ABORT
        with pytest.raises(NotLoaded):
            one.push(batch(arrivals([(R, 1, (5,))])))
    one.load(IMAGE)
    assert not len(one.push(batch(arrivals([(R, 1, (5,))]))))


def test_a_load_that_is_not_begun_has_no_place() -> None:
    one, ports = device()
    ports.refused, ports.verdict = 0, Verdict.LOADING
    with pytest.raises(LoadRefused, match="was answered: loading") as caught:
        one.load(IMAGE)
    assert (caught.value.area, caught.value.table, caught.value.row) == (None, None, None)


def test_a_batch_is_cut_where_counters_would_come_round_and_fillers_go_before() -> None:
    """Within a piece less than half of a counter's range passes; a leap of the clock is
    announced."""
    one, ports = device()
    one.load(IMAGE)
    half = 1 << TINY.timestamp_width - 1
    times = [1, 2, half + 3, half + 4, 9 * half, 9 * half + 1]
    one.push(batch(arrivals([((R, S)[n % 2], time, (n,)) for n, time in enumerate(times)])))
    rows = [unpack(one._fields["raw"], raws) for raws in ports.pushed]
    real = [
        int(ts)
        for piece in rows
        for ts, filler in zip(piece["timestamp"], piece["filler"], strict=True)
        if not filler
    ]
    mask = (1 << TINY.timestamp_width) - 1
    assert real == [time & mask for time in times]
    assert len(ports.pushed) > 1
    assert any(piece["filler"].any() for piece in rows)
    assert not len(one.flush())
