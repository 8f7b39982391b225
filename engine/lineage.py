"""Tells queries and derived streams from others of the same name, by their texts and those of the
streams that they read.

before  a state of q: … FROM (SELECT a FROM R WHERE b = 3) AS h …, with the rows of its stream q#1
after   another q, … WHERE b = 0 …, goes on from this state without these rows
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import replace

from seustream.compiler.logical.levels import Node, definitions, nodes, reads
from seustream.compiler.logical.program import Program, Query
from seustream.compiler.pattern import ir
from seustream.engine.assembly import answer_of, own_name, text_of
from seustream.engine.runs import Lineages, RunState
from seustream.engine.stream.snapshot import opened


def lineages_of(program: Program) -> Lineages:
    """Returns what the derived streams and the queries of a program are made by."""
    streams = _Streams(definitions(program))
    every = {name: streams.of(name) for name in streams.defined}
    return Lineages(every, {_key(node): streams.of_node(node) for node in nodes(program)})


class _Streams:
    """The digests of derived streams, by their definitions."""

    def __init__(self, defined: Mapping[str, Node]) -> None:
        self.defined = defined
        self._known: dict[str, str] = {}

    def of(self, name: str) -> str:
        if name not in self._known:
            self._known[name] = self.of_node(self.defined[name])
        return self._known[name]

    def of_node(self, node: Node) -> str:
        # The candidates of a pattern are rows of its stream, and depend on the device.
        read = {node.stream.name} if isinstance(node, ir.MatchQuery) else reads(node)
        parts = [text_of(node), *(self.of(name) for name in sorted(read & self.defined.keys()))]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _key(node: Node) -> str:
    return f"query {node.name}" if isinstance(node, Query) else own_name(node)


def continued(state: RunState, program: Program) -> RunState:
    """Returns a state without what belongs to other streams and queries than those that a program has
    under these names."""
    if state.lineages is None:  # an earlier release did not save them
        return state
    was, now = state.lineages, lineages_of(program)
    streams = _others(was.streams, now.streams)
    others = _others(was.nodes, now.nodes)
    if not streams and not others:
        return state
    named = {_key(node): node for node in nodes(program)}
    queries = {named[key].name for key in others if isinstance(named[key], Query)}
    failed = {answer_of(named[key]) for key in others}
    return replace(
        state,
        operators={
            own: _without(packed, streams, queries, own in others)
            for own, packed in state.operators.items()
        },
        failed={name: one for name, one in state.failed.items() if name not in failed},
    )


def redefined(before: Program, after: Program) -> set[str]:
    """Returns the derived streams of a program that the one before it had not, or had otherwise."""
    was, now = _Streams(definitions(before)), _Streams(definitions(after))
    return {name for name in now.defined if name not in was.defined or was.of(name) != now.of(name)}


def _others(was: Mapping[str, str], now: Mapping[str, str]) -> set[str]:
    return {name for name in was.keys() & now.keys() if was[name] != now[name]}


def _without(
    packed: bytes, streams: Collection[str], queries: Collection[str], anew: bool
) -> bytes:
    """Removes some streams and queries from a snapshot; `anew`: the operator's own query, too."""
    state = opened(packed)
    plain = {**state.plain}
    gone = {f"{what} {name}" for name in streams for what in ("kept", "waiting")}
    for member in ("streams", "inputs"):
        if member in plain:
            plain[member] = {
                name: one for name, one in plain[member].items() if name not in streams
            }
    for member in ("groups", "held"):
        if member in plain:
            plain[member] |= dict.fromkeys(plain[member].keys() & queries, "")
    if anew and "text" in plain:
        plain["text"] = ""
    tables = {name: rows for name, rows in state.tables.items() if name not in gone}
    return replace(state, plain=plain, tables=tables).pack()
