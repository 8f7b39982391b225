"""Proves the control unit: one answer per command, and tables exchanged only while nothing is in
flight (P1)."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Module, Signal

from seustream.hdl.control import ControlUnit
from seustream.hdl.control_words import ControlOperation, Verdict
from tests.formal.harness import (
    Case,
    Specification,
    altered,
    anything,
    before,
    build,
    check,
    drive,
    proof,
    small,
)


class ControlAnswers(Specification):
    """Any commands come in any order. The rest of the device takes no raw tuple while it must
    pause, so that a quiet device stays quiet."""

    def __init__(self, *fault: tuple[str, str]) -> None:
        super().__init__()
        self.make = altered(ControlUnit, *fault)

    def describe(self, m: Module) -> None:
        unit = self.make(small())
        build(m, "unit", unit)
        drive(m, unit, "commands", "responses", "quiet")
        commands, responses = unit.commands, unit.responses
        size = len(commands.payload.as_value())
        m.d.comb += [
            commands.valid.eq(anything(m, 1, "valid")),
            commands.payload.as_value().eq(anything(m, size, "command")),
            responses.ready.eq(anything(m, 1, "ready")),
        ]
        quiet, paused = anything(m, 1, "quiet"), before(m, unit.pause)
        was_quiet = before(m, quiet)
        m.d.comb += unit.quiet.eq(quiet)
        self.assume(m, ~(was_quiet & paused & before(m, paused)) | quiet)

        taken = commands.valid & commands.ready
        command = commands.payload.shape()(Signal(size, name="last"))
        asked = Signal()
        answers = responses.valid & ~before(m, responses.valid & ~responses.ready)
        with m.If(taken):
            m.d.sync += [command.as_value().eq(commands.payload.as_value()), asked.eq(1)]
        with m.Elif(answers):
            m.d.sync += asked.eq(0)
        self.claim(m, ~answers | asked)
        self.claim(m, ~taken | ~asked)
        waits = before(m, responses.valid & ~responses.ready)
        payload = responses.payload.as_value()
        self.claim(m, ~waits | (responses.valid & (payload == before(m, payload))))

        # Tables are written only into the half not in use, and exchanged only by a COMMIT, when all
        # is quiet.
        half = before(m, unit.tables.half)
        exchanged = unit.tables.half != half
        self.claim(
            m, ~exchanged | (was_quiet & paused & (command.operation == ControlOperation.COMMIT))
        )
        self.claim(m, ~exchanged | ~unit.tables.valid)
        self.claim(m, ~unit.tables.valid | (command.operation == ControlOperation.WRITE))
        refused = responses.payload.verdict != Verdict.OK
        # A word that goes out belongs to the current command, which is then not refused.
        wrote = Signal()
        wrote_now = wrote | unit.tables.valid
        m.d.sync += wrote.eq(wrote_now & ~taken)
        self.claim(m, ~unit.tables.valid | asked)
        self.claim(m, ~(wrote_now & answers) | ~refused)
        emptied = unit.clear | unit.forget
        self.claim(m, ~emptied | (quiet & unit.pause))
        self.claim(m, ~unit.forget | (command.operation == ControlOperation.RESET))
        self.claim(m, ~unit.replay | (unit.pause & (command.operation == ControlOperation.COMMIT)))

        self.reach(m, unit.forget)
        self.reach(m, exchanged)
        self.reach(m, answers & (responses.payload.verdict == Verdict.BAD_JUMP))
        self.reach(m, wrote_now & answers)


def answers(*fault: tuple[str, str]) -> object:
    return lambda: ControlAnswers(*fault)


@pytest.mark.parametrize(
    "case",
    [
        proof("control", answers(), "search", 50),
        proof("control", answers(), "meet", 60),
        proof(
            "not-quiet", answers(("with m.If(self.quiet):", "with m.If(1):")), "search", 16, "FAIL"
        ),
        proof("no-wait", answers(("& ~self.responses.valid)", ")")), "search", 12, "FAIL"),
    ],
)
def test_control(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)
