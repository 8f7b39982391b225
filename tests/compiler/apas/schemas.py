"""Schemas the tests of the compiler share."""

from __future__ import annotations

from typing import Any

from seustream.compiler.apas.compile import Compiled, compile_query
from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.apas.symbols import Schema
from seustream.compiler.apas.tree import from_lists
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
    """What is wrong with a text; nothing if it compiles."""
    try:
        compile_query(text, of, "out")
    except CompileError as error:
        return list(error.problems)
    return []


def places(text: str, of: dict[str, Schema] = VALUES) -> list[tuple[str, int, int]]:
    """Kind, line and column of each problem."""
    try:
        compile_query(text, of, "out")
    except CompileError as error:
        return [(p.kind, *error.source.position(p.span.start)) for p in error.problems]
    return []
