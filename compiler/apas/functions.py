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

from seustream.compiler.apas.tree import Node, group, leaf
from seustream.compiler.apas.types import shown
from seustream.compiler.language import registry
from seustream.compiler.language.types import Type, common

Values = tuple[Any, ...]


class BadArgument(ValueError):
    """Arguments a function cannot take, with what it wants."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument as the compiler knows it: its name if it was given one, its tree ({val} of a
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
        """By position or label; the overload of exactly these types, else that for which
        the fewest arguments are converted."""
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
        takes = "; ".join(", ".join(map(shown, o.takes)) for o in self.overloads)
        given = ", ".join(map(shown, types)) or "nothing"
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

    removes: bool = False
    merges: bool = False
    spans: ClassVar[bool] = False  # whether there is `over`

    def merge(self, a: Any, b: Any) -> Any:
        raise NotImplementedError

    def none(self, leaves: int) -> Values:
        """The result where no tuple counts: a tuple with a NULL among its values does not."""
        return (None,) * leaves

    def index(self) -> AggregateIndex | None:
        """Returns an index of the tuples that live, for streams without deletions; None:
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
    """Returns where each parameter's argument stands in the call."""
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
    """Returns whether a value of the one type is taken for one of the other."""
    return _distance((source,), (target,)) is not None


def _distance(sources: tuple[Type, ...], targets: tuple[Type, ...]) -> int | None:
    """Returns how many arguments become another type on their own; None where one does not: it must be
    of the type, or meet it there."""
    if len(sources) != len(targets):
        return None
    if any(common(of, to) != to for of, to in zip(sources, targets, strict=True)):
        return None
    return sum(of != to for of, to in zip(sources, targets, strict=True))


def _result(gives: Type | Node) -> Node:
    return group("", leaf("val", gives)) if isinstance(gives, Type) else gives.copy("")


# --- built in -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Alias(Function):
    """Another name of a function or an aggregate of all languages; `gives` its result's type here,
    if that is another."""

    of: str
    gives: Type | None = None
    kind: ClassVar[str] = "alias"


class Registered(Aggregate):
    """An aggregate of all languages. Its states may change in place there; here they are shared,
    so each change is of a copy."""

    def __init__(self, entry: registry.AggregateFunction, of: Type, distinct: bool = False) -> None:
        self.entry, self.of, self.distinct = entry, of, distinct
        # Where the order of rows matters, states are not merged in the order of their end.
        self.merges = (distinct or entry.merge is not None) and not entry.ordered
        # min and max have no opposite: a withdrawn value stays until its interval ends.
        self.removes = distinct or entry.remove is not None

    def init(self, v: Values) -> Any:
        if self.distinct:
            return {v: 1}
        return self.entry.insert(self.entry.init(), *v)

    def add(self, state: Any, v: Values) -> Any:
        if self.distinct:
            return {**state, v: state.get(v, 0) + 1}
        return self.entry.insert(_copied(state), *v)

    def remove(self, state: Any, v: Values) -> Any:
        if self.distinct:
            left = {**state, v: state[v] - 1}
            return {value: times for value, times in left.items() if times}
        assert self.entry.remove is not None
        return self.entry.remove(_copied(state), *v)

    def merge(self, a: Any, b: Any) -> Any:
        if self.distinct:
            return {v: a.get(v, 0) + b.get(v, 0) for v in (*a, *b)}
        assert self.entry.merge is not None
        return self.entry.merge(a, b)

    def final(self, state: Any) -> Values:
        if self.distinct:
            plain = self.entry.init()
            for v in state:
                plain = self.entry.insert(plain, *v)
            return (self.result(plain),)
        return (self.result(state),)

    def none(self, leaves: int) -> Values:
        return (self.result(self.entry.init()),)

    def result(self, state: Any) -> Any:
        """The value of a state of the registry; `FAULT` where there is none."""
        return self.entry.result(self.of, state) if self.entry.typed else self.entry.result(state)


def _copied(state: Any) -> Any:
    """A state of the registry that may change: a list or a table of what does not."""
    return state.copy() if type(state) in (list, dict) else state


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
