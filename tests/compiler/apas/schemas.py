"""Schemas and functions shared by the tests of the APAS compiler."""

from __future__ import annotations

from typing import Any

from seustream.compiler.apas.compile import Compiled, compile_query
from seustream.compiler.apas.functions import Aggregate, Overload, Scalar
from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.apas.symbols import Schema
from seustream.compiler.apas.tree import from_lists, group, leaf
from seustream.compiler.apas.types import DOUBLE
from seustream.compiler.errors import CompileError, Problem


def catalogue(**lists: list[Any]) -> dict[str, Schema]:
    return {name: Schema(from_lists(name, each)) for name, each in lists.items()}


SECTION_5 = catalogue(
    I=[["a", "INTEGER"], ["b", "DOUBLE"], ["c", [["p", "STRING"], ["q", "INTEGER"]]]]
)
VALUES = catalogue(
    I=[["v", "INTEGER"], ["d", "DOUBLE"], ["s", "STRING"], ["f", "BOOLEAN"], ["t", "DATETIME"]],
    J=[["v", "INTEGER"]],
    K=[["w", "INTEGER"]],
    S=[["id", "INTEGER"], ["g", [["x", "DOUBLE"]]]],
)


def compiled(
    text: str, of: dict[str, Schema] = VALUES, libraries: Libraries | None = None
) -> Compiled:
    return compile_query(text, of, "out", libraries)


def problems(text: str, of: dict[str, Schema] = VALUES) -> list[Problem]:
    """Returns the problems of a text; none if it compiles."""
    try:
        compile_query(text, of, "out")
    except CompileError as error:
        return list(error.problems)
    return []


def places(text: str, of: dict[str, Schema] = VALUES) -> list[tuple[str, int, int]]:
    """Returns kind, line and column of each problem."""
    try:
        compile_query(text, of, "out")
    except CompileError as error:
        return [(p.kind, *error.source.position(p.span.start)) for p in error.problems]
    return []


class Stats(Aggregate):
    """Returns max, min and mean as a tree."""

    overloads = (
        Overload(
            (DOUBLE,), group("", leaf("max", DOUBLE), leaf("min", DOUBLE), leaf("avg", DOUBLE))
        ),
    )
    merges = True

    def init(self, v: tuple[Any, ...]) -> Any:
        return (v[0], v[0], v[0], 1)

    def add(self, state: Any, v: tuple[Any, ...]) -> Any:
        return self.merge(state, self.init(v))

    def merge(self, a: Any, b: Any) -> Any:
        return (max(a[0], b[0]), min(a[1], b[1]), a[2] + b[2], a[3] + b[3])

    def final(self, state: Any) -> tuple[Any, ...]:
        return (state[0], state[1], state[2] / state[3])


class Halves(Scalar):
    """Returns a tree of two leaves."""

    overloads = (Overload((DOUBLE,), group("", leaf("low", DOUBLE), leaf("high", DOUBLE))),)

    def call(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return (values[0] / 2, values[0] * 2)
