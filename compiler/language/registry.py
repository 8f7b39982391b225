"""Functions and aggregates: one entry each, which every other part reads.

    FUNCTIONS["lpad"] = ScalarFunction(
        "lpad", (TEXT, INTEGER, TEXT), VARCHAR, optional=1,
        row=_lpad, doc="The text filled on the left to a length, with spaces or the given text.",
        example="lpad('7', 3, '0')",
    )

An entry is all there is to write: the grammar, the binder, EXPLAIN, the reference page, the column
evaluator, the row reference and the test that compares these two read it here
(`seustream.compiler.language.functions`, `seustream.compiler.language.aggregates`).

**Values.** The row reference works on Python values: int, float (never NaN), Decimal, str, bool, date,
time, datetime without zone, timedelta in whole milliseconds. A strict function (the default) is not
called if an argument is NULL: its value is NULL then. It returns None if it has no value, which is a
fault, or merely NULL if the entry is `quiet`. A real result that is not a number counts as no value.

**Columns.** `columns(pc, *arguments)` computes whole columns with `pc`, the module `pyarrow.compute`,
which is passed in because the compiler needs no data library. An argument is an Arrow array of the
parameter's type or, for a written constant, an Arrow scalar; at least one is an array. The result must
equal the row reference's value in each row, with NULL where that has none. It may raise
(`ArrowInvalid`): the evaluator then calls the row reference for each row. Without `columns`, the row
reference is called for each distinct value.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from seustream.compiler.language.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTERVAL,
    NULL,
    TIMESTAMP,
    VARCHAR,
    Kind,
    Type,
    common,
    meet,
)


@dataclass(frozen=True, slots=True)
class ArgumentKind:
    """A kind of argument: `name` for messages, `accepts` tests its type, `takes` is the type it is
    converted to. None converts it to the common type of all arguments of such parameters."""

    name: str
    accepts: Callable[[Type], bool]
    takes: Type | None


NUMBER = ArgumentKind("a number", lambda of: of.is_numeric, None)
INTEGER = ArgumentKind("an integer", lambda of: of.is_integer, BIGINT)
REAL_NUMBER = ArgumentKind("a number", lambda of: of.is_numeric, DOUBLE)
TEXT = ArgumentKind("a text", lambda of: of.is_text, VARCHAR)
CONDITION = ArgumentKind("a condition", lambda of: of.kind is Kind.BOOLEAN, BOOLEAN)
MOMENT = ArgumentKind(
    "a date or timestamp", lambda of: of.kind in (Kind.DATE, Kind.TIMESTAMP), TIMESTAMP
)
SPAN = ArgumentKind("an interval", lambda of: of.kind is Kind.INTERVAL, INTERVAL)
ANY = ArgumentKind("a value", lambda of: of.kind is not Kind.LIST, None)
ANYTHING = ArgumentKind("a value", lambda of: of.kind is not Kind.LIST, NULL)
"""Accepts any value but a list, and converts it to nothing."""

Result = Type | Callable[[Sequence[Type]], "Type | None"]
"""The type of the result, or a function that computes it from the converted argument types and
returns None if they do not fit."""


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A scalar function or operator.

    The last `optional` parameters may be left out; `variadic` repeats the last one. Operators (`+`,
    `like`) are entries too; `hidden` ones cannot be called by name. A `lazy` function has the value
    of its first argument that is not NULL, and evaluates none behind it. `overloads` are further
    lists of parameters with their results, tried in order. With `typed` the implementations take the
    result's type first: `row(to, *values)`, `columns(pc, to, *arguments)`. `fault` names its fault
    in a word or two. `check(*constants)` returns what is wrong with arguments that are written out,
    or None; an argument that differs by row is `...` there.
    """

    name: str
    parameters: tuple[ArgumentKind, ...]
    result: Result
    row: Callable[..., Any]
    doc: str
    example: str
    columns: Callable[..., Any] | None = None
    optional: int = 0
    variadic: bool = False
    strict: bool = True
    quiet: bool = False
    lazy: bool = False
    hidden: bool = False
    typed: bool = False
    fault: str = "no value"
    check: Callable[..., str | None] | None = None
    aliases: tuple[str, ...] = ()
    overloads: tuple[Signature, ...] = ()

    @property
    def fewest(self) -> int:
        return len(self.parameters) - self.optional

    @property
    def most(self) -> int | None:
        return None if self.variadic else len(self.parameters)

    @property
    def wants(self) -> str:
        """Describes the arguments for messages, by place over all overloads."""
        lists = [self.parameters, *(overload.parameters for overload in self.overloads)]
        places = [
            dict.fromkeys(p.name for p in of if p is not None)
            for of in itertools.zip_longest(*lists)
        ]
        if self.variadic and list(places[-1]) == [ANY.name] and self.parameters[-1].takes is None:
            return "values of one type"
        for of in places:
            if NUMBER.name in of:
                of.pop(INTEGER.name, None)  # an integer is a number as well
        parts = [" or ".join(of) for of in places]
        return ", ".join(parts) or "no arguments"


