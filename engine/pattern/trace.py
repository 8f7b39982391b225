"""The teaching view of the matchers: what happens at every event, and what is kept after it.

For the automaton it shows the steps of its runs, the runs with their versions, and the shared
buffer. For the ordered lists it shows where the event went, the order of the search, the range of
every step, the events bound or rejected there, and the lists. Each key of PARTITION BY has a
matcher of its own; an event shows the matcher of its key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from seustream.compiler.pattern import ir
from seustream.engine.pattern.buffer import BufferEntry, SharedBuffer
from seustream.engine.pattern.errors import EngineRefused
from seustream.engine.pattern.event import (
    BEGIN_OF_TIME,
    END_OF_STREAM,
    Event,
    Match,
    key_of,
)
from seustream.engine.pattern.meaning import Meaning
from seustream.engine.pattern.nfa import Move, Nfa
from seustream.engine.pattern.optiseq import OptiSeq, OrderStep
from seustream.engine.pattern.optiseq import show as events_of
from seustream.engine.pattern.planner import supports
from seustream.engine.pattern.versions import Numbering, show

TRACED = ("nfa", "optiseq")

Kept = dict[str, list[tuple[str, str]]]
"""By state or element, the events kept there, each with a text about it."""


class TracedRun(Protocol):
    """A matcher of one key that reports its steps and the events it keeps."""

    def take(self, event: Event) -> Iterator[str]: ...
    def end(self) -> Iterator[str]: ...
    def kept(self) -> Kept: ...
    @property
    def found(self) -> list[Match]: ...


@dataclass(frozen=True, slots=True)
class TraceStep:
    """An event, or the end of a key's events: what happened then, and what is kept after it."""

    title: str
    lines: list[str]
    kept: Kept


def traced_engine(query: ir.PatternQuery, engine: str) -> str:
    """Returns the matcher to watch: the one asked for, else the automaton, else the lists."""
    reasons = supports(query)
    if engine == "auto":
        return next(name for name in TRACED if reasons[name] is None)
    if engine not in TRACED:
        hint = "--engine nfa shows runs and buffer, --engine optiseq lists and their search"
        raise EngineRefused(f"there is no trace of engine {engine}", hint)
    if reasons[engine] is not None:
        raise EngineRefused(f"P016 engine {engine} cannot run this query: {reasons[engine]}")
    return engine


def trace(
    query: ir.PatternQuery,
    events: Iterable[Event],
    numbering: Numbering = Numbering.PER_TAKE,
    engine: str = "auto",
) -> Iterator[str]:
    """Yields lines for every event, in order; the last lines are the matches, before AFTER
    MATCH."""
    found: list[Match] = []
    for one in watch(query, events, numbering, engine, found):
        yield f"── {one.title}"
        yield from (f"   {line}" for line in one.lines)
    yield "── matches"
    for match in found:
        yield f"   {events_of(match.groups)}"
    if not found:
        yield "   none"


def watch(
    query: ir.PatternQuery,
    events: Iterable[Event],
    numbering: Numbering,
    engine: str,
    found: list[Match],
) -> Iterator[TraceStep]:
    """Yields a step for every event in order, then one for the end of each key that has more to
    report. After that, `found` holds all matches in order."""
    chosen = traced_engine(query, engine)
    meaning = Meaning(query)
    watched: dict[tuple[object, ...], TracedRun] = {}
    for event in events:
        key = key_of(event, query.partition)
        if key not in watched:
            watched[key] = (
                WatchedLists(meaning) if chosen == "optiseq" else WatchedRuns(meaning, numbering)
            )
        title = f"{_key(query, key)}{event!r} {_attributes(event)}".rstrip()
        yield TraceStep(title, list(watched[key].take(event)), watched[key].kept())
    for key, one in watched.items():
        lines = list(one.end())
        if lines:
            yield TraceStep(f"{_key(query, key)}end of the stream", lines, one.kept())
        found += one.found
    found.sort(key=lambda match: match.order)


def _key(query: ir.PatternQuery, key: tuple[object, ...]) -> str:
    parts = (f"{name}={value}" for name, value in zip(query.partition, key, strict=True))
    return f"{', '.join(parts)}: " if query.partition else ""


def _attributes(event: Event) -> str:
    parts = [f"{name}={value}" for name, value in event.attrs.items() if name != "type"]
    return ", ".join(parts)


