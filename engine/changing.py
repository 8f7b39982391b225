"""Changes of a query set that need no new run.

before  q1, q2 and a period query p1 with its stream p1#1
after   q1, p1 and p2: the join of base streams answers p2#1 from here on, and p2 has an operator of its own

Everything that stays is the same object in both programs, as when one was compiled after the other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeVar

from seustream.compiler.logical.levels import Node, level, levels, nodes, reads
from seustream.compiler.logical.program import Operation, Program, Query

N = TypeVar("N", Query, Operation)


@dataclass(frozen=True, slots=True)
class Change:
    """The queries that the join of base streams answers after the change; the operations that come
    and go; and the names of queries that have ended or changed."""

    queries: list[Query]
    come: list[Operation]
    go: list[Operation]
    ended: set[str]


def change_between(before: Program, after: Program, joined: Collection[str]) -> Change | None:
    """Returns the change from one program to another, or None if it needs another run. It may
    change queries over base streams that a join answers (`joined` has their names), and operations
    over base streams or over selections by such queries."""
    come_queries, gone_queries = _differing(before.queries, after.queries)
    come, go = _differing(before.operations, after.operations)
    mine, was = set(joined), {query.name for query in before.queries}
    at = levels(after)
    hidden = _of_operations(after, come), _of_operations(before, go)
    known = {operation.name for operation in before.operations}
    base = {stream.name for stream in after.base}
    if (
        before.base != after.base
        or _others(before) != _others(after)
        or not mine >= {query.name for query in gone_queries}
        or any(level(query, at) for query in come_queries)
        or not _only_for(come_queries, hidden[0])
        or not _only_for(gone_queries, hidden[1])
        or any(one.defines is not None for one in (*come, *go))
        or any(reads(one) - hidden[0] - base for one in come)
        or any(one.name in known for one in come)
    ):
        return None
    apart = was - mine
    queries = [query for query in after.queries if query.name not in apart]
    texts = {query.name: query.text for query in after.queries}
    ended = {query.name for query in gone_queries if texts.get(query.name) != query.text}
    return Change(queries, come, go, ended | {one.name for one in go})


def _differing(before: Collection[N], after: Collection[N]) -> tuple[list[N], list[N]]:
    """Returns the nodes that come and those that go."""
    was, now = ({one.name: one for one in some} for some in (before, after))
    come = [one for one in after if was.get(one.name) is not one]
    return come, [one for one in before if now.get(one.name) is not one]


def _of_operations(program: Program, operations: Collection[Operation]) -> set[str]:
    """Returns the streams that only these operations read."""
    mine = {name for one in operations for name in reads(one)}
    if not mine:
        return mine
    some = set(map(id, operations))
    return mine - {name for node in nodes(program) if id(node) not in some for name in reads(node)}


def _only_for(queries: Collection[Query], streams: Collection[str]) -> bool:
    return all(query.defines is None or query.defines in streams for query in queries)


def _others(program: Program) -> tuple[object, ...]:
    apas: Mapping[str, Node] = program.apas
    return program.patterns, list(apas.values()), program.asked_apas
