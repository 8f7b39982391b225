"""Random typed expressions as text, over every entry of the registry, and random rows for them.

    rng = random.Random(7)
    text = Writer(rng).value(depth=4)          # any type
    rows = table(rng, 20)                      # COLUMNS with NULLs and extremes

A text is typed while it is written, so nearly all texts bind; the caller skips those that an
entry's own check of constants refuses.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from seustream.compiler.language import types as t
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.functions import FUNCTIONS
from seustream.compiler.language.registry import ArgumentKind, ScalarFunction, Signature, choose
from seustream.compiler.language.types import Kind, Type
from tests.engine.stream.values import TYPES, column, value

COLUMNS: dict[str, Type] = {
    f"{of.kind.name.lower()}_{number}": of
    for number, of in enumerate(of for of in TYPES for _ in range(1 + (of in (t.INT, t.DOUBLE))))
}
"""A column of each type, and two each of the commonest."""

INFIX = {"+", "-", "*", "/", "DIV", "||", "&", "|"}
COMPARISONS = ("=", "==", "<>", "!=", "<", "<=", ">", ">=")

Row = dict[str, Any]


def table(rng: random.Random, count: int) -> list[Row]:
    """Returns rows of all columns."""
    cells = {
        name: column(rng, of, count, rng.choice((0, 0.1, 0.3))) for name, of in COLUMNS.items()
    }
    return [{name: values[row] for name, values in cells.items()} for row in range(count)]


def literal(content: object, of: Type) -> str:
    """Returns a constant of a type, as text."""
    if content is None:
        return f"CAST(NULL AS {of})"
    match content:
        case bool():
            return str(content).upper()
        case str():
            quoted = "'" + content.replace("'", "''") + "'"
            return f"CAST({quoted} AS {of})" if of.length is not None else quoted
        case datetime.timedelta():
            return f"INTERVAL '{content // datetime.timedelta(milliseconds=1)} ms'"
        case datetime.datetime():
            return f"TIMESTAMP '{content.isoformat(' ')}'"
        case datetime.date():
            return f"DATE '{content.isoformat()}'"
        case datetime.time():
            return f"TIME '{content.isoformat()}'"
        case Decimal():
            return f"CAST('{content:f}' AS {of})"
        case int() if of == t.INT and content > -(1 << 31):
            return str(content) if content >= 0 else f"(-{-content})"
    return f"CAST('{content}' AS {of})"


# --- which entries give which types -------------------------------------------

Maker = tuple[str, tuple[Type, ...]]
"""A function and the types of its arguments."""


def _signatures(
    entry: ScalarFunction,
) -> list[tuple[tuple[ArgumentKind, ...], ScalarFunction | Signature]]:
    lists: list[tuple[tuple[ArgumentKind, ...], ScalarFunction | Signature]] = []
    for count in range(len(entry.parameters) - entry.optional, len(entry.parameters) + 1):
        lists.append((entry.parameters[:count], entry))
    if entry.variadic:  # one value makes a trivial case
        lists = [((*entry.parameters, *[entry.parameters[-1]] * more), entry) for more in (1, 2)]
    return lists + [(overload.parameters, overload) for overload in entry.overloads]


@functools.cache
def makers() -> dict[Type, dict[str, list[Maker]]]:
    """Returns the functions with the types of their arguments, by the type they give and their
    name."""
    rng = random.Random("makers")
    found: dict[Type, dict[str, list[Maker]]] = {}
    for entry in FUNCTIONS.values():
        for parameters, _ in _signatures(entry):
            fitting = [[of for of in TYPES if p.accepts(of)] for p in parameters]
            every = list(itertools.islice(itertools.product(*fitting), 20_000))
            for types in rng.sample(every, min(len(every), 60)):
                of = _result(entry, types)
                if of is not None:
                    found.setdefault(of, {}).setdefault(entry.name, []).append((entry.name, types))
    return found


def _result(entry: ScalarFunction, types: Sequence[Type]) -> Type | None:
    """Returns the type a function gives for arguments of these types, by the first signature that
    fits."""
    for parameters, own in _signatures(entry):
        if len(parameters) == len(types):
            chosen = choose(parameters, own.result, types)
            if chosen is not None:
                return chosen.type
    return None


_FIELDS = ("year", "month", "hour", "second", "dow", "isodow", "doy", "week", "epoch", "day")
_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond")
_REGEX = ("l+", "^a", "b$", "[a-z]+", "(a)(b)?", "[0-9]", "a|b", "", "x,y")
_FORMATS = ("yyyy-MM-dd", "yyyy-MM-dd HH:mm:ss", "dd/MM/yyyy", "yyyyMMdd")
_CHOSEN = {
    ("extract", 0): _FIELDS, ("date_trunc", 0): _UNITS, ("regexp_matches", 1): _REGEX,
    ("regexp_extract", 1): _REGEX, ("to_timestamp", 1): _FORMATS,
}  # fmt: skip
"""Constants that most functions accept; now and then any other text is used instead."""
_SMALL = {
    ("repeat", 1), ("lpad", 1), ("rpad", 1), ("left", 1), ("right", 1), ("substr", 1),
    ("substr", 2), ("split_part", 2), ("round", 1), ("width_bucket", 3), ("regexp_extract", 2),
}  # fmt: skip
"""Arguments that count letters, digits or parts."""


class Writer:
    """Writes expressions. `names` are the functions that may occur in them."""

    def __init__(self, rng: random.Random, names: frozenset[str] | None = None) -> None:
        self.rng = rng
        self.names = frozenset(FUNCTIONS) if names is None else names

    def value(self, depth: int) -> str:
        """Returns an expression of any type."""
        if self.rng.random() < 0.4:
            of = self.rng.choice(TYPES)
        else:  # each name is equally likely
            name = self.rng.choice(sorted(self.names))
            some = [of for of, by_name in makers().items() if name in by_name]
            if some:
                return self._call(self.rng.choice(makers()[self.rng.choice(some)][name]), depth)
            of = t.BOOLEAN
        return self.typed(of, depth)

    def typed(self, of: Type, depth: int) -> str:
        """Returns an expression of one type."""
        rng = self.rng
        if depth <= 0 or rng.random() < 0.12:
            return self._leaf(of)
        ways = [self._made, self._made, self._made, self._chosen, self._cast]
        if of == t.BOOLEAN:
            ways += [self._condition] * 6
        return rng.choice(ways)(of, depth)

    def aggregate(self, depth: int) -> str:
        """Returns an aggregate, or an expression of two."""
        rng = self.rng
        name = rng.choice(sorted(AGGREGATES))
        entry = AGGREGATES[name]
        if name == "count" and rng.random() < 0.3:
            text = "count(*)"
        else:
            count = max(len(entry.parameters) - rng.randint(0, entry.optional), 1)
            parameters = entry.parameters[:count]
            arguments: list[str] = []
            for place, parameter in enumerate(parameters):
                if (name, place) == ("string_agg", 1):
                    arguments.append(literal(rng.choice((",", "", " - ")), t.VARCHAR))
                    continue
                of = rng.choice([of for of in TYPES if parameter.accepts(of)])
                arguments.append(self.typed(of, depth - 1))
            distinct = "DISTINCT " * (count == 1 and rng.random() < 0.2)
            text = f"{name}({distinct}{', '.join(arguments)})"
        if rng.random() < 0.3:
            text += f" FILTER (WHERE {self.typed(t.BOOLEAN, depth - 1)})"
        return text

    # --- parts ----------------------------------------------------------------

    def _leaf(self, of: Type) -> str:
        names = [name for name, other in COLUMNS.items() if other == of]
        if names and self.rng.random() < 0.8:
            return self.rng.choice(names)
        if not names and self.rng.random() < 0.5:
            other = self.rng.choice([o for o in COLUMNS.values() if t.castable(o, of)])
            return f"TRY_CAST({self._leaf(other)} AS {of})"
        known = None if self.rng.random() < 0.1 else value(self.rng, of)
        return literal(known, of)

    def _made(self, of: Type, depth: int) -> str:
        """Returns a function call."""
        by_name = {n: m for n, m in makers().get(of, {}).items() if n in self.names}
        if not by_name:
            return self._chosen(of, depth)
        return self._call(self.rng.choice(by_name[self.rng.choice(sorted(by_name))]), depth)

    def _call(self, maker: Maker, depth: int) -> str:
        name, types = maker
        arguments = [self._argument(name, place, of, depth) for place, of in enumerate(types)]
        return self._spelled(name, arguments)

    def _argument(self, name: str, place: int, of: Type, depth: int) -> str:
        rng = self.rng
        some = _CHOSEN.get((name, place))
        if some is not None and rng.random() < 0.95:
            return literal(rng.choice(some), t.VARCHAR)
        if (name, place) in _SMALL and rng.random() < 0.9:
            return literal(rng.choice((0, 1, 2, 3, 5, 8, -1, -2, None)), t.INT)
        text = self.typed(of, depth - 1)
        # Nested texts of many million letters would fill the memory of the machine.
        return f"least({text}, 40)" if name in ("repeat", "lpad", "rpad") and place == 1 else text

    def _spelled(self, name: str, arguments: Sequence[str]) -> str:
        rng = self.rng
        if name in INFIX:
            spelled = name.lower() if rng.random() < 0.1 else name
            return f"({arguments[0]} {spelled} {arguments[1]})"
        if name == "negate":
            return f"(- {arguments[0]})"
        if name == "xor":
            return f"({arguments[0]} XOR {arguments[1]})"
        if name == "is_distinct":
            return f"({arguments[0]} IS {rng.choice(('', 'NOT '))}DISTINCT FROM {arguments[1]})"
        if name in ("like", "ilike"):
            escape = f" ESCAPE {literal(rng.choice('!~a'), t.VARCHAR)}" if arguments[2:] else ""
            pattern = arguments[1]
            if rng.random() < 0.6:
                pattern = literal(
                    rng.choice(("%", "_%", "a%", "%b%", "%!%%", "abc", "")), t.VARCHAR
                )
            return f"({arguments[0]} {rng.choice(('', 'NOT '))}{name.upper()} {pattern}{escape})"
        if name == "glob":
            pattern = literal(
                rng.choice(("*", "?*", "a*", "[!a-m]*", "*[b]*", "abc", "")), t.VARCHAR
            )
            return f"({arguments[0]} {rng.choice(('', 'NOT '))}GLOB {pattern})"
        if name == "extract" and arguments[0].startswith("'") and arguments[0][1:-1].isalpha():
            return f"extract({arguments[0][1:-1]} FROM {arguments[1]})"
        return f"{name}({', '.join(arguments)})"

    def _chosen(self, of: Type, depth: int) -> str:
        """Returns a CASE or a similar function."""
        rng = self.rng
        inner = functools.partial(self.typed, of, depth - 1)
        condition = functools.partial(self.typed, t.BOOLEAN, depth - 1)
        match rng.randrange(5):
            case 0:
                whens = "".join(
                    f" WHEN {condition()} THEN {inner()}" for _ in range(rng.randint(1, 2))
                )
                otherwise = f" ELSE {inner()}" if rng.random() < 0.8 else ""
                return f"CASE{whens}{otherwise} END"
            case 1:
                over = rng.choice(TYPES)
                of_it = functools.partial(self.typed, over, depth - 1)
                return f"CASE {of_it()} WHEN {of_it()} THEN {inner()} ELSE {inner()} END"
            case 2:
                return f"if({condition()}, {inner()}, {inner()})"
            case 3:
                return f"{rng.choice(('coalesce', 'greatest', 'least'))}({inner()}, {inner()})"
        return f"nullif({inner()}, {inner()})"

    def _cast(self, of: Type, depth: int) -> str:
        rng = self.rng
        other = rng.choice([other for other in TYPES if t.castable(other, of)])
        inner = self.typed(other, depth - 1)
        match rng.randrange(3):
            case 0:
                return f"CAST({inner} AS {of})"
            case 1:
                return f"TRY_CAST({inner} AS {of})"
        return f"({inner})::{of}"

    def _condition(self, of: Type, depth: int) -> str:
        rng = self.rng
        match rng.randrange(8):
            case 0:
                return f"({self.typed(of, depth - 1)} AND {self.typed(of, depth - 1)})"
            case 1:
                return f"({self.typed(of, depth - 1)} OR {self.typed(of, depth - 1)})"
            case 2:
                return f"(NOT {self.typed(of, depth - 1)})"
        over, other = self._that_meet()
        left, right = self.typed(over, depth - 1), self.typed(other, depth - 1)
        match rng.randrange(6):
            case 0:
                return f"({left} IS {rng.choice(('', 'NOT '))}NULL)"
            case 1:
                third = self.typed(over, depth - 1)
                return f"({left} {rng.choice(('', 'NOT '))}BETWEEN {right} AND {third})"
            case 2:
                third = self.typed(over, depth - 1)
                return f"({left} {rng.choice(('', 'NOT '))}IN ({right}, {third}))"
        return f"({left} {rng.choice(COMPARISONS)} {right})"

    def _that_meet(self) -> tuple[Type, Type]:
        rng = self.rng
        over = rng.choice(TYPES)
        if rng.random() < 0.6:
            return over, over
        others = [o for o in TYPES if t.common(over, o) not in (None, t.BIGINT) or o.is_integer]
        others = [o for o in others if t.common(over, o) is not None]
        return over, rng.choice(others)


__all__ = ["COLUMNS", "Kind", "Writer", "literal", "table"]
