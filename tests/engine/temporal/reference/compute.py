"""Compiles expressions to Python functions over the arrays of tuples (ts, te, columns): the row
reference of the languages (`seustream.compiler.language.evaluate`) with APAS's leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from seustream.compiler.apas import expressions as a
from seustream.compiler.apas import network as n
from seustream.compiler.apas.functions import Scalar
from seustream.compiler.language.evaluate import compile_row
from seustream.compiler.language.expressions import Expression, Leaf, conjunction
from seustream.compiler.language.faults import Faults
from tests.engine.temporal.reference.elements import moment

Array = Sequence[Any]
Pair = tuple[Array, list[Any]]
"""An incoming array, and the outgoing one that temporaries are written to on the way."""
Evaluate = Callable[[Pair], Any]
Do = Callable[[Pair], None]


def evaluator(e: Expression, frame: n.Places, faults: Faults) -> Evaluate:
    found: Evaluate = compile_row(e, lambda leaf: _leaf(leaf, frame, faults), faults)
    return found


def _leaf(leaf: Leaf, frame: n.Places, faults: Faults) -> Evaluate:
    if isinstance(leaf, a.Invoke):
        call = _call(leaf.bound.function, 1)
        prepare = steps(leaf.before, frame, faults)
        values = [evaluator(argument, frame, faults) for argument in leaf.arguments]

        def invoke(pair: Pair) -> Any:
            prepare(pair)
            return call(tuple(value(pair) for value in values))[0]

        return invoke
    assert isinstance(leaf, a.LeafRead)
    if leaf.place not in frame.reads:
        to = frame.writes[leaf.place]
        return lambda pair: pair[1][to]
    at = frame.reads[leaf.place]
    if at < 2:
        return lambda pair: moment(pair[0][at])
    return lambda pair: pair[0][at]


def _call(function: object, leaves: int) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Wraps a library's function: if an argument is NULL, so is the result."""
    assert isinstance(function, Scalar)
    call, nothing = function.call, (None,) * leaves
    return lambda values: nothing if None in values else call(values)


def steps(what: Sequence[a.Step], frame: n.Places, faults: Faults) -> Do:
    doing = [_step(step, frame, faults) for step in what]

    def run(pair: Pair) -> None:
        for do in doing:
            do(pair)

    return run


def _step(step: a.Step, frame: n.Places, faults: Faults) -> Do:
    if isinstance(step, a.Assign):
        to, value = frame.writes[step.place], evaluator(step.value, frame, faults)

        def assign(pair: Pair) -> None:
            pair[1][to] = value(pair)

        return assign
    places = [frame.writes[step.structure, path] for path in step.paths]
    call, prepare = _call(step.bound.function, len(places)), steps(step.before, frame, faults)
    values = [evaluator(argument, frame, faults) for argument in step.arguments]

    def assign_tree(pair: Pair) -> None:
        prepare(pair)
        found = call(tuple(value(pair) for value in values))
        for place, value in zip(places, found, strict=True):
            pair[1][place] = value

    return assign_tree


def predicate(filter: n.Filter, faults: Faults) -> Callable[[Array], bool]:
    """Returns whether all conditions are true."""
    if not filter.conditions:
        return lambda inp: True
    test = evaluator(conjunction(filter.conditions), filter.frame, faults)
    length = filter.frame.length
    return lambda inp: test((inp, [None] * length)) is True


def values(filters: Sequence[n.Filter], faults: Faults) -> Callable[[Array], tuple[Any, ...]]:
    """Returns a function that gives one value for each filter: the terms of a join."""
    each = [evaluator(filter.conditions[0], filter.frame, faults) for filter in filters]
    length = max((filter.frame.length for filter in filters), default=0)
    return lambda inp: tuple(value((inp, [None] * length)) for value in each)


def mapper(map: n.Map, faults: Faults) -> Callable[[Array], tuple[Any, ...]]:
    """Returns a function that gives the result's values without the temporaries."""
    run, length, width = steps(map.steps, map.frame, faults), map.frame.length, map.width

    def apply(inp: Array) -> tuple[Any, ...]:
        out: list[Any] = [None] * length
        out[0], out[1] = inp[0], inp[1]
        run((inp, out))
        return tuple(out[2:width])

    return apply


def arguments(
    partials: Sequence[a.PartialAggregate], frame: n.Places, faults: Faults
) -> Callable[[Array], tuple[tuple[Any, ...], ...]]:
    """Returns a function that gives the arguments each partial aggregate takes from a tuple."""
    prepared = [
        (
            steps(p.before, frame, faults),
            [evaluator(argument, frame, faults) for argument in p.arguments],
        )
        for p in partials
    ]
    length = frame.length

    def take(inp: Array) -> tuple[tuple[Any, ...], ...]:
        pair: Pair = (inp, [None] * length)
        found = []
        for prepare, each in prepared:
            prepare(pair)
            found.append(tuple(value(pair) for value in each))
        return tuple(found)

    return take
