"""The teaching view of the automaton: runs, versions and the shared buffer after every event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compiler.pattern import ir
from engine.pattern.buffer import Entry, SharedBuffer
from engine.pattern.event import Event, Match
from engine.pattern.meaning import Meaning
from engine.pattern.nfa import Move, Nfa, Numbering
from engine.pattern.versions import show


def trace(
    query: ir.Query, events: Iterable[Event], numbering: Numbering = Numbering.PER_TAKE
) -> Iterator[str]:
    """Lines for every event, in order: what each run did, then the runs and the buffer. Events
    of one key only; the last lines are the matches."""
    moves: list[Move] = []
    nfa = Nfa(Meaning(query), numbering, on_move=moves.append)
    found: list[Match] = []
    before = -(1 << 62)
    for event in events:
        moves.clear()
        found += nfa.advance([event], before, event.ts - 1 if before < event.ts - 1 else before)
        nfa.check()
        yield f"── {event!r} {_attributes(event)}".rstrip()
        yield from (f"   {_move(move)}" for move in moves)
        yield from _runs(nfa)
        yield from buffer_lines(nfa.buffer)
        before = max(before, event.ts - 1)
    found += nfa.advance([], before, (1 << 63) - 1)
    yield "── matches"
    for match in found:
        groups = [" ".join(map(repr, group)) for group in match.groups if group]
        yield f"   {' | '.join(groups)}"
    if not found:
        yield "   none"


def _attributes(event: Event) -> str:
    parts = [f"{name}={value}" for name, value in event.attrs.items() if name != "type"]
    return ", ".join(parts)


def _move(move: Move) -> str:
    version = show(move.version)
    texts = {
        "start": f"start: a run begins at {move.entry}",
        "take": f"take: {move.entry}",
        "begin": f"begin: {move.entry}",
        "stay": "stay: the run it came from goes on without this event",
        "drop": f"drop: the run on {move.entry} ends",
        "expire": f"expire: the run on {move.entry} is over its window",
        "match": f"match: read back from {move.entry}",
    }
    label = f", edge {show(move.label)}" if move.label is not None and move.kind != "match" else ""
    return f"{texts[move.kind]} (version {version}{label})"


def _runs(nfa: Nfa) -> Iterator[str]:
    for run in nfa.runs:
        yield f"   run on {run.entry!r}, version {show(run.version)}, began at {run.start!r}"


def buffer_lines(buffer: SharedBuffer) -> Iterator[str]:
    """Every entry with its references and its edges, `target@version`."""
    entries = sorted(buffer.entries(), key=lambda e: (str(e.state), e.event.order))
    for entry in entries:
        edges = ", ".join(_edge(target, show(version)) for target, version in entry.edges)
        yield f"   entry {entry!r}: refs {entry.refs}, edges {edges}"


def _edge(target: Entry | None, version: str) -> str:
    return f"{'−' if target is None else repr(target)}@{version}"