# --- the automaton ------------------------------------------------------------


class WatchedRuns:
    """Watches runs, versions and the shared buffer."""

    def __init__(self, meaning: Meaning, numbering: Numbering) -> None:
        self.found: list[Match] = []
        self._moves: list[Move] = []
        self._nfa = Nfa(meaning, numbering, on_move=self._moves.append)
        self._before = BEGIN_OF_TIME

    def take(self, event: Event) -> Iterator[str]:
        now = max(self._before, event.ts - 1)
        self.found += self._nfa.advance([event], self._before, now)
        self._nfa.check()
        self._before = now
        yield from self._told()
        for run in self._nfa.runs:
            yield f"run on {run.entry!r}, version {show(run.version)}, began at {run.start!r}"
        yield from buffer_lines(self._nfa.buffer)

    def end(self) -> Iterator[str]:
        self.found += self._nfa.advance([], self._before, END_OF_STREAM)
        self._moves.clear()  # runs that expire now could not be completed
        return iter(())

    def kept(self) -> Kept:
        runs: dict[int, list[str]] = {}
        for run in self._nfa.runs:
            runs.setdefault(id(run.entry), []).append(show(run.version))
        found: Kept = {}
        for entry in sorted(self._nfa.buffer.entries(), key=lambda e: e.event.order):
            said = "".join(f"run {version} " for version in runs.get(id(entry), ()))
            said += ", ".join(_edge(target, show(version)) for target, version in entry.edges)
            found.setdefault(str(entry.state), []).append((repr(entry.event), said))
        return found

    def _told(self) -> Iterator[str]:
        for move in self._moves:
            waits = move.kind == "match" and self._nfa.meaning.query.waits
            yield _move(move) + (", certain when its window is over" if waits else "")
        self._moves.clear()


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


def buffer_lines(buffer: SharedBuffer) -> Iterator[str]:
    """Yields every entry with its references and its edges, `target@version`."""
    entries = sorted(buffer.entries(), key=lambda e: (str(e.state), e.event.order))
    for entry in entries:
        edges = ", ".join(_edge(target, show(version)) for target, version in entry.edges)
        yield f"entry {entry!r}: refs {entry.refs}, edges {edges}"


def _edge(target: BufferEntry | None, version: str) -> str:
    return f"{'−' if target is None else repr(target)}@{version}"


# --- ordered lists ------------------------------------------------------------


class WatchedLists:
    """Watches lists and their search, one epoch at a time. An event's matches are looked for when
    the next later event, or the end, shows that its time is over."""

    def __init__(self, meaning: Meaning) -> None:
        self.found: list[Match] = []
        self._meaning = meaning
        self._steps: list[OrderStep] = []
        self._lists = OptiSeq(meaning, on_step=self._steps.append)
        self._waiting: list[Event] = []
        self._before = BEGIN_OF_TIME

    def take(self, event: Event) -> Iterator[str]:
        if self._waiting and event.ts > self._waiting[-1].ts:
            yield from self._search(event.ts - 1)
        self._waiting.append(event)
        elements = self._meaning.query.elements
        fits = [str(e) for i, e in enumerate(elements) if self._meaning.fits(i, event)]
        yield f"keep: in {', '.join(fits)}" if fits else "drop: it fits no element"

    def end(self) -> Iterator[str]:
        yield from self._search(END_OF_STREAM)

    def kept(self) -> Kept:
        lists = zip(self._meaning.query.elements, self._lists.lists, strict=True)
        return {str(element): [(repr(event), "") for event in one.events] for element, one in lists}

    def _search(self, now: int) -> Iterator[str]:
        self.found += self._lists.advance(self._waiting, self._before, now)
        self._waiting, self._before = [], now
        yield from map(_step, self._steps)
        self._steps.clear()
        for element, events in self.kept().items():
            if events:
                yield f"list {element}: {' '.join(event for event, _ in events)}"


def _step(step: OrderStep) -> str:
    texts = {
        "order": f"search: {step.text}",
        "range": f"range: {step.text}",
        "bind": f"bind {step.text}",
        "fail": f"{step.text} fails a condition",
        "match": f"match: {step.text}",
        "reject": f"no match: {step.text}",
    }
    return "  " * step.depth + texts[step.kind]
