"""Functions a query may call: `library.function`.

Libraries are Python objects that are registered, so a new function needs no change of the grammar:

    class Twice(Scalar):
        overloads = (Overload((DOUBLE,), DOUBLE),)
        def call(self, values): return (2 * values[0],)

    libraries = Libraries(); libraries.register("mine", {"twice": Twice()})

`bind` looks at the arguments' trees and constants and gives a `Bound`, or raises `BadArgument`.
Values go in as a flat tuple of leaves, in order, and come out as the leaves of the result tree. One
value is the tree {val} and acts as a scalar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from compiler.apas.tree import Node, group, leaf
from compiler.apas.types import (
    CASTS,
    DATETIME,
    DOUBLE,
    INTEGER,
    STRING,
    TYPES,
    Type,
    to_the_right,
)
from compiler.apas.values import checked

Values = tuple[Any, ...]


class BadArgument(ValueError):
    """Arguments a function cannot take, with what it wants."""


@dataclass(frozen=True, slots=True)
class Argument:
    """What the compiler knows of an argument: its name if it was given one, its tree ({val} of a
    scalar), and its value if that is constant."""

    label: str | None
    tree: Node
    constant: Any = None


@dataclass(frozen=True, slots=True)
class Bound:
    """A function with its arguments chosen: the result tree, the types the argument leaves are
    cast to, and in which order the arguments go (places in the call)."""

    function: Function
    result: Node
    casts: tuple[Type, ...]
    order: tuple[int, ...]

    @property
    def scalar(self) -> Type | None:
        """The type of a result that is one value."""
        if len(self.result.children) == 1 and self.result.children[0].label == "val":
            return self.result.children[0].type
        return None


@dataclass(frozen=True, slots=True)
class Overload:
    takes: tuple[Type, ...]
    gives: Type | Node


class Function:
    """Base of all functions. `names` are the labels arguments may be given by."""

    kind: ClassVar[str]
    names: tuple[str, ...] = ("value",)
    overloads: tuple[Overload, ...] = ()

    def bind(self, arguments: Sequence[Argument]) -> Bound:
        """By position or label; the overload of exactly these types, else the nearest to the
        right."""
        order = ordered(arguments, self.names)
        types = tuple(t for place in order for t in arguments[place].tree.types)
        for overload in self.overloads:
            if overload.takes == types:
                return Bound(self, _result(overload.gives), types, order)
        near = [
            (distance, overload)
            for overload in self.overloads
            if (distance := _distance(types, overload.takes)) is not None
        ]
        if near:
            overload = min(near, key=lambda pair: pair[0])[1]
            return Bound(self, _result(overload.gives), overload.takes, order)
        takes = "; ".join(", ".join(t.value for t in o.takes) for o in self.overloads)
        given = ", ".join(t.value for t in types) or "nothing"
        raise BadArgument(f"it takes {takes}; given {given}")


class Scalar(Function):
    """Computes its result from its arguments alone."""

    kind = "scalar"

    def call(self, values: Values) -> Values:
        raise NotImplementedError


class Aggregate(Function):
    """A bag of values as one. `init(v)` is the state of one value. `add` gives a new state and
    leaves the old as it was; states are shared. `remove` is None where it cannot be done, and
    `merge(a, b)` where states cannot be merged."""

    kind = "aggregate"

    def init(self, v: Values) -> Any:
        raise NotImplementedError

    def add(self, state: Any, v: Values) -> Any:
        raise NotImplementedError

    def final(self, state: Any) -> Values:
        return (state,)

    def remove(self, state: Any, v: Values) -> Any:
        raise NotImplementedError

    reads: ClassVar[bool] = True  # whether the values matter
    removes: ClassVar[bool] = False
    merges: ClassVar[bool] = False
    spans: ClassVar[bool] = False  # whether there is `over`

    def merge(self, a: Any, b: Any) -> Any:
        raise NotImplementedError

    def index(self) -> AggregateIndex | None:
        """What keeps the aggregate of the tuples that live, for streams without deletions; None:
        the states themselves are merged, or kept in a list."""
        return None

    def over(self, arguments: Sequence[Any], first: Any, last: Any, points: int) -> Sequence[Any]:
        """Of whole columns: tuple m counts at the points first[m] <= p < last[m]. A column of
        `points` values for each leaf of the result; where no tuple counts, any value."""
        raise NotImplementedError


class Saved:
    """State that a snapshot takes along: all attributes but the `fixed` ones, which construction
    gives. They must be numbers, texts, None, columns, or tuples, lists, deques and dicts of these."""

    fixed: ClassVar[frozenset[str]] = frozenset()

    def save(self) -> Any:
        return {name: value for name, value in vars(self).items() if name not in self.fixed}

    def load(self, saved: Any) -> None:
        vars(self).update(saved)


class AggregateIndex(Saved):
    """An aggregate of the tuples that live. They come in the order of their begin and go in the order
    of their end."""

    def add(self, te: int, v: Values) -> None:
        """One more tuple, which lives until te."""
        raise NotImplementedError

    def expire(self, te: int) -> None:
        """Those that end at te are gone; none that ends earlier is left."""
        raise NotImplementedError

    def final(self) -> Values:
        """The leaves of the result; asked only while something lives."""
        raise NotImplementedError


class StreamFunction(Function):
    """Stands for a change of a whole stream. Those of users are `streams.WindowFunction`s."""

    kind = "stream"


def ordered(arguments: Sequence[Argument], names: Sequence[str]) -> tuple[int, ...]:
    """Where each parameter's argument stands in the call."""
    places: dict[str, int] = {}
    for place, argument in enumerate(arguments):
        if argument.label is not None and argument.label not in names:
            raise BadArgument(f"it has no parameter {argument.label}; it has {', '.join(names)}")
        if argument.label is None and place >= len(names):
            raise BadArgument(f"it takes {len(names)} arguments; given {len(arguments)}")
        name = argument.label or names[place]
        if name in places:
            raise BadArgument(f"{name} is given twice")
        places[name] = place
    missing = [name for name in names if name not in places]
    if missing:
        raise BadArgument(f"{', '.join(missing)} is missing")
    return tuple(places[name] for name in names)


