"""Chooses the operator for a query of either language."""

from __future__ import annotations

from seustream.compiler.language.faults import Faults
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.rows import RowQuery
from seustream.engine.pattern.operator import PatternOperator
from seustream.engine.pattern.recognize.operator import RowOperator
from seustream.engine.pattern.variants import VariantsOperator


def operator_of(
    query: ir.MatchQuery, engine: str = "auto", late: str = "drop", faults: Faults | None = None
) -> PatternOperator | VariantsOperator | RowOperator:
    """Returns the operator that runs a PATTERN or MATCH_RECOGNIZE query on a stream."""
    if isinstance(query, RowQuery):
        # `engine` does not apply: its matchers are those of PATTERN.
        return RowOperator(query, late=late, faults=faults)
    assert isinstance(query, ir.PatternQuery)
    if query.variants:
        return VariantsOperator(query, engine, late, faults)
    return PatternOperator(query, engine, late=late, faults=faults)
