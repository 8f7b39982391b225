"""Random conditions over two streams R and S, and random rows of them."""

from __future__ import annotations

import math
import random

import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.pipeline import compile_text
from tests.engine.host.reference import ARROW, value

COLUMNS = {"i": "int", "b": "bigint", "x": "double precision", "y": "double precision", "r": "real"}
COLUMNS |= {"t": "varchar(8)", "z": "timestamp", "f": "boolean"}
CREATE = "".join(
    f"CREATE STREAM {name} ({', '.join(f'{one} {kind}' for one, kind in COLUMNS.items())});"
    for name in "RS"
)


def bound(text: str) -> x.Expression:
    compiled = compile_text(f"{CREATE}SELECT {text} AS c FROM R, S WINDOW NOW;", stop_after="tree")
    return compiled.program.queries[0].items[0].expression


def made_rows(chance: random.Random, count: int, odd: float) -> dict[str, pa.Array]:
    """Makes rows; `odd` is the share of NULLs, and of values at the edge of their type."""
    columns = {}
    for name, kind in COLUMNS.items():
        values: list[object] = []
        for _ in range(count):
            found = value(chance, kind)
            if kind in ("int", "bigint") and chance.random() > odd:
                found = chance.choice((chance.randint(-9, 9), chance.randint(-(2**30), 2**30)))
            elif kind in ("double precision", "real"):
                found = chance.randint(-40, 40) / 8
                if chance.random() < odd:
                    found = chance.choice((math.inf, -math.inf, 0.0, -0.0, 1e300))
            values.append(None if chance.random() < odd else found)
        columns[name] = pa.array(values, ARROW[kind])
    return columns


WHOLE = (
    *("({} + {})", "({} - {})", "({} * {})", "({} DIV {})", "mod({}, {})", "abs({})", "-({})"),
    *("least({}, {})", "greatest({}, {})", "({} & {})", "({} | {})"),
    *("coalesce({}, {})", "(CASE WHEN R.i < S.i THEN {} ELSE {} END)"),
    "(CASE WHEN R.f THEN {0} WHEN {1} > S.b THEN {0} WHEN S.f THEN {1} END)",
)
REAL = (
    *("({} + {})", "({} - {})", "({} * {})", "({} / {})", "abs({})", "-({})", "sqrt(abs({}))"),
    *("least({}, {})", "greatest({}, {})", "({} + R.i)", "(S.b - {})"),
    *("coalesce(S.y, {})", "(CASE WHEN R.x > S.x THEN R.y ELSE {} END)"),
)
OTHER = (
    *("R.t = S.t", "R.t <> 'a'", "R.z {} S.z", "S.f", "R.f", "S.t LIKE 'a%'", "(R.f XOR S.f)"),
    *("greatest(R.z, S.z) {} S.z", "(R.i + S.i) IS NULL"),
    *("CASE WHEN R.i {} S.i THEN R.f ELSE S.f END", "coalesce(R.i {} S.i, R.f, S.f)"),
)


class Some:
    """Random conditions."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def whole(self, depth: int) -> str:
        if depth == 0:
            return self.chance.choice(("R.i", "S.i", "R.b", "S.b", "3", "-70", "5000000000"))
        of = self.chance.choice(WHOLE)
        return of.format(*(self.whole(self.chance.randrange(depth)) for _ in range(2)))

    def real(self, depth: int) -> str:
        if depth == 0:
            return self.chance.choice(("R.x", "S.x", "R.y", "S.y", "R.r", "S.r", "0.125", "2.5e0"))
        of = self.chance.choice(REAL)
        return of.format(*(self.real(self.chance.randrange(depth)) for _ in range(2)))

    def condition(self, depth: int) -> str:
        op = self.chance.choice(("<", "=", ">", ">=", "<=", "<>"))
        match self.chance.randrange(8 if depth else 4):
            case 0:
                return f"({self.whole(2)} {op} {self.whole(2)})"
            case 1:
                return f"({self.real(2)} {op} {self.real(2)})"
            case 2:
                return f"({self.whole(1)} {op} {self.real(1)})"
            case 3:
                return self.chance.choice(OTHER).format(op)
            case 4:
                return f"NOT ({self.condition(depth - 1)})"
            case 5:
                return f"({self.condition(depth - 1)}) IS NOT NULL"
            case way:
                with_ = " AND " if way == 6 else " OR "
                return f"({with_.join(self.condition(depth - 1) for _ in range(3))})"
