"""Answers a question of `tests.formal.unrolled`, in a process of its own, which can be stopped.

    python -m tests.formal.answers question.cnf sat|unsat

The question is DIMACS text with a comment `c ask N` for each variable that is asked about. Prints a line for
each, in this order: `sat` if it can be 1, otherwise `unsat`; stops after the first answer of the kind named.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pysat.solvers import Solver

SOLVER = "cadical195"


def main(file: str, until: str) -> None:
    asked: list[int] = []
    with Solver(SOLVER) as solver:
        for line in Path(file).read_text().splitlines():
            words = line.split()
            if words[:2] == ["c", "ask"]:
                asked.append(int(words[2]))
            elif words[0] not in ("c", "p"):
                solver.add_clause([int(word) for word in words[:-1]])
        for variable in asked:
            answer = "sat" if solver.solve(assumptions=[variable]) else "unsat"
            print(answer, flush=True)
            if answer == until:
                return
            if answer == "unsat":
                solver.add_clause([-variable])


if __name__ == "__main__":
    main(*sys.argv[1:])
