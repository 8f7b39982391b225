"""Derived streams that patterns read: what defines them must run too.

A registered pattern brings with it the query or pattern that defines its stream, and what that
one reads; those run first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from compiler.pattern import ir
from compiler.plan import logical

Derivations = Mapping[str, logical.Query | ir.Query]


def reads(query: logical.Query | ir.Query) -> set[str]:
    """The streams a query reads."""
    if isinstance(query, ir.Query):
        return {query.stream.name}
    return {source.stream.name for source in query.sources}


def with_feeds(
    queries: Mapping[str, logical.Query], patterns: Mapping[str, ir.Query], derivations: Derivations
) -> tuple[tuple[logical.Query, ...], tuple[ir.Query, ...], dict[str, str]]:
    """Queries and patterns to run, and the name of what feeds each derived stream a pattern
    reads."""
    every = [*queries.values()]
    ordered: list[ir.Query] = []
    feeds: dict[str, str] = {}

    def need(stream: str) -> None:
        defined = derivations.get(stream.lower())
        if defined is None or stream in feeds:
            return
        feeds[stream] = f"stream {stream}"
        feed = replace(defined, name=feeds[stream])
        if isinstance(feed, ir.Query):
            need(feed.stream.name)
            ordered.append(feed)
        else:
            every.append(feed)

    for pattern in patterns.values():
        need(pattern.stream.name)
        ordered.append(pattern)
    return tuple(every), tuple(ordered), feeds