def becomes(source: Type, target: Type) -> bool:
    """Whether a value of the one type is taken for one of the other."""
    return _distance((source,), (target,)) is not None


def _distance(sources: tuple[Type, ...], targets: tuple[Type, ...]) -> int | None:
    """How far right the targets are of the sources; None where no single casts go there."""
    if len(sources) != len(targets):
        return None
    total = 0
    for source, target in zip(sources, targets, strict=True):
        line = to_the_right(source)
        if target not in line or (source is not target and (source, target) not in CASTS):
            return None
        total += line.index(target)
    return total


def _result(gives: Type | Node) -> Node:
    return group("", leaf("val", gives)) if isinstance(gives, Type) else gives.copy("")


# --- built in -----------------------------------------------------------------


class Count(Aggregate):
    """Of anything at all, whose values it never looks at."""

    reads = False
    overloads = tuple(Overload((each,), INTEGER) for each in TYPES)
    removes = merges = True

    def init(self, v: Values) -> int:
        return 1

    def add(self, state: int, v: Values) -> int:
        return state + 1

    def remove(self, state: int, v: Values) -> int:
        return state - 1

    def merge(self, a: int, b: int) -> int:
        return a + b

    def bind(self, arguments: Sequence[Argument]) -> Bound:
        """Of anything at all, also of trees."""
        order = ordered(arguments, self.names)
        return Bound(self, _result(INTEGER), tuple(arguments[0].tree.types), order)


class Sum(Aggregate):
    overloads = (Overload((INTEGER,), INTEGER), Overload((DOUBLE,), DOUBLE))
    removes = merges = True

    def init(self, v: Values) -> Any:
        return v[0]

    def add(self, state: Any, v: Values) -> Any:
        return _in_range(state + v[0])

    def remove(self, state: Any, v: Values) -> Any:
        return _in_range(state - v[0])

    def merge(self, a: Any, b: Any) -> Any:
        return _in_range(a + b)


def _in_range(total: Any) -> Any:
    """An INTEGER that overflows has no value."""
    return checked(total) if isinstance(total, int) else total


class Average(Aggregate):
    overloads = (Overload((DOUBLE,), DOUBLE),)
    removes = merges = True

    def init(self, v: Values) -> tuple[float, int]:
        return (v[0], 1)

    def add(self, state: tuple[float, int], v: Values) -> tuple[float, int]:
        return (state[0] + v[0], state[1] + 1)

    def remove(self, state: tuple[float, int], v: Values) -> tuple[float, int]:
        return (state[0] - v[0], state[1] - 1)

    def merge(self, a: tuple[float, int], b: tuple[float, int]) -> tuple[float, int]:
        return (a[0] + b[0], a[1] + b[1])

    def final(self, state: tuple[float, int]) -> Values:
        return (state[0] / state[1],)


class _Extreme(Aggregate):
    """A withdrawn value stays until its interval ends: source tuples are not kept."""

    overloads = tuple(Overload((each,), each) for each in (INTEGER, DOUBLE, DATETIME, STRING))
    merges = True

    def init(self, v: Values) -> Any:
        return v[0]


class Least(_Extreme):
    def add(self, state: Any, v: Values) -> Any:
        return v[0] if v[0] < state else state

    def merge(self, a: Any, b: Any) -> Any:
        return b if b < a else a


class Greatest(_Extreme):
    def add(self, state: Any, v: Values) -> Any:
        return v[0] if v[0] > state else state

    def merge(self, a: Any, b: Any) -> Any:
        return b if b > a else a


class Millis(Scalar):
    """A DATETIME as milliseconds, for differences."""

    overloads = (Overload((DATETIME,), DOUBLE),)

    def call(self, values: Values) -> Values:
        return (float(values[0]),)


class Range(StreamFunction):
    names = ("stream", "size")


class Now(StreamFunction):
    names = ("stream",)


class Unbounded(StreamFunction):
    names = ("stream",)


class Table(StreamFunction):
    names = ("stream", "key")


class Union(StreamFunction):
    names = ()


def scalar_tree(type: Type) -> Node:
    return group("", leaf("val", type))
