"""Searches a bounded number of cycles in one piece: the circuit, cycle after cycle, as one question to a
SAT solver.

Known values, of tables and of everything before a free input arrives, are worked out on the
way, so a circuit with known tables can be followed for some hundred cycles, where a search cycle by
cycle with the whole circuit in it reaches a few dozen. The input is the and-inverter graph that yosys
writes (AIGER 1.9, in text).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

SCRIPT = """\
read_rtlil top.il
prep -flatten -top top
memory_map
opt -full
techmap
opt -full
dffunmap
simplemap
async2sync
chformal -lower
aigmap
opt_clean
write_aiger -ascii top.aag
"""


@dataclass(frozen=True, slots=True)
class Circuit:
    """A sequential and-inverter graph. A literal is twice a variable, plus 1 if inverted; 0 and 1
    are constants. `bads` must never be 1 as long as `constraints` have always been 1."""

    variables: int
    inputs: list[int]
    latches: list[tuple[int, int, int]]  # itself, next, first: 0, 1, or itself if it may be either
    bads: list[int]
    constraints: list[int]
    gates: list[tuple[int, int, int]]  # in order: each after those it reads

    @classmethod
    def read(cls, text: str) -> Circuit:
        """Reads the part of AIGER text that the bads and constraints depend on."""
        lines = iter(text.splitlines())
        header = [int(word) for word in next(lines).split()[1:]]
        variables, inputs, latches, outputs, gates, bads, constraints = (*header, 0, 0)[:7]

        def numbers() -> tuple[int, ...]:
            return tuple(int(word) for word in next(lines).split())

        inputs_ = [numbers()[0] for _ in range(inputs)]
        latches_ = [(*numbers(), 0)[:3] for _ in range(latches)]
        for _ in range(outputs):
            next(lines)
        bads_ = [numbers()[0] for _ in range(bads)]
        constraints_ = [numbers()[0] for _ in range(constraints)]
        gates_ = [numbers() for _ in range(gates)]

        same = {gate[0]: gate[1] for gate in gates_ if gate[2] == 1}
        constraints_ = [same.get(each & ~1, each & ~1) ^ (each & 1) for each in constraints_]
        reads = {gate[0] >> 1: gate[1:] for gate in gates_}
        reads.update((latch[0] >> 1, latch[1:2]) for latch in latches_)
        needed, left = set(), [literal >> 1 for literal in bads_ + constraints_]
        while left:
            variable = left.pop()
            if variable not in needed:
                needed.add(variable)
                left += [literal >> 1 for literal in reads.get(variable, ())]
        return cls(
            variables,
            [each for each in inputs_ if each >> 1 in needed],
            [each for each in latches_ if each[0] >> 1 in needed],
            bads_,
            constraints_,
            [each for each in gates_ if each[0] >> 1 in needed],
        )


class Unrolled:
    """The gates of all cycles, each made once, and none where the outcome is known."""

    def __init__(self, circuit: Circuit, anywhere: bool = False) -> None:
        """With `anywhere`, begins in any state."""
        self.circuit = circuit
        self.reads: list[tuple[int, int] | None] = [None]  # by variable
        self._made: dict[tuple[int, int], int] = {}
        self._alive = 1  # all constraints held so far
        # An input that a constraint fixes has its value: the reset, above all.
        self._fixed = {each & ~1: 1 - (each & 1) for each in circuit.constraints}
        # By literal of the circuit, its literal in this cycle.
        self._now = [0] * (2 * circuit.variables + 2)
        self._now[1] = 1
        self._state = [
            self._free() if anywhere or first > 1 else first for _, _, first in circuit.latches
        ]

    def _free(self) -> int:
        self.reads.append(None)
        return 2 * len(self.reads) - 2

    def both(self, a: int, b: int) -> int:
        if a > b:
            a, b = b, a
        if a < 2 or a == b:
            return b if a else 0
        if a ^ b == 1:
            return 0
        made = self._made.get((a, b))
        if made is None:
            self.reads.append((a, b))
            made = self._made[a, b] = 2 * len(self.reads) - 2
        return made

    def suppose(self, literal: int) -> None:
        """Assumes a literal from now on."""
        self._alive = self.both(self._alive, literal)

    def cycle(self) -> list[int]:
        """Adds one more cycle; returns its bads."""
        circuit, now, both = self.circuit, self._now, self.both
        for (itself, _, _), value in zip(circuit.latches, self._state, strict=True):
            now[itself], now[itself ^ 1] = value, value ^ 1
        for itself in circuit.inputs:
            value = self._fixed[itself] if itself in self._fixed else self._free()
            now[itself], now[itself ^ 1] = value, value ^ 1
        for itself, a, b in circuit.gates:
            value = both(now[a], now[b])
            now[itself], now[itself ^ 1] = value, value ^ 1
        for constraint in circuit.constraints:
            self._alive = both(self._alive, now[constraint])
        self._state = [now[after] for _, after, _ in circuit.latches]
        return [both(self._alive, now[bad]) for bad in circuit.bads]

    def question(self, asked: Iterable[Sequence[int]]) -> str:
        """Returns DIMACS text that asks, for each of these, whether one of its literals can be 1:
        see `tests.formal.answers`."""
        names: dict[int, int] = {}
        clauses: list[str] = []
        left: list[int] = []

        def name(literal: int) -> int:
            number = names.get(literal >> 1)
            if number is None:
                number = names[literal >> 1] = len(names) + 1
                left.append(literal >> 1)
            return -number if literal & 1 else number

        heads = []
        for any_of in asked:
            names[-1 - len(heads)] = head = len(names) + 1
            heads.append(f"c ask {head}")
            if 1 not in any_of:
                wanted = [str(name(literal)) for literal in any_of if literal]
                clauses.append(" ".join([str(-head), *wanted]))
            # An answer of no then holds for each literal, and helps when the next ones are looked
            # for.
            clauses += [f"{head} {-name(literal)}" for literal in any_of if literal > 1]
        while left:
            variable = left.pop()
            read = self.reads[variable]
            if read is not None:
                it, a, b = names[variable], name(read[0]), name(read[1])
                clauses += [f"-{it} {a}", f"-{it} {b}", f"{it} {-a} {-b}"]
        lines = [*heads, f"p cnf {len(names)} {len(clauses)}", *(f"{each} 0" for each in clauses)]
        return "\n".join(lines) + "\n"


def solve(question: str, directory: Path, until: bool, limit: int) -> list[bool] | None:
    """Returns whether each can be, up to the first answer that is `until`; None if that was not
    known in time."""
    file = directory / "question.cnf"
    file.write_text(question)
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "tests.formal.answers", file, "sat" if until else "unsat"],
            cwd=Path(__file__).parent.parent.parent,
            capture_output=True,
            text=True,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return None
    if ran.returncode:
        raise AssertionError(f"no answer: {ran.stdout}{ran.stderr}")
    return [answer == "sat" for answer in ran.stdout.split()]
