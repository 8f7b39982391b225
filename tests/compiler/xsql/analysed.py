"""Analyses texts without mistakes."""

from __future__ import annotations

from seustream.compiler.errors import Problems, SourceText
from seustream.compiler.logical import program as logical
from seustream.compiler.xsql.analyse import Analysis
from seustream.compiler.xsql.parse import parse
from tests.compiler.xsql.problems import STREAMS


def analysed(text: str) -> logical.Program:
    source, problems = SourceText(text), Problems()
    program = Analysis(source, problems).run(parse(source, problems))
    assert problems.found == []
    return program


def query(text: str) -> logical.Query:
    """Returns the one query of a text over the common streams."""
    (found,) = analysed(STREAMS + text).queries
    return found
