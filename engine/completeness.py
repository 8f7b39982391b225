"""Determines from when on the results of a query that begins late are complete.

before  q: … FROM R, S … WINDOW RANGE 20 begins when R and S have passed 100
after   "from 120", the first time at which all that its windows can hold came after 100; "from 100"
        where joins or groups that run keep these windows, which it then shares

before  q: … FROM R, S … WINDOW ROWS 7, RANGE 20
after   "from 7 rows of R on, not before 120", since no time says when they have come

Rows that a query reads and that none of them keeps are gone when it begins. A time is that of a
result's newest row, in milliseconds; it errs on the late side.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from seustream.compiler.apas.compile import Compiled
from seustream.compiler.language.expressions import leaves
from seustream.compiler.logical import program as logical
from seustream.compiler.logical.joins import ChangeLog, JoinTree, members
from seustream.compiler.logical.levels import Node, definitions, nodes, reads
from seustream.compiler.logical.windows import is_plain
from seustream.compiler.pattern import ir
from seustream.compiler.pipeline import Compilation
from seustream.engine.host.stages import keeps_rows
from seustream.engine.stream.operator import EARLIEST
from seustream.hdl.device import Window, WindowKind

BEGINNING = "from the beginning"


def selects(query: logical.Query) -> bool:
    """Returns whether a query gives rows of one stream as they come."""
    return len(query.sources) == 1 and not query.aggregated


def looks_back(node: Node) -> list[tuple[str, Window]] | None:
    """Returns the windows that a query must have seen to be complete, by stream; None where no
    window determines it."""
    match node:
        case ir.MatchQuery(window=int() as size):
            return [(node.stream.name, Window(WindowKind.RANGE, size))]
        case ChangeLog():
            return [(source.stream.name, source.window) for source in node.sources]
        case logical.Query() | JoinTree():
            one = len(node.sources if isinstance(node, logical.Query) else members(node.tree)) == 1
            found = [(source.stream.name, source.window) for source in node.sources]
            if isinstance(node, JoinTree) and node.aggregated and not one:
                # Which rows of a group have no match was decided while they were in their windows.
                return [(name, _longer(w, [other for _, other in found])) for name, w in found]
            return [] if one and not node.aggregated else found
        case logical.PeriodGroups(every=logical.Periodic(by_rows=False) as every):
            return [(node.inputs[0].name, Window(WindowKind.RANGE, every.size))]
        case logical.OverRows() if type(node) is logical.OverRows:
            sizes = [frame.size if frame.by_time else None for frame in _frames(node)]
            if None not in sizes:
                size = max((size for size in sizes if size is not None), default=0)
                return [(node.inputs[0].name, Window(WindowKind.RANGE, size))]
    return None


class _Unknown(Exception):
    """No point can be given; the text says what is known."""


@dataclass(frozen=True, slots=True)
class _Point:
    """From when on something is complete: from a time on, and after what `words` say. There is no
    time where the words imply it."""

    at: int | None
    words: str = ""

    def __str__(self) -> str:
        earliest = f" ({self.at} at the earliest)" if self.at is not None else ""
        return f"{self.words}{earliest}" if self.words else str(self.at)

    @property
    def said(self) -> str:
        if not self.words:
            return f"from {self.at}"
        return f"from {self.words} on" + (f", not before {self.at}" if self.at is not None else "")

    def after(self, time: int) -> _Point:
        words = f"{time} ms after {self.words}" if self.words and time else self.words
        return _Point(None if self.at is None else self.at + time, words)


def _together(points: Iterable[_Point]) -> _Point:
    points = list(points)
    times = [point.at for point in points if point.at is not None]
    words = dict.fromkeys(point.words for point in points if point.words)
    return _Point(max(times, default=None), " and ".join(words))


def complete_from(
    c: Compilation,
    names: Iterable[str],
    past: Mapping[str, int],
    kept: Iterable[logical.Query],
    defined_before: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Returns, by new query, the time from which it is complete. `past` has, for each base stream
    that has brought rows already, the first time of which none has gone by. Joins that are `kept`
    hold their windows. Streams that were defined before go on, complete as was said of them."""
    every, known = definitions(c.program), {node.name: node for node in nodes(c.program)}
    now = max(past.values(), default=EARLIEST)
    missed: dict[str, _Point | str] = {name: _Point(at) for name, at in past.items()}
    for name, said in defined_before.items():
        if (point := _point_of(said)) is None:
            missed[name] = said
        elif past:
            missed[name] = _together([_Point(now), point])
    defined = {name: node for name, node in every.items() if name not in defined_before}
    beginning = _Beginning(every, defined, missed, [*filter(keeps_rows, kept)], now)
    found = {}
    for name in names:
        try:
            point = beginning.of(known[name])
            found[name] = BEGINNING if point is None else point.said
        except _Unknown as unknown:
            found[name] = str(unknown)
    return found


