"""Streams and a table for joins, and the compiled form of a SELECT over them."""

from __future__ import annotations

from seustream.compiler.errors import CompileError, Problem
from seustream.compiler.logical.program import Relation
from seustream.compiler.pipeline import compile_text

_R_AND_S = "CREATE STREAM R (a int, b int); CREATE STREAM S (a int, d int);\n"
STREAMS = f"{_R_AND_S}CREATE STREAM T (a int, e int);\n"
DEFINITIONS = f"{_R_AND_S}CREATE TABLE t (a int, n varchar(9));\n"


def relation(select: str) -> Relation:
    """Returns the one query or operation of a SELECT whose results are delivered."""
    (found,) = compile_text(STREAMS + select, stop_after="tree").program.asked_relations
    return found


def wrong(select: str) -> list[Problem]:
    """Returns all reported problems of a SELECT."""
    try:
        compile_text(STREAMS + select, stop_after="tree")
    except CompileError as error:
        return list(error.problems)
    return []
