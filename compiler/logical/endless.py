"""Finds state that grows as long as the streams do, so that EXPLAIN can warn of it.

before  SELECT … FROM R, S WHERE R.a = S.a WINDOW UNBOUNDED, RANGE 5 minutes
after   ("q", "keeps every row of R: its window never ends")
"""

from __future__ import annotations

from collections.abc import Iterator

from seustream.compiler.language import expressions as x
from seustream.compiler.language.aggregates import KEPT_AS_STATE
from seustream.compiler.logical.joins import JoinTree, TreeJoin, joins, visible
from seustream.compiler.logical.program import (
    Distinct,
    Program,
    Query,
    RankChanges,
    RankedRows,
    Relation,
)
from seustream.compiler.logical.windows import has_end


def endless(program: Program) -> Iterator[tuple[str, str]]:
    """Yields the queries whose state has no bound, and the reasons."""
    for node in program.relations:
        for why in dict.fromkeys(_reasons(node)):
            yield (node.defines or node.name).partition("#")[0], why


def _reasons(node: Relation) -> Iterator[str]:
    if isinstance(node, RankedRows) and node.end is None and node.ahead is None:
        if node.best is None:
            when = "may change" if isinstance(node, RankChanges) else "are certain"
            yield f"keeps every row: ranks and ORDER BY {when} at the end of the stream"
        else:
            yield f"keeps the best {node.best[1]} rows of every partition to the end of the stream"
    elif isinstance(node, Distinct) and not has_end(node.window):
        yield "keeps every different row: the window of DISTINCT never ends"
    elif isinstance(node, Query | JoinTree) and (len(node.sources) > 1 or node.aggregated):
        tree = node.tree if isinstance(node, JoinTree) else 0
        latest = {
            place
            for join in (joins(tree) if isinstance(tree, TreeJoin) else ())
            if join.kind.looks_up
            for place in visible(join.right)
        }
        for place, source in enumerate(node.sources):
            if not (has_end(source.window) or source.stream.table or place in latest):
                what = "groups" if len(node.sources) == 1 and _are_states(node) else "rows"
                yield f"keeps all {what} of {source.alias}: its window never ends"


def _are_states(node: Query | JoinTree) -> bool:
    """Returns whether no aggregate needs the rows of a group that no row leaves."""
    parts = [item.expression for item in node.items]
    parts += [node.having] if node.having is not None else []
    found = (e for part in parts for e in x.walk(part))
    return all(e.function in KEPT_AS_STATE for e in found if isinstance(e, x.AggregateCall))
