"""Leaves of a pattern's expressions, one binding at a time.

An evaluator is a closure of the language core over a binding: the events of each element, and for
each element the member that EACH refers to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from seustream.compiler.language import expressions as x
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.evaluate import compile_noting
from seustream.compiler.language.faults import Place
from seustream.compiler.language.registry import FAULT
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Pick
from seustream.compiler.pattern.rows import RowAggregate


class Attributes(Protocol):
    """The parts of an event that an expression reads; missing attributes are NULL."""

    @property
    def ts(self) -> int: ...
    @property
    def seq(self) -> int: ...
    @property
    def attrs(self) -> Mapping[str, Any]: ...


Groups = Sequence[Sequence[Attributes]]
"""The events of each element; a single element has one."""

Binding = tuple[Groups, Sequence[int]]
"""Events, and for each element the index of the member that EACH refers to, from 0."""

Evaluator = Callable[[Binding], Any]


def evaluator(e: x.Expression, found: list[Place]) -> Evaluator:
    """Returns a function that evaluates `e` for a binding and appends the places of its faults."""
    return compile_noting(e, Leaves(found), found)


def may_fault(e: x.Expression) -> bool:
    """Returns whether an evaluation may have no value even though all its leaves have one."""
    for part in x.walk(e):
        if isinstance(part, (x.Call, x.Cast, x.Case)):
            return True
        if isinstance(part, ir.GroupAggregate) and (
            part.aggregate.function != "count" or any(map(may_fault, x.children(part.aggregate)))
        ):
            return True
    return False


class Leaves:
    """Compiles leaves to functions that read them; faults within aggregates go to `found`."""

    def __init__(self, found: list[Place]) -> None:
        self.found = found

    def __call__(self, e: x.Leaf) -> Evaluator:
        return self._aggregate(e) if isinstance(e, ir.GroupAggregate) else _value(e)

    def _aggregate(self, e: ir.GroupAggregate) -> Evaluator:
        """Aggregates over the members, in their order."""
        element, before, fold = e.element, e.before, Fold(e)
        if not e.aggregate.arguments and e.aggregate.where is None:
            return lambda b: b[1][element] if before else len(b[0][element])
        arguments = [evaluator(argument, self.found) for argument in fold.arguments]
        where = e.aggregate.where
        only = None if where is None else evaluator(where, self.found)
        noted = self.found

        def value(binding: Binding) -> Any:
            groups, at = binding
            end = at[element] if before else len(groups[element])
            inner = list(at)
            rows = []
            for inner[element] in range(end):
                member = (groups, inner)
                if only is None or only(member) is True:
                    rows.append([argument(member) for argument in arguments])
            return fold.noting(rows, noted)

        return value


class Fold:
    """An aggregate of the registry over rows of arguments, converted to the types it takes."""

    def __init__(self, e: ir.GroupAggregate | RowAggregate) -> None:
        self.entry = AGGREGATES[e.aggregate.function]
        self.place = Place(e.aggregate.at, e.show(), self.entry.fault)
        self.arguments = [
            argument if argument.type == to or argument.type.is_unknown else x.Cast(argument, to)
            for argument, to in zip(e.aggregate.arguments, e.aggregate.takes, strict=True)
        ]
        self._type = e.type
        self._distinct = e.aggregate.distinct

    def noting(self, rows: Iterable[Sequence[Any]], found: list[Place]) -> Any:
        """Returns the aggregate's value; for a fault, returns None and appends its place to
        `found`."""
        return self.noted(self._state(rows), found)

    def noted(self, state: Any, found: list[Place]) -> Any:
        """Returns the value of a state, as `noting` does."""
        value = self._result(state)
        if value is FAULT:
            found.append(self.place)
            return None
        return value

    @property
    def has_small_states(self) -> bool:
        """Returns whether a state has the same few parts however many rows it is of."""
        return not (self._distinct or self.entry.collects) and isinstance(self.entry.init(), list)

    def __call__(self, rows: Iterable[Sequence[Any]]) -> Any:
        """Returns the aggregate's value, or FAULT where it has none."""
        return self._result(self._state(rows))

    def _state(self, rows: Iterable[Sequence[Any]]) -> Any:
        entry, seen = self.entry, set()
        state = entry.init()
        for values in rows:
            if None in values:
                continue
            if self._distinct:
                if tuple(values) in seen:
                    continue
                seen.add(tuple(values))
            state = entry.insert(state, *values)
        return state

    def _result(self, state: Any) -> Any:
        entry = self.entry
        return entry.result(self._type, state) if entry.typed else entry.result(state)


def _value(e: x.Leaf) -> Evaluator:
    """Reads an attribute of an event."""
    assert isinstance(e, ir.Value), e
    element, name = e.element, e.attribute
    if e.pick in (Pick.EACH, Pick.PREVIOUS):
        back = 1 if e.pick is Pick.PREVIOUS else 0
        if name == ir.TIME:
            return lambda b: b[0][element][b[1][element] - back].ts
        return lambda b: b[0][element][b[1][element] - back].attrs.get(name)
    fixed = -1 if e.pick is Pick.LAST else 0
    if name == ir.TIME:
        return lambda b: b[0][element][fixed].ts
    return lambda b: b[0][element][fixed].attrs.get(name)
