"""Determines from when on the results of a query that begins late are complete.

before  q: … FROM R, S … WINDOW RANGE 20 begins when R and S have passed 100
after   "from 120", the first time at which all that its windows can hold came after 100; "from 100"
        where joins or groups that run keep these windows, which it then shares

Rows that a query reads and that none of them keeps are gone when it begins. A time is that of a
result's newest row, in milliseconds; it errs on the late side.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
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
    """No time can be given; the text says what is known."""


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
    defined = {name: node for name, node in every.items() if name not in defined_before}
    keepers = [query for query in kept if keeps_rows(query)]
    now = max(past.values(), default=EARLIEST)
    unknown = {}
    for name, said in defined_before.items():
        if (begins := since(said)) is None:
            unknown[name] = said
        elif past:
            past = {**past, name: max(now, begins)}
    found = {}
    for name in names:
        try:
            at = _of(known[name], defined, past, keepers, every, unknown)
            found[name] = BEGINNING if at is None else f"from {at}"
        except _Unknown as said:
            found[name] = str(said)
    return found


def since(complete: str) -> int | None:
    """Returns the time from which something is complete, or None if that is no time."""
    if complete == BEGINNING:
        return EARLIEST
    given = re.fullmatch(r"from (-?\d+)", complete)
    return None if given is None else int(given[1])


def _of(
    node: Node,
    defined: Mapping[str, Node],
    past: Mapping[str, int],
    keepers: Iterable[logical.Query],
    every: Mapping[str, Node],
    unknown: Mapping[str, str],
) -> int | None:
    """Returns the time from which a node is complete, or None if it missed nothing."""
    begins: dict[str, int | None] = {}
    for stream in reads(node):
        if stream in unknown:
            raise _Unknown(unknown[stream])
        of = defined.get(stream)
        if of is None:
            begins[stream] = past.get(stream)
        else:
            begins[stream] = _of(of, defined, past, keepers, every, unknown)
    missed = {name: at for name, at in begins.items() if at is not None}
    if not missed:
        return None
    begin = max(missed.values())
    if isinstance(node, Compiled):
        raise _Unknown(f"what began before {begin} is missing")
    wanted = looks_back(node)
    made = {} if isinstance(node, logical.Query) else every  # others are given kept rows
    missing = [
        one for one in wanted or () if one[0] in missed and not _is_kept(*one, keepers, made)
    ]
    if wanted is not None and not missing:
        return begin
    if isinstance(node, logical.PeriodGroups | logical.OverRows) or wanted is None:
        return _of_operation(node, begin)
    reach = max(_reach(name, window) for name, window in missing)
    # Each row of a change log is followed by another once the window has passed.
    return begin + reach + isinstance(node, ChangeLog)


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


def _reach(name: str, window: Window) -> int:
    """Returns how many milliseconds a window reaches back."""
    name = name.partition("#")[0]  # rows of a query in FROM are those of the query around it
    if window.kind is WindowKind.ROWS and is_plain(window):
        raise _Unknown(f"from {window.size} rows of {name} on")
    if window.kind is WindowKind.UNBOUNDED or not is_plain(window):
        raise _Unknown(f"never: rows of {name} that came before are missing from {window}")
    return window.size if window.kind is WindowKind.RANGE else 0


def _of_operation(node: Node, begin: int) -> int:
    """Returns the time for operations over one stream, and for unions."""
    if isinstance(node, ir.MatchQuery):
        raise _Unknown(f"matches that begin before {begin} are missing")
    if isinstance(node, logical.PeriodGroups):
        every = node.every
        if isinstance(every, logical.Sessions):
            raise _Unknown(f"sessions that begin at {begin + every.gap} or later")
        if every.by_rows:
            raise _Unknown(f"from {every.size} rows on")
        apart = every.size if every.cumulates else every.slide
        first = math.ceil((begin - every.offset) / apart) * apart + every.offset
        return first + (every.slide if every.cumulates else every.size) - 1
    if isinstance(node, logical.Distinct):
        raise _Unknown(f"rows that were given before {begin} may come again")
    if isinstance(node, logical.OverRows):
        frames = _frames(node)
        if any(not frame.by_time or frame.size is None for frame in frames):
            raise _Unknown(f"never: rows before {begin} are not counted")
        return begin + max((frame.size or 0 for frame in frames), default=0)
    return begin


def _frames(node: logical.OverRows) -> list[logical.Frame]:
    parts = [item.expression for item in node.items]
    parts += [node.qualify] if node.qualify is not None else []
    found = [leaf for part in parts for leaf in leaves(part)]
    return [leaf.frame for leaf in found if isinstance(leaf, logical.Over)]
