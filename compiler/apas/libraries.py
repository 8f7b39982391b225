"""The registered libraries of functions, which give `library.function` in a query its meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seustream.compiler.apas.functions import (
    Aggregate,
    Alias,
    Function,
    Now,
    Range,
    Scalar,
    StreamFunction,
    Table,
    Unbounded,
    Union,
)
from seustream.compiler.apas.streams import Matching, WindowFunction
from seustream.compiler.apas.types import BOOLEAN, DOUBLE


class Libraries:
    """Holds the registered libraries, the built-in ones among them from the start."""

    def __init__(self) -> None:
        self.libraries: dict[str, dict[str, Function]] = {
            "agg": {name: Alias(name) for name in ("count", "sum", "avg", "min", "max")},
            "util": {"union": Union(), "millis": Alias("epoch_ms", DOUBLE)},
            "window": {
                "range": Range(),
                "now": Now(),
                "unbounded": Unbounded(),
                "table": Table(),
            },
        }

    def register(self, name: str, functions: Mapping[str, Function]) -> None:
        """Adds a library, or functions to an existing one. Refuses a name that is taken or that no
        query could write, and a function that could not run."""
        library = self.libraries.get(name, {})
        taken = sorted(set(library) & set(functions))
        if taken:
            raise ValueError(f"{name}.{taken[0]} is registered already")
        for each in (name, *functions):
            if not isinstance(each, str) or not (each.isidentifier() and each.isascii()):
                raise ValueError(f"{each!r} is no name a query could write")
        for each, function in functions.items():
            why = unusable(function)
            if why is not None:
                raise ValueError(f"{name}.{each}: {why}")
        self.libraries[name] = {**library, **functions}

    def find(self, path: Sequence[str]) -> Function | None:
        if len(path) != 2:
            return None
        return self.libraries.get(path[0], {}).get(path[1])

    @property
    def names(self) -> list[str]:
        return [f"{library}.{name}" for library, all in self.libraries.items() for name in all]


def unusable(function: object) -> str | None:
    """Returns why a function of a library cannot run, or None if it can. The check runs when the
    library is registered, not when a query runs."""
    if not isinstance(function, Function):
        return f"{function!r:.60} is no object of Scalar, Matching, Aggregate or WindowFunction"
    if isinstance(function, WindowFunction):
        return _unusable_window(function)
    if isinstance(function, StreamFunction):
        return "a stream function is a WindowFunction; there is nothing else it could do"
    if isinstance(function, Scalar):
        if not _gives(function, Scalar, "call"):
            return "it has no `call`"
        return _unusable_matching(function) if isinstance(function, Matching) else None
    if not isinstance(function, Aggregate):
        return "it is neither Scalar nor Aggregate nor WindowFunction"
    for name in ("init", "add"):
        if not _gives(function, Aggregate, name):
            return f"it has no `{name}`"
    if function.spans and not _gives(function, Aggregate, "over"):
        return "it has no `over`, which `spans` promises"
    return None


def _unusable_window(function: WindowFunction) -> str | None:
    if not _gives(function, WindowFunction, "ends") and not _gives(
        function, WindowFunction, "open"
    ):
        return "a window gives `ends` or `open`"
    if not function.names:
        return "the first of `names` is the stream"
    if len(function.takes) != len(function.names) - 1:
        return f"`takes` has {len(function.takes)} types for {len(function.names) - 1} parameters"
    strangers = sorted(set(function.constants) - set(function.names[1:]))
    if strangers:
        return f"{strangers[0]} is in `constants` and not in `names`"
    return None


def _unusable_matching(function: Matching) -> str | None:
    if not _gives(function, Matching, "index"):
        return "it has no `index`"
    if any(len(each.takes) != sum(function.sides) for each in function.overloads):
        return f"`sides` says {sum(function.sides)} values, an overload takes another number"
    if any(each.gives != BOOLEAN for each in function.overloads):
        return "a Matching is a condition: every overload gives BOOLEAN"
    return None


def _gives(function: Function, base: type, name: str) -> bool:
    """Returns whether a user's class overrides what the base class leaves open."""
    return getattr(type(function), name) is not getattr(base, name)
