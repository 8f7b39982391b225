"""Relational operators over whole streams: the parts of a SELECT beyond a join of windows.

Each module holds one operator, behind the operator contract (`seustream.engine.stream.operator`).
`OPERATORS` lists them by the node of the graph they run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seustream.compiler.logical import program as logical
from seustream.compiler.logical.joins import ChangeLog, JoinTree
from seustream.engine.relational.changes import ChangeOperator
from seustream.engine.relational.distinct import DistinctRows
from seustream.engine.relational.joins import TreeOperator
from seustream.engine.relational.over import OverOperator
from seustream.engine.relational.periods import PeriodOperator
from seustream.engine.relational.rank_changes import RankChangeOperator
from seustream.engine.relational.ranks import RankOperator
from seustream.engine.relational.union import UnionOperator
from seustream.engine.stream.faults import QueryFaults
from seustream.engine.stream.operator import Operator

OPERATORS: dict[type[logical.Operation], Callable[[Any, QueryFaults], Operator]] = {
    ChangeLog: ChangeOperator,
    JoinTree: TreeOperator,
    logical.Distinct: DistinctRows,
    logical.OverRows: OverOperator,
    logical.PeriodGroups: PeriodOperator,
    logical.RankChanges: RankChangeOperator,
    logical.RankedRows: RankOperator,
    logical.UnionAll: UnionOperator,
}


def operator_of(operation: logical.Operation, faults: QueryFaults) -> Operator:
    """Returns the operator that runs an operation."""
    return OPERATORS[type(operation)](operation, faults)
