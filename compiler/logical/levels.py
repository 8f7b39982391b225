"""The graph of a query set: which query reads which, and in what order.

A derived stream is an edge, from the query of any language that defines it to those that read it.

    before  CREATE STREAM j AS SELECT … FROM R, S …;  PATTERN A; B FROM j …
    after   level 0: j (reads R, S)   level 1: the pattern (reads j)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from seustream.compiler.apas.compile import Compiled
from seustream.compiler.logical import program as logical
from seustream.compiler.pattern import ir

Node = logical.Relation | ir.MatchQuery | Compiled
"""A query of any of the three languages, or a part of one."""


def reads(node: Node) -> set[str]:
    """Returns the streams that a query reads."""
    if isinstance(node, ir.MatchQuery):
        return {s.name for s in (node.stream, node.candidates) if s is not None}
    if isinstance(node, Compiled):
        return set(node.network.sources)
    if isinstance(node, logical.Operation):
        return {stream.name for stream in node.inputs}
    return {source.stream.name for source in node.sources}


def definitions(program: logical.Program) -> dict[str, Node]:
    """Returns the query that defines each derived stream, by stream."""
    found: dict[str, Node] = dict(program.apas)
    found |= {q.defines: q for q in program.queries if q.defines is not None}
    found |= {o.defines: o for o in program.operations if o.defines is not None}
    return found | {p.defines: p for p in program.patterns if p.defines is not None}


def nodes(program: logical.Program) -> tuple[Node, ...]:
    """Returns all queries of a program."""
    return (
        *program.queries,
        *program.operations,
        *program.patterns,
        *program.apas.values(),
        *program.asked_apas,
    )


def levels(program: logical.Program) -> dict[str, int]:
    """Returns the length of the chain of queries behind each derived stream: 1 if its definition
    reads base streams alone. A stream follows those it reads, except the candidates of patterns,
    which passes add behind all others."""
    defined = definitions(program)
    found: dict[str, int] = {}

    def find(stream: str) -> None:
        for name in reads(defined[stream]) & (defined.keys() - found.keys()):
            find(name)
        found[stream] = 1 + level(defined[stream], found)

    for stream in program.streams:
        if stream.name in defined and stream.name not in found:
            find(stream.name)
    return found


def level(node: Node, streams: Mapping[str, int]) -> int:
    """Returns the level of a query: 0 if it reads base streams alone."""
    return max((streams.get(name, 0) for name in reads(node)), default=0)


def part(program: logical.Program, query: str) -> logical.Program:
    """Reduces a program to one query, with the streams and definitions that it reads, directly or
    through others."""
    defined = definitions(program)
    asked = (*program.asked_relations, *program.asked_patterns, *program.asked_apas)
    (root,) = (node for node in asked if node.name == query)
    needed = {id(root)}
    waiting: list[Node] = [root]
    streams: set[str] = set()
    while waiting:
        for name in reads(waiting.pop()) - streams:
            streams.add(name)
            if (node := defined.get(name)) is not None:
                needed.add(id(node))
                waiting.append(node)
    return replace(
        program,
        streams=tuple(stream for stream in program.streams if stream.name in streams),
        queries=tuple(one for one in program.queries if id(one) in needed),
        operations=tuple(one for one in program.operations if id(one) in needed),
        patterns=tuple(one for one in program.patterns if id(one) in needed),
        apas={name: one for name, one in program.apas.items() if id(one) in needed},
        asked_apas=tuple(one for one in program.asked_apas if id(one) in needed),
        requests=(),
    )


def used(roots: list[Node], derivations: Mapping[str, Node]) -> set[str]:
    """Returns the derived streams, folded, that some of these queries read, directly or through
    others."""
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        for name in map(str.lower, reads(waiting.pop())):
            if name in derivations and name not in found:
                found.add(name)
                waiting.append(derivations[name])
    return found
