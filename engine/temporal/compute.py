"""Expressions as Python functions over tuples' arrays (ts, te, columns)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compiler.apas import expressions as x
from compiler.apas import network as n
from compiler.apas.functions import Scalar
from compiler.apas.types import BOOLEAN
from compiler.apas.values import cast, operation

Array = Sequence[Any]
Evaluate = Callable[[Array, list[Any]], Any]
"""Of an incoming array and the outgoing one, which temporaries are written to on the way."""
Do = Callable[[Array, list[Any]], None]


def evaluator(e: x.Expression, frame: n.Frame) -> Evaluate:
    match e:
        case x.Constant(value=value):
            return lambda inp, out: value
        case x.Read(place=place):
            if place in frame.reads:
                at = frame.reads[place]
                return lambda inp, out: inp[at]
            to = frame.writes[place]
            return lambda inp, out: out[to]
        case x.Cast(argument=argument, type=type):
            inside, function = evaluator(argument, frame), cast(argument.type, type)
            return lambda inp, out: function(inside(inp, out))
        case x.Operate():
            return _operate(e, frame)
        case x.Invoke(bound=bound, arguments=arguments, before=before):
            call = _call(bound.function)
            prepare = steps(before, frame)
            values = [evaluator(argument, frame) for argument in arguments]

            def invoke(inp: Array, out: list[Any]) -> Any:
                prepare(inp, out)
                return call(tuple(value(inp, out) for value in values))[0]

            return invoke


def _operate(e: x.Operate, frame: n.Frame) -> Evaluate:
    arguments = [evaluator(argument, frame) for argument in e.arguments]
    first = arguments[0]
    function = operation(e.operator, e.ct)
    if len(arguments) == 1:
        return lambda inp, out: function(first(inp, out))
    second = arguments[1]
    if e.ct is BOOLEAN and e.operator == "AND":
        return lambda inp, out: first(inp, out) and second(inp, out)
    if e.ct is BOOLEAN and e.operator == "OR":
        return lambda inp, out: first(inp, out) or second(inp, out)
    return lambda inp, out: function(first(inp, out), second(inp, out))


def _call(function: object) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    assert isinstance(function, Scalar)
    return function.call


def steps(what: Sequence[x.Step], frame: n.Frame) -> Do:
    doing = [_step(step, frame) for step in what]

    def run(inp: Array, out: list[Any]) -> None:
        for do in doing:
            do(inp, out)

    return run


def _step(step: x.Step, frame: n.Frame) -> Do:
    if isinstance(step, x.Assign):
        to, value = frame.writes[step.place], evaluator(step.value, frame)

        def assign(inp: Array, out: list[Any]) -> None:
            out[to] = value(inp, out)

        return assign
    places = [frame.writes[step.structure, path] for path in step.paths]
    call, prepare = _call(step.bound.function), steps(step.before, frame)
    values = [evaluator(argument, frame) for argument in step.arguments]

    def assign_tree(inp: Array, out: list[Any]) -> None:
        prepare(inp, out)
        found = call(tuple(value(inp, out) for value in values))
        for place, value in zip(places, found, strict=True):
            out[place] = value

    return assign_tree


def predicate(filter: n.Filter) -> Callable[[Array], bool]:
    """Whether all conditions hold, the first that does not deciding."""
    tests = [evaluator(condition, filter.frame) for condition in filter.conditions]
    length = filter.frame.length
    if not tests:
        return lambda inp: True

    def holds(inp: Array) -> bool:
        out = [None] * length
        return all(test(inp, out) for test in tests)

    return holds


def values(filters: Sequence[n.Filter]) -> Callable[[Array], tuple[Any, ...]]:
    """One value of each: the terms of a join."""
    each = [evaluator(filter.conditions[0], filter.frame) for filter in filters]
    length = max((filter.frame.length for filter in filters), default=0)
    return lambda inp: tuple(value(inp, [None] * length) for value in each)


def mapper(map: n.Map) -> Callable[[Array], tuple[Any, ...]]:
    """The result's values; temporaries are cut off."""
    run, length, width = steps(map.steps, map.frame), map.frame.length, map.width

    def apply(inp: Array) -> tuple[Any, ...]:
        out: list[Any] = [None] * length
        out[0], out[1] = inp[0], inp[1]
        run(inp, out)
        return tuple(out[2:width])

    return apply


def arguments(
    partials: Sequence[x.Partial], frame: n.Frame
) -> Callable[[Array], tuple[tuple[Any, ...], ...]]:
    """What each partial aggregate takes of a tuple."""
    prepared = [
        (steps(p.before, frame), [evaluator(argument, frame) for argument in p.arguments])
        for p in partials
    ]
    length = frame.length

    def take(inp: Array) -> tuple[tuple[Any, ...], ...]:
        out: list[Any] = [None] * length
        found = []
        for prepare, each in prepared:
            prepare(inp, out)
            found.append(tuple(value(inp, out) for value in each))
        return tuple(found)

    return take
