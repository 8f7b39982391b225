"""The versioned shared buffer: every event a run has taken, stored once per state, with edges back.

An entry is an event in a state. An edge leads to the event taken before it and carries the version
of the run that took it. So many runs share entries, and each still finds its own way back. Entries
are kept by reference counting (a run that stands on one, an edge that leads to one) and by time: an
entry shared with a live run also keeps the edges of dead runs, which only `prune` removes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from seustream.engine.pattern.errors import InternalError
from seustream.engine.pattern.event import Event
from seustream.engine.pattern.versions import Version, compatible

State = Hashable
"""An automaton's state as the buffer sees it: a key that tells pages apart."""


class BufferEdge(NamedTuple):
    """An edge to the previous entry, or to None where a run began."""

    target: BufferEntry | None
    version: Version


@dataclass(slots=True, eq=False)
class BufferEntry:
    state: State
    event: Event
    edges: list[BufferEdge] = field(default_factory=list)
    refs: int = 0

    def __repr__(self) -> str:
        return f"{self.state}.{self.event!r}"


Page = dict[tuple[int, int], BufferEntry]
Path = list[tuple[State, Event]]


class SharedBuffer:
    """Pages of entries, one page per state. The key of an entry is its event's (ts, seq), so that
    equal rows stay apart."""

    def __init__(self) -> None:
        self.pages: dict[State, Page] = {}

    def __len__(self) -> int:
        return sum(map(len, self.pages.values()))

    def entries(self) -> Iterator[BufferEntry]:
        for page in self.pages.values():
            yield from page.values()

    def alive(self, entry: BufferEntry) -> bool:
        return self.pages.get(entry.state, {}).get(entry.event.order) is entry

    def put(
        self, state: State, event: Event, version: Version, before: BufferEntry | None
    ) -> BufferEntry:
        """Returns the entry of an event in a state, after adding an edge to it."""
        if before is not None and not self.alive(before):
            raise InternalError(f"{before!r} is no longer in the buffer")
        page = self.pages.setdefault(state, {})
        entry = page.get(event.order)
        if entry is None:
            entry = page[event.order] = BufferEntry(state, event)
        entry.edges.append(BufferEdge(before, version))
        if before is not None:
            self.lock(before)
        return entry

    def lock(self, entry: BufferEntry) -> None:
        entry.refs += 1

    def release(self, entry: BufferEntry) -> None:
        """Drops one reference. Removes entries that nothing refers to, and those that only they
        referred to. It does not recurse: a group may be long."""
        stack = [entry]
        while stack:
            one = stack.pop()
            one.refs -= 1
            if one.refs < 0:
                raise InternalError(f"{one!r} was released too often")
            if one.refs == 0:
                self._remove(one)
                stack.extend(edge.target for edge in one.edges if edge.target is not None)
                one.edges = []

    def _remove(self, entry: BufferEntry) -> None:
        page = self.pages.get(entry.state)
        if page is None or page.get(entry.event.order) is not entry:
            return  # already pruned
        del page[entry.event.order]
        if not page:
            del self.pages[entry.state]

    def prune(self, until: int) -> None:
        """Forgets entries up to this time, and all edges that lead to them. No live run may need
        them: runs expire first."""
        gone: set[int] = set()
        for state, page in list(self.pages.items()):
            for key, entry in list(page.items()):
                if key[0] <= until:
                    gone.add(id(entry))
                    del page[key]
            if not page:
                del self.pages[state]
        if not gone:
            return
        for entry in self.entries():
            if any(id(edge.target) in gone for edge in entry.edges):
                entry.edges = [edge for edge in entry.edges if id(edge.target) not in gone]

    def extract(self, entry: BufferEntry, version: Version) -> list[Path]:
        """Returns every way back from an entry that this version may walk, each from its first
        event on."""
        found: list[Path] = []
        stack: list[tuple[BufferEntry | None, Version, _Step | None]] = [(entry, version, None)]
        while stack:
            at, v, path = stack.pop()
            if at is None:
                found.append(_unwound(path))
                continue
            step = _Step(at, path)
            stack.extend((target, w, step) for target, w in reversed(at.edges) if compatible(v, w))
        return found


class _Step(NamedTuple):
    """A way through the buffer; branches share its tail."""

    entry: BufferEntry
    after: _Step | None


def _unwound(step: _Step | None) -> Path:
    path: Path = []
    while step is not None:
        path.append((step.entry.state, step.entry.event))
        step = step.after
    return path
