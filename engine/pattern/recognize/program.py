"""Compiles a row pattern to the program that the search runs.

before  A+? (B | C)
after   0 row A   1 try 2, then 0   2 try 3, then 5   3 row B   4 to 6   5 row C   6 match
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

import numpy as np

from seustream.compiler.pattern import rows
from seustream.compiler.pattern.rows import RowPattern
from seustream.engine.pattern.columns import Ints


class Code(enum.IntEnum):
    """The kinds of steps; `native.pyi` describes their numbers."""

    ROW = 0
    SPLIT = 1
    JUMP = 2
    MARK = 3
    CHECK = 4
    FIRST = 5
    LAST = 6
    ACCEPT = 7


@dataclass
class RowProgram:
    """The steps of a pattern, and the number of marks they set."""

    pattern: RowPattern
    steps: list[tuple[int, int, int]] = field(default_factory=list)
    marks: int = 0

    def __post_init__(self) -> None:
        self._add(self.pattern)
        self._step(Code.ACCEPT)

    @property
    def numbers(self) -> Ints:
        return np.array(self.steps, np.int64).reshape(-1)

    def _step(self, code: Code, a: int = 0, b: int = 0) -> int:
        self.steps.append((code, a, b))
        return len(self.steps) - 1

    def _add(self, pattern: RowPattern) -> None:
        match pattern:
            case rows.One():
                self._step(Code.ROW, pattern.variable, int(pattern.excluded))
            case rows.RowSequence():
                for part in pattern.parts:
                    self._add(part)
            case rows.RowChoice():
                self._choice(pattern.parts)
            case rows.Repeat():
                self._repeat(pattern)
            case rows.Anchor():
                self._step(Code.FIRST if pattern is rows.Anchor.FIRST else Code.LAST)

    def _choice(self, parts: tuple[RowPattern, ...]) -> None:
        ends = []
        for part in parts[:-1]:
            split = self._step(Code.SPLIT)
            self._add(part)
            ends.append(self._step(Code.JUMP))
            self.steps[split] = (Code.SPLIT, split + 1, len(self.steps))
        self._add(parts[-1])
        for end in ends:
            self.steps[end] = (Code.JUMP, len(self.steps), 0)

    def _repeat(self, pattern: rows.Repeat) -> None:
        begin = 0
        for _ in range(pattern.least):
            begin = len(self.steps)
            self._add(pattern.part)
        if pattern.most is None and pattern.least and not rows.nullable(pattern.part):
            ways = (begin, len(self.steps) + 1)
            self._step(Code.SPLIT, *(reversed(ways) if pattern.reluctant else ways))
        elif pattern.most is None:
            split = self._iteration(pattern)
            self._step(Code.JUMP, split)
            self._leave([split], pattern)
        else:
            more = pattern.most - pattern.least
            self._leave([self._iteration(pattern) for _ in range(more)], pattern)

    def _iteration(self, pattern: rows.Repeat) -> int:
        """Adds one more iteration, which must consume rows; returns the step that decides whether
        to enter."""
        split = self._step(Code.SPLIT)
        if not rows.nullable(pattern.part):
            self._add(pattern.part)
            return split
        mark, self.marks = self.marks, self.marks + 1
        self._step(Code.MARK, mark)
        self._add(pattern.part)
        self._step(Code.CHECK, mark)
        return split

    def _leave(self, splits: list[int], pattern: rows.Repeat) -> None:
        """Points the exits of these splits to the next step."""
        for split in splits:
            ways = (split + 1, len(self.steps))
            self.steps[split] = (Code.SPLIT, *(reversed(ways) if pattern.reluctant else ways))