def since(complete: str) -> int | None:
    """Returns the time from which something is complete, or None if that is no time."""
    point = _point_of(complete)
    return None if point is None or point.words else point.at


def _point_of(said: str) -> _Point | None:
    if said == BEGINNING:
        return _Point(EARLIEST)
    given = re.fullmatch(r"from (?:(-?\d+)|(.+) on(?:, not before (-?\d+))?)", said)
    if given is None:
        return None
    at = given[1] or given[3]
    return _Point(None if at is None else int(at), given[2] or "")


_NEVER = "never: "


@dataclass(frozen=True, slots=True)
class _Beginning:
    """Queries begin at `now`; `missed` has what is known of the streams that were there."""

    every: Mapping[str, Node]
    defined: Mapping[str, Node]
    missed: Mapping[str, _Point | str]
    keepers: Iterable[logical.Query]
    now: int

    def of(self, node: Node) -> _Point | None:
        """Returns the point from which a node is complete, or None if it missed nothing."""
        points, said = dict[str, _Point](), list[str]()
        for stream in sorted(reads(node)):
            try:
                point = self._of_stream(stream)
            except _Unknown as unknown:
                said.append(str(unknown))
                point = _Point(None)
            if point is not None:
                points[stream] = point
        if not points:
            return None
        try:
            found = self._behind(node, points)
        except _Unknown as unknown:
            said.append(str(unknown))
        if said:  # what never comes outweighs what a stream says
            raise _Unknown(min(said, key=lambda text: not text.startswith(_NEVER)))
        return found

    def _of_stream(self, stream: str) -> _Point | None:
        if (of := self.defined.get(stream)) is not None:
            return self.of(of)
        missed = self.missed.get(stream)
        if isinstance(missed, str):
            raise _Unknown(missed)
        return missed

    def _behind(self, node: Node, points: Mapping[str, _Point]) -> _Point:
        """Returns the point from which a node is complete that reads streams complete from these."""
        begin = _together(points.values())
        if isinstance(node, Compiled):
            raise _Unknown(f"what began before {begin} is missing")
        wanted = looks_back(node)
        made = {} if isinstance(node, logical.Query) else self.every  # others are given kept rows
        missing = [
            one
            for one in wanted or ()
            if one[0] in points and not _is_kept(*one, self.keepers, made)
        ]
        if wanted is not None and not missing:
            return begin
        if isinstance(node, logical.PeriodGroups | logical.OverRows) or wanted is None:
            return _of_operation(node, begin)
        # Each row of a change log is followed by another once the window has passed.
        return self._full(missing, points).after(int(isinstance(node, ChangeLog)))

    def _full(self, missing: list[tuple[str, Window]], points: Mapping[str, _Point]) -> _Point:
        """Returns the point from which windows have nothing to miss."""
        reach, counts, timed = 0, dict[str, int](), set[str]()
        for name, window in missing:
            if window.kind is WindowKind.UNBOUNDED or not is_plain(window):
                which = f"rows of {_shown(name)} that came before are missing from {window}"
                raise _Unknown(_NEVER + which)
            if window.kind is WindowKind.ROWS:
                counts[name] = max(counts.get(name, 0), window.size or 0)
            else:
                timed.add(name)
                reach = max(reach, window.size or 0)
        others = [point for name, point in points.items() if name not in counts or name in timed]
        begin = _together(others).after(reach)
        if begin.at is not None and any(
            begin.at <= (points[name].at or EARLIEST) for name in counts
        ):
            begin = _Point(None, begin.words)
        return _together([begin, *(self._rows(n, count, points[n]) for n, count in counts.items())])

    def _rows(self, name: str, count: int, begin: _Point) -> _Point:
        """Returns the point at which a stream has had rows since another point."""
        rows = f"{count} row{'s' * (count != 1)} of {_shown(name)}"
        is_later = begin.words or (begin.at is not None and begin.at > self.now)
        return _Point(None, f"{rows} since {begin}" if is_later else rows)


