"""Needs: the partners a tuple must meet to be in any result, for each query and alias.

before  SELECT * FROM R, S WHERE R.a = S.d AND R.b > 3 WINDOW RANGE 100
after   R needs an S with d = a, S needs an R with a = d; no older than 100, no newer than 100

An equality counts if the condition implies it. A query gives no need for a stream if nothing
equates that stream's columns with another's: then all of the stream's tuples may be in results. The
same holds for streams that operations, patterns and APAS queries read. A stream that a query defines
is no partner, because its tuples come into being later. A table is neither filtered nor a partner: its
rows have no times.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from seustream.compiler.catalogue import Stream
from seustream.compiler.logical.program import Program, Query
from seustream.compiler.plan.keys import Pair, groups, implied
from seustream.engine.sites.model import span
from seustream.hdl.device import Window, WindowKind


@dataclass(frozen=True, slots=True)
class Partner:
    """A tuple of `stream` whose `column` equals ours, at most `before` older than ours, or `after`
    newer."""

    ours: str
    stream: str
    column: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Needs:
    """By stream, the ways in which a tuple can be in a result, each a set of partners all of which
    it needs. A stream that is not listed is needed whole."""

    ways: dict[str, tuple[tuple[Partner, ...], ...]]

    def columns(self) -> dict[str, tuple[str, ...]]:
        """Returns, by stream, the columns in which others look up their partners."""
        found: dict[str, set[str]] = {}
        for ways in self.ways.values():
            for way in ways:
                for partner in way:
                    found.setdefault(partner.stream, set()).add(partner.column)
        return {stream: tuple(sorted(columns)) for stream, columns in found.items()}

    def among(self, streams: Collection[str]) -> Needs:
        """Returns the needs that streams have of each other, if nothing is known of the rest."""
        ways = {
            stream: tuple(tuple(p for p in way if p.stream in streams) for way in found)
            for stream, found in self.ways.items()
            if stream in streams
        }
        return Needs({stream: found for stream, found in ways.items() if all(found)})


def needs(program: Program) -> Needs:
    """Returns the needs of a query set, given as a program with simplified conditions."""
    ways: dict[str, list[tuple[Partner, ...]]] = {}
    patterns = program.patterns
    whole = {pattern.stream.name for pattern in patterns}
    whole |= {stream.name for operation in program.operations for stream in operation.inputs}
    whole |= {
        name
        for compiled in (*program.apas.values(), *program.asked_apas)
        for name in compiled.network.sources
    }
    for query in program.queries:
        streams = [source.stream.name for source in query.sources]
        if query.aggregated or len(streams) == 1:
            whole.update(streams)
            continue
        for source in query.sources:
            # ROWS counts all of a stream's tuples, including those that join nothing.
            if source.window.kind is WindowKind.ROWS or not _is_filtered(source.stream):
                whole.add(source.stream.name)
        pairs = implied(query.where)
        for at, stream in enumerate(streams):
            partners = tuple(sorted(set(_partners(query, at, pairs)), key=_order))
            if partners:
                ways.setdefault(stream, []).append(partners)
            else:
                whole.add(stream)
    return Needs({stream: tuple(found) for stream, found in ways.items() if stream not in whole})


def _is_filtered(stream: Stream) -> bool:
    return stream.defined_by is None and not stream.table


def _order(partner: Partner) -> tuple[str, str, str]:
    return partner.ours, partner.stream, partner.column


def _partners(query: Query, at: int, pairs: set[Pair]) -> list[Partner]:
    found = []
    for group in groups(pairs):
        mine = sorted(name for source, name in group if source == at)
        for source, column in sorted(group):
            other = query.sources[source]
            if source != at and _is_filtered(other.stream):
                before, after = reach(other.window), reach(query.sources[at].window)
                found += [Partner(name, other.stream.name, column, before, after) for name in mine]
    return found


def reach(window: Window) -> float:
    """Returns how far a window reaches back in time; one that counts tuples may reach any time."""
    return math.inf if window.kind is WindowKind.ROWS else span(window, "")
