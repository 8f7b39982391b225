"""Random typed expressions over every entry of the registry."""

from __future__ import annotations

import random

from seustream.compiler.language import expressions as x
from seustream.compiler.language import types as t
from seustream.compiler.language.functions import FUNCTIONS
from seustream.compiler.language.registry import ArgumentKind, ScalarFunction, choose
from seustream.compiler.language.types import Type
from seustream.hdl.isa import Condition
from tests.engine.stream.values import TYPES, value

COLUMNS = tuple(
    x.ColumnReference(0, f"{name}{number}", of, True, "R")
    for number, of in enumerate(TYPES)
    for name in "pq"
)
"""Two columns of each type."""

ENTRIES = tuple(FUNCTIONS.values())


class Trees:
    """Makes expressions. `used` are the registry entries that occurred."""

    def __init__(self, seed: object) -> None:
        self.rng = random.Random(str(seed))
        self.used: set[str] = set()

    def any(self, depth: int) -> x.Expression:
        """Returns an expression of any type, at most this many operations deep."""
        if depth == 0 or self.rng.random() < 0.1:
            return self.leaf(self.rng.choice(TYPES))
        match self.rng.randrange(12):
            case 0:
                return self.condition(depth)
            case 1:
                return self.case(depth)
            case 2:
                return self.cast(depth)
        return self.call(self.rng.choice(ENTRIES), depth)

    def leaf(self, of: Type) -> x.Expression:
        if of not in TYPES or self.rng.random() < 0.3:
            known = None if self.rng.random() < 0.1 else value(self.rng, of)
            return x.Literal(known, of)  # type: ignore[arg-type]
        return self.rng.choice([column for column in COLUMNS if column.type == of])

    def fitting(self, parameter: ArgumentKind, depth: int) -> x.Expression:
        for _ in range(6):
            found = self.any(depth)
            if parameter.accepts(found.type):
                return found
        return self.leaf(self.rng.choice([of for of in TYPES if parameter.accepts(of)]))

    def call(self, entry: ScalarFunction, depth: int) -> x.Expression:
        signatures = [(entry.parameters, entry.result)]
        signatures += [(own.parameters, own.result) for own in entry.overloads]
        parameters = list(self.rng.choice(signatures)[0])
        if parameters == list(entry.parameters) and entry.optional:
            parameters = parameters[: len(parameters) - self.rng.randint(0, entry.optional)]
        if entry.variadic:
            parameters += [parameters[-1]] * self.rng.randint(0, 2)
        arguments = tuple(self.fitting(parameter, depth - 1) for parameter in parameters)
        types = [argument.type for argument in arguments]
        for number, (own, result) in enumerate(signatures):
            extra = len(types) - len(own)
            if extra > 0 and entry.variadic:
                own = (*own, *[own[-1]] * extra)
            fewer = entry.optional if not number else 0
            if not len(own) - fewer <= len(types) <= len(own):
                continue
            chosen = choose(own[: len(types)], result, types)
            if chosen is not None:
                self.used.add(entry.name)
                return x.Call(entry.name, arguments, chosen.takes, chosen.type, number)
        return self.leaf(self.rng.choice(TYPES))

    def condition(self, depth: int) -> x.Expression:
        match self.rng.randrange(5):
            case 0 | 1:
                make = self.rng.choice((x.And, x.Or))
                return make(
                    tuple(self.condition_below(depth) for _ in range(self.rng.randint(2, 3)))
                )
            case 2:
                return x.Not(self.condition_below(depth))
            case 3:
                return x.IsNull(self.any(depth - 1), self.rng.random() < 0.5)
        left, right = self.any(depth - 1), self.any(depth - 1)
        met = t.common(left.type, right.type)
        if met is None:
            right = self.leaf(left.type)
            met = left.type
        return x.Compare(self.rng.choice(list(Condition)[:6]), left, right, met)

    def condition_below(self, depth: int) -> x.Expression:
        return self.condition(depth - 1) if depth > 1 else self.leaf(t.BOOLEAN)

    def case(self, depth: int) -> x.Expression:
        branches = tuple(
            (self.condition_below(depth), self.any(depth - 1))
            for _ in range(self.rng.randint(1, 2))
        )
        first = branches[0][1].type
        if t.meet(then.type for _, then in branches) is None:
            branches = tuple((when, self.leaf(first)) for when, _ in branches)
        otherwise = self.any(depth - 1)
        met = t.meet((*(then.type for _, then in branches), otherwise.type))
        if met is None:
            otherwise = self.leaf(branches[0][1].type)
            met = t.meet((*(then.type for _, then in branches), otherwise.type))
        assert met is not None
        return x.Case(branches, otherwise, met)

    def cast(self, depth: int) -> x.Expression:
        term = self.any(depth - 1)
        to = self.rng.choice([of for of in TYPES if t.castable(term.type, of)])
        return x.Cast(term, to, self.rng.random() < 0.2)