def _shown(stream: str) -> str:
    return stream.partition("#")[0]  # rows of a query in FROM are those of the query around it


def _is_kept(
    stream: str, window: Window, keepers: Iterable[logical.Query], made: Mapping[str, Node]
) -> bool:
    of = made.get(stream)
    if isinstance(of, logical.Query) and selects(of):
        return _is_kept(of.sources[0].stream.name, window, keepers, made)
    return any(
        mine.stream.name == stream and _holds(mine.window, window)
        for keeper in keepers
        for mine in keeper.sources
    )


def _holds(larger: Window, window: Window) -> bool:
    if larger == window or (is_plain(larger) and larger.kind is WindowKind.UNBOUNDED):
        return True
    return larger.kind is window.kind and larger.size >= window.size and is_plain(larger)


def _longer(window: Window, others: Iterable[Window]) -> Window:
    """Returns a window that reaches back as far as the windows of the rows in it."""
    sizes = [other.size for other in others if other.size is not None]
    if window.size is None or not is_plain(window):
        return window
    return Window(window.kind, window.size + max(sizes))


def _of_operation(node: Node, begin: _Point) -> _Point:
    """Returns the point for operations over one stream, and for unions."""
    if isinstance(node, ir.MatchQuery):
        raise _Unknown(f"matches that begin before {begin} are missing")
    if isinstance(node, logical.PeriodGroups):
        every = node.every
        if isinstance(every, logical.Sessions):
            later = begin.after(every.gap)
            raise _Unknown(f"sessions that begin {'' if later.words else 'at '}{later} or later")
        if every.by_rows:
            rows = f"{every.size} rows"
            return _Point(None, f"{rows} since {begin}" if begin.words else rows)
        return _first_window(every, begin)
    if isinstance(node, logical.Distinct):
        raise _Unknown(f"rows that were given before {begin} may come again")
    if isinstance(node, logical.OverRows):
        frames = _frames(node)
        if any(not frame.by_time or frame.size is None for frame in frames):
            raise _Unknown(f"{_NEVER}rows that came before are not counted")
        return begin.after(max((frame.size or 0 for frame in frames), default=0))
    return begin


def _first_window(every: logical.Periodic, begin: _Point) -> _Point:
    """Returns the last instant of the first window that begins after a point."""
    words = f"the first window after {begin.words}" if begin.words else ""
    if begin.at is None:
        return _Point(None, words)
    apart = every.size if every.cumulates else every.slide
    first = math.ceil((begin.at - every.offset) / apart) * apart + every.offset
    return _Point(first + (every.slide if every.cumulates else every.size) - 1, words)


def _frames(node: logical.OverRows) -> list[logical.Frame]:
    parts = [item.expression for item in node.items]
    parts += [node.qualify] if node.qualify is not None else []
    found = [leaf for part in parts for leaf in leaves(part)]
    return [leaf.frame for leaf in found if isinstance(leaf, logical.Over)]
