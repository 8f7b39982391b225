"""Random pattern queries, as text, and random streams with ties, NULL and missing attributes."""

from __future__ import annotations

import random

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.bind import ParameterValue
from seustream.compiler.language.types import DOUBLE, INT, VARCHAR
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.statements import compile_pattern
from seustream.engine.pattern.event import Event

STREAM = Stream(
    "s",
    (Column("type", VARCHAR), Column("x", INT), Column("y", DOUBLE), Column("k", VARCHAR)),
)
TYPES = "ABCD"


def query_of(
    text: str, bounded: bool = False, stream: Stream = STREAM, **parameters: ParameterValue
) -> ir.PatternQuery:
    return compile_pattern(text, stream, parameters=parameters, bounded=bounded)


class Generator:
    """Makes random queries and streams from one source of randomness."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def events(self, most: int = 14, keys: bool = False) -> list[Event]:
        chance = self.chance
        ts, found = 0, []
        for seq in range(chance.randint(0, most)):
            ts += chance.choice((0, 0, 1, 1, 2, 3))
            attrs: dict[str, object] = {"x": chance.randint(0, 4)}
            if chance.random() < 0.9:
                attrs["y"] = chance.choice((None, 0.5, 1.0, 1.5, 2.0, 3.0))
            if keys:
                attrs["k"] = chance.choice((None, "p", "q"))
            kind = chance.choice((*TYPES[: chance.choice((2, 3, 4))], "A", None))
            attrs["type"] = kind
            found.append(Event(ts, seq, kind, attrs))
        return found

    def query(
        self, strategy: str | None = None, kleene: bool = True, keys: bool = False
    ) -> ir.PatternQuery:
        """Returns a query that the binder accepts."""
        chance = self.chance
        while True:
            how = strategy or chance.choice(("", "ANY SUBSETS", "NEXT", "STRICT", "ANY GROUP"))
            elements = self._elements(kleene)
            sequence = "; ".join(f"{what} {name}" for what, name, _ in elements)
            where = self._where(elements)
            within = chance.choice((1, 2, 3, 4, 5, 6, 8, 12))
            text = f"PATTERN {sequence}"
            if keys:
                text += " PARTITION BY k"
            if where:
                text += f" WHERE {where}"
            if chance.random() < 0.95:
                text += f" WITHIN {within} ms"
            if how:
                text += f" USING {how}"
            text += " RETURN *"
            try:
                return query_of(text, bounded=True)
            except Exception as error:
                if not _expected(error):
                    raise AssertionError(text) from error

    def _elements(self, kleene: bool) -> list[tuple[str, str, str]]:
        chance = self.chance
        found = []
        for number in range(chance.choice((1, 2, 2, 3, 3, 3, 4))):
            kind = chance.choice((*TYPES[: chance.choice((2, 3, 4))], "ANY"))
            if chance.random() < 0.15:
                kind = f"({' | '.join(chance.sample(TYPES, chance.choice((2, 3))))})"
            role = chance.choices(("single", "group", "none"), (6, 3 if kleene else 0, 2))[0]
            name = f"v{number}"
            if role == "none":
                found.append((f"!{kind}", name, role))
            elif role == "group":
                form = chance.choice(("+", "+", "{2}", "{1,2}", "^2", "{2,3}"))
                found.append((f"{kind}{form}", name, role))
            else:
                found.append((kind, name, role))
        return found

    def _where(self, elements: list[tuple[str, str, str]]) -> str:
        chance = self.chance
        parts = []
        for _ in range(chance.choice((0, 1, 1, 2, 3))):
            parts.append(self._condition(elements))
        return " AND ".join(parts)

    def _condition(self, elements: list[tuple[str, str, str]]) -> str:
        chance = self.chance
        compare = chance.choice(("<", "<=", ">", ">=", "=", "<>"))
        a = chance.choice(elements)
        if chance.random() < 0.3:
            constant = chance.choice(("1", "2", "1.5", "150%"))
            return chance.choice(
                (
                    f"{a[1]}.{chance.choice('xy')} {compare} {constant}",
                    f"({a[1]}.x < 2 OR {a[1]}.y IS NULL)",
                    f"NOT {a[1]}.y > 1",
                    f"{a[1]}.x IN (0, 1, 3)",
                )
            )
        groups = [e for e in elements if e[2] == "group"]
        if groups and chance.random() < 0.4:
            g = chance.choice(groups)[1]
            other = chance.choice(elements)
            return chance.choice(
                (
                    f"{g}[i].x >= {g}[i-1].x",
                    f"{g}[i].y <> avg({g}[..i-1].y)",
                    f"count({g}) {compare} 2",
                    f"last({g}).x {compare} 2",
                    f"{g}[1].x {compare} 2",
                    f"{g}[1].x {compare} {self._term(other)}",
                    f"sum({g}.x) {compare} {self._term(other)}",
                    f"{g}[i-1].x {compare} {self._term(other)}",
                    f"last({g}).y {compare} {self._term(other)}",
                )
            )
        b = chance.choice(elements)
        if chance.random() < 0.2:
            one, other = self._term(a), self._term(b)
            return chance.choice(
                (
                    f"{one} - {other} {compare} 1",
                    f"abs({one} - {other}) <= 1",
                    f"{one} IS NOT DISTINCT FROM {other}",
                    f"{b[1]}.ts - {a[1]}.ts {compare} 20",
                )
            )
        return (
            f"{self._term(a)} {compare} {self._term(b)}{chance.choice(('', '', ' + 1', ' * 120%'))}"
        )

    def _term(self, element: tuple[str, str, str]) -> str:
        return f"{element[1]}.{self.chance.choice('xxyy')}"


def _expected(error: Exception) -> bool:
    """Returns whether the error only says that such a query is not allowed: two adjacent negated
    variables, no positive one, and the like."""
    problems = getattr(error, "problems", ())
    return bool(problems) and all(
        p.kind in ("P007", "P012", "P013", "P014", "P016") for p in problems
    )
