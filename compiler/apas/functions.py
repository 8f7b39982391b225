"""Functions a query may call: `library.function`.

Libraries are Python objects that are registered, so a new function needs no change to the grammar:

    class Twice(Scalar):
        overloads = (Overload((DOUBLE,), DOUBLE),)
        def call(self, values): return (2 * values[0],)

    libraries = Libraries(); libraries.register("mine", {"twice": Twice()})

`bind` inspects the arguments' trees and constants and returns a `Bound`, or raises `BadArgument`.
Values go in as a flat tuple of leaves, in order, and come out as the leaves of the result tree. A
single value is the tree {val} and acts as a scalar.
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
    """Arguments that a function cannot take, and what it expects."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument as the compiler knows it: its name if it was given one, its tree ({val} for a
    scalar), and its value if that is constant."""

    label: str | None
    tree: Node
    constant: Any = None


@dataclass(frozen=True, slots=True)
class Bound:
    """A function with its arguments resolved: the result tree, the types to which the argument
    leaves are cast, and the order of the arguments (as places in the call)."""

    function: Function
    result: Node
    casts: tuple[Type, ...]
    order: tuple[int, ...]

    @property
    def scalar(self) -> Type | None:
        """Returns the type of a result that is a single value, else None."""
        if len(self.result.children) == 1 and self.result.children[0].label == "val":
            return self.result.children[0].type
        return None


@dataclass(frozen=True, slots=True)
class Overload:
    takes: tuple[Type, ...]
    gives: Type | Node


class Function:
    """Base class of all functions. `names` are the labels by which arguments may be given."""

    kind: ClassVar[str]
    names: tuple[str, ...] = ("value",)
    overloads: tuple[Overload, ...] = ()

    def bind(self, arguments: Sequence[Argument]) -> Bound:
        """Binds arguments by position or label. Chooses the overload of exactly these types, else
        the one that converts the fewest arguments."""
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
    """Reduces a bag of values to one. `init(v)` is the state of one value. `add` returns a new
    state and leaves the old one unchanged, since states are shared. `remove` is None if values
    cannot be removed, `merge(a, b)` if states cannot be merged."""

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
    spans: ClassVar[bool] = False  # whether `over` is implemented

    def merge(self, a: Any, b: Any) -> Any:
        raise NotImplementedError

    def none(self, leaves: int) -> Values:
        """Returns the result when no tuple counts. A tuple with a NULL among its values does not
        count."""
        return (None,) * leaves

    def index(self) -> AggregateIndex | None:
        """Returns an index of the live tuples, for streams without deletions. None means that the
        states themselves are merged, or kept in a list."""
        return None

    def over(self, arguments: Sequence[Any], first: Any, last: Any, points: int) -> Sequence[Any]:
        """Aggregates whole columns: tuple m counts at the points first[m] <= p < last[m]. Returns a
        column of `points` values for each leaf of the result; where no tuple counts, any value."""
        raise NotImplementedError


class Saved:
    """State that a snapshot includes: all attributes except the `fixed` ones, which the constructor
    sets. They must be numbers, texts, None, columns, or tuples, lists, deques and dicts of these."""

    fixed: ClassVar[frozenset[str]] = frozenset()

    def save(self) -> Any:
        return {name: value for name, value in vars(self).items() if name not in self.fixed}

    def load(self, saved: Any) -> None:
        vars(self).update(saved)


class AggregateIndex(Saved):
    """Maintains an aggregate of the live tuples. They arrive in the order of their begin and leave
    in the order of their end."""

    def add(self, te: int, v: Values) -> None:
        """Adds a tuple that lives until te."""
        raise NotImplementedError

    def expire(self, te: int) -> None:
        """Removes the tuples that end at te; none that ends earlier is left."""
        raise NotImplementedError

    def final(self) -> Values:
        """Returns the leaves of the result; called only while some tuple is live."""
        raise NotImplementedError


class StreamFunction(Function):
    """Transforms a whole stream. Users define their own as `streams.WindowFunction`s."""

    kind = "stream"


def ordered(arguments: Sequence[Argument], names: Sequence[str]) -> tuple[int, ...]:
    """Returns the place in the call of each parameter's argument."""
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
    """Returns whether a value of the source type is accepted as one of the target type."""
    return _distance((source,), (target,)) is not None


def _distance(sources: tuple[Type, ...], targets: tuple[Type, ...]) -> int | None:
    """Returns how many arguments are converted implicitly; None if one cannot be. An argument must
    have the target type, or the common type of both must be the target."""
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
    """Gives a function or an aggregate of all languages another name. `gives` is the type of its
    result here, if that differs."""

    of: str
    gives: Type | None = None
    kind: ClassVar[str] = "alias"


class Registered(Aggregate):
    """An aggregate of all languages. In the registry its states may change in place; here they are
    shared, so each change is made on a copy."""

    def __init__(self, entry: registry.AggregateFunction, of: Type, distinct: bool = False) -> None:
        self.entry, self.of, self.distinct = entry, of, distinct
        # If the order of rows matters, states may only be merged in that order.
        self.merges = (distinct or entry.merge is not None) and not entry.ordered
        # min and max have no inverse: a withdrawn value stays until its interval ends.
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
        """Returns the value of a registry state; `FAULT` if it has none."""
        return self.entry.result(self.of, state) if self.entry.typed else self.entry.result(state)


def _copied(state: Any) -> Any:
    """Copies a registry state that may change: a list or a table of immutable values."""
    return state.copy() if isinstance(state, (list, dict)) else state


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
