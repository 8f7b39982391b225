"""Watches a processor instruction by instruction, against an interpretation of the instruction set.

`pair` computes what a program does with one probe and one window tuple, from `seustream.hdl.isa` alone.
The probes in flight are those it joins, the stored tuples those of the instruction-level model. So for
every raw tuple it is known what the processor may execute and what it must.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from seustream.compiler.wjasip.image import decode
from seustream.cosim.iss import IssDevice
from seustream.hdl import isa
from seustream.hdl.config import DeviceConfig
from seustream.hdl.device import Batch, Results, Selection, Status, Tables
from seustream.hdl.isa import Condition
from tests.cosim.devices import verilated
from tests.cosim.oracle import HOLDS

Attributes = Sequence[int]


def holds(condition: int, a: int, b: int) -> bool:
    return HOLDS[Condition(condition).symbol](a, b)


def pair(
    program: Sequence[isa.Instruction],
    tag: int,
    parts: dict[int, Attributes],
    probe_bits: int,
    window: Attributes,
    window_bits: int,
) -> tuple[list[int], list[int]]:
    """Returns the addresses executed and the tags joined for one probe and one window tuple."""
    registers = [False] * isa.REGISTERS
    registers[isa.TRUE_REGISTER] = True
    for register in isa.WINDOW_SELECTION_REGISTERS:
        registers[register] = bool(window_bits >> register - 32 & 1)
    for register in isa.PROBE_SELECTION_REGISTERS:
        registers[register] = bool(probe_bits >> register - 48 & 1)
    executed, joined = [], []
    address, last = 0, len(program) - 1
    while address <= last:
        executed.append(address)
        instruction = program[address]
        address += 1
        match instruction:
            case isa.AndRegisters(a, b, r):
                registers[r] = registers[a] and registers[b]
            case isa.OrRegisters(a, b, r):
                registers[r] = registers[a] or registers[b]
            case isa.Cmp(w, stream, p, condition, r):
                if stream in parts:
                    registers[r] = holds(condition, parts[stream][p], window[w])
                else:
                    registers[r] = condition == Condition.TRUE
            case isa.Jmpct(other, target) if tag != other:
                address = target
            case isa.Jmp(target):
                address = target
            case isa.Jmpli() if not any(registers[r] for r in isa.FACTOR_REGISTERS):
                address = last
            case isa.Emit(r, post) if registers[r]:
                joined.append(post)
    return executed, joined


def selected(selections: Sequence[Selection], attributes: Attributes) -> int:
    bits = 0
    for number, selection in enumerate(selections):
        outcomes = [
            holds(c.condition, attributes[c.attribute], c.constant) for c in selection.comparisons
        ]
        bits |= (all(outcomes) if selection.every else any(outcomes)) << number
    return bits


class Pair(NamedTuple):
    """A probe, given by its tag and the sequence numbers of its parts, and a window tuple."""

    area: int
    tag: int
    probe: tuple[tuple[int, int], ...]
    window: int


@dataclass
class Seen:
    """Counts what a test found in all traces, to show that the test is not vacuous."""

    pairs: int = 0
    joins: int = 0
    instructions: int = 0
    left: int = 0
    tags: set[int] = field(default_factory=set)


class Watched:
    """A device that checks what its processor executes, one raw tuple after the other."""

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.rtl, self.iss = verilated(config, trace=True), IssDevice(config)
        self.seen = Seen()
        self.slots: list[dict[int, int]] = []  # per stream: slot -> sequence number stored there
        self.stored: list[int] = []

    def load(self, image: bytes) -> None:
        self.tables: Tables = decode(image, self.config)
        self.iss.load(image)
        self.rtl.load(image)
        self.programs = [[isa.decode(word) for word in area.program] for area in self.tables.areas]
        self.slots = [{} for _ in self.programs]
        self.stored = [0] * len(self.programs)
        self.before: list[list[int]] = [[] for _ in self.programs]  # what each window had
        self.attributes: list[dict[int, Attributes]] = [{} for _ in self.programs]

    def push(self, batch: Batch) -> Results:
        parts = []
        for row in range(len(batch)):
            one = batch.slice(row, row + 1)
            self.iss.push(one)
            parts.append(self.rtl.push(one))
            admit = bool(one.admit[0])
            self._check(int(one.stream[0]), int(one.sequence[0]), admit, one.attributes[0].tolist())
        return Results.concatenate(parts)

    def flush(self) -> Results:
        return self.rtl.flush()

    def status(self) -> Status:
        return self.rtl.status()

    def reset(self) -> None:
        assert not any(self.stored), "not known in which slot the next tuple goes"
        self.rtl.reset()
        self.iss.reset()

    def _check(self, stream: int, sequence: int, admit: bool, attributes: Attributes) -> None:
        columns = self.rtl.executed()
        windows = [window.sequence[window.stored].tolist() for window in self.iss._windows]
        self.attributes[stream][sequence] = attributes
        if sequence in windows[stream] and sequence not in self.slots[stream].values():
            slot = self.stored[stream] % self.config.depth
            self.slots[stream][slot] = sequence
            self.stored[stream] += 1
        bits = selected(self.tables.selections[stream], attributes)
        admit = admit and any(not mask & ~bits for mask in self.tables.admission[stream])
        _, must = self._expected(stream, sequence, windows) if admit else ({}, set())
        # Some of the tuples that died with this arrival may still be met.
        met = [
            list(dict.fromkeys([*old, *new])) for old, new in zip(self.before, windows, strict=True)
        ]
        expected, _ = self._expected(stream, sequence, met) if admit else ({}, set())
        self.before = windows
        shown = self._shown(columns, stream, sequence)
        complete = {key for key, addresses in shown if addresses == expected.get(key)}
        for key, addresses in shown:
            assert key in expected, f"{key} is no pair of a probe in flight"
            whole = expected[key]
            if addresses != whole:  # a probe that was left, and has to be taken up again
                assert addresses == whole[: len(addresses)], (key, addresses, whole)
                assert key in complete, f"{key} was left and not taken up again"
                self.seen.left += 1
        assert must <= complete, f"not executed: {must - complete}"
        self.seen.pairs += len(complete)
        self.seen.joins += len(must)
        self.seen.instructions += len(columns["word"])
        self.seen.tags |= {key.tag for key in complete}

    def _expected(
        self, stream: int, sequence: int, windows: list[list[int]]
    ) -> tuple[dict[Pair, list[int]], set[Pair]]:
        """Returns the addresses executed for every pair of a probe in flight and a stored tuple,
        and the pairs that join something."""
        expected: dict[Pair, list[int]] = {}
        must: set[Pair] = set()
        in_flight = [(stream, ((stream, sequence),))]
        done = set()
        while in_flight:
            probe = in_flight.pop()
            if probe in done:
                continue
            done.add(probe)
            tag, parts = probe
            raw = len(parts) == 1
            known = {s: self.attributes[s][number] for s, number in parts}
            bits = selected(self.tables.selections[stream], known[stream]) if raw else 0
            for area in sorted(self.tables.routes[tag].probes):
                for stored in windows[area]:
                    window = self.attributes[area][stored]
                    window_bits = selected(self.tables.selections[area], window)
                    addresses, joined = pair(
                        self.programs[area], tag, known, bits, window, window_bits
                    )
                    key = Pair(area, tag, parts, stored)
                    expected[key] = addresses[self._compares(area) :]
                    if joined:
                        must.add(key)
                    in_flight += [
                        (post, tuple(sorted((*parts, (area, stored))))) for post in joined
                    ]
        return expected, must

    def _compares(self, area: int) -> int:
        """Returns the number of leading CMPs, which the factor array has already done."""
        if not self.config.lanes:
            return 0
        code = self.programs[area]
        return next(n for n, one in enumerate(code) if not isinstance(one, isa.Cmp))

    def _shown(
        self, columns: dict[str, np.ndarray], stream: int, sequence: int
    ) -> list[tuple[Pair, list[int]]]:
        """Returns the runs of instructions in the trace, area by area."""
        runs: list[tuple[Pair, list[int]]] = []
        names = ["area", "tag", "carries", "slot", "address", "word"]
        names += [f"probe.{s}" for s in range(self.config.streams)]
        for row in zip(*(columns[name].tolist() for name in names), strict=True):
            area, tag, carries, slot, address, word, *slots = row
            assert word == self.programs[area][address].encode()
            parts = tuple(
                (s, sequence if s == stream else self.slots[s][slots[s]])
                for s in range(self.config.streams)
                if carries >> s & 1
            )
            key = Pair(area, tag, parts, self.slots[area][slot])
            if runs and runs[-1][0] == key and runs[-1][1][-1] < address:
                runs[-1][1].append(address)
            else:
                runs.append((key, [address]))
        return runs