@dataclass(frozen=True, slots=True)
class Signature:
    """Another parameter list of a function, with its own result and, if the values are of other
    Python types, its own implementations."""

    parameters: tuple[ArgumentKind, ...]
    result: Result
    row: Callable[..., Any]
    columns: Callable[..., Any] | None = None
    typed: bool = False
    fault: str | None = None  # if another word fits better than the function's
    check: Callable[..., str | None] | None = None


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate in two phases. A row counts unless one of its arguments is NULL.

    `init()` returns an empty state. `insert(state, *values)` and `remove(state, *values)` return
    the state with one row more or less; they may change the old state, a list or a table, but not
    its members. `merge(a, b)` returns the state of both, all of `a` before all of `b`, and changes
    neither. `result(state)` returns its value, None if there is none. A state whose `result` is
    `FAULT` counts a fault, such as a sum that does not fit. With `typed` it is `result(to, state)`,
    `to` being the result's type.

    `remove` is None if rows cannot be removed. `ordered` means that the order of rows matters. A
    state that `collects` holds every row, so merging costs as much as inserting again. Without
    rows, all aggregates but the counts are NULL.
    """

    name: str
    parameters: tuple[ArgumentKind, ...]
    result_type: Result
    init: Callable[[], Any]
    insert: Callable[..., Any]
    result: Callable[..., Any]
    doc: str
    example: str
    merge: Callable[[Any, Any], Any] | None = None
    remove: Callable[..., Any] | None = None
    ordered: bool = False
    collects: bool = False
    typed: bool = False
    fault: str = "no value"
    optional: int = 0
    aliases: tuple[str, ...] = ()


class Fault:
    """No value, for a reason other than lack of rows."""

    def __repr__(self) -> str:
        return "FAULT"


FAULT = Fault()


@dataclass(frozen=True, slots=True)
class Chosen:
    """A function with the overload chosen for given argument types."""

    takes: tuple[Type, ...]
    type: Type


def choose(
    parameters: Sequence[ArgumentKind], result: Result, types: Sequence[Type]
) -> Chosen | None:
    """Returns the types to which the arguments are converted and the type of the result, None if
    they do not fit. `parameters` has one entry per argument."""
    fits = all(t.is_unknown or p.accepts(t) for p, t in zip(parameters, types, strict=True))
    if not fits:
        return None
    open_ones = [t for p, t in zip(parameters, types, strict=True) if p.takes is None]
    met = meet(open_ones)
    if met is None:
        return None
    takes = tuple(
        met if p.takes is None else t if p.takes is NULL else p.takes
        for p, t in zip(parameters, types, strict=True)
    )
    found = result if isinstance(result, Type) else result(takes)
    return None if found is None else Chosen(takes, found)


__all__ = [
    "ANY",
    "ANYTHING",
    "CONDITION",
    "FAULT",
    "INTEGER",
    "MOMENT",
    "NUMBER",
    "REAL_NUMBER",
    "SPAN",
    "TEXT",
    "AggregateFunction",
    "ArgumentKind",
    "Chosen",
    "Fault",
    "ScalarFunction",
    "Signature",
    "choose",
    "common",
]  # fmt: skip
