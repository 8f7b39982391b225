"""From when on the results of a query that begins late are complete.

before  q: … FROM R, S … WINDOW RANGE 20 begins when R and S have passed 100
after   "from 120", the first time at which all that its windows can hold came after 100; "from 100"
        where a join that runs keeps these windows, which it then shares

What a query reads that no join keeps is gone when it begins. A time is that of a result's newest row, in
milliseconds; it errs on the late side.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

from seustream.compiler.apas.compile import Compiled
from seustream.compiler.language.expressions import leaves
from seustream.compiler.logical import program as logical
from seustream.compiler.logical.joins import JoinTree, members
from seustream.compiler.logical.levels import Node, definitions, nodes, reads
from seustream.compiler.logical.windows import is_plain
from seustream.compiler.pattern import ir
from seustream.compiler.pipeline import Compilation
from seustream.hdl.device import Window, WindowKind

BEGINNING = "from the beginning"


class _Unknown(Exception):
    """No time can be said; the text says what can."""


def complete_from(
    c: Compilation,
    names: Iterable[str],
    past: Mapping[str, int],
    kept: Iterable[logical.Query],
    defined_before: Collection[str] = (),
) -> dict[str, str]:
    """By new query, from when on it is complete. `past` has for each base stream that has brought rows
    before the time that it has passed; joins that are `kept` hold their windows, and streams that were
    defined before go on."""
    defined, known = definitions(c.program), {node.name: node for node in nodes(c.program)}
    defined = {name: node for name, node in defined.items() if name not in defined_before}
    keepers = [query for query in kept if len(query.sources) > 1]
    latest = max(past.values(), default=None)
    past = {**past, **{name: latest for name in defined_before if latest is not None}}
    found = {}
    for name in names:
        try:
            at = _of(known[name], defined, past, keepers)
            found[name] = BEGINNING if at is None else f"from {at}"
        except _Unknown as said:
            found[name] = str(said)
    return found


def _of(
    node: Node,
    defined: Mapping[str, Node],
    past: Mapping[str, int],
    keepers: Iterable[logical.Query],
) -> int | None:
    """None: nothing was missed."""
    begins: dict[str, int | None] = {}
    for stream in reads(node):
        of = defined.get(stream)
        begins[stream] = past.get(stream) if of is None else _of(of, defined, past, keepers)
    missed = {name: at for name, at in begins.items() if at is not None}
    if not missed:
        return None
    begin = max(missed.values())
    if isinstance(node, Compiled):
        raise _Unknown(f"what began before {begin} is missing")
    if isinstance(node, ir.MatchQuery):
        if node.window is None:
            raise _Unknown(f"matches that begin before {begin} are missing")
        return begin + node.window
    if isinstance(node, logical.Query | JoinTree):
        if isinstance(node, JoinTree) and len(members(node.tree)) == 1:
            return begin
        looks_back = node.aggregated or len(node.sources) > 1
        wanted = [s for s in node.sources if looks_back and s.stream.name in missed]
        missing = [
            (source.stream.name, source.window)
            for source in wanted
            if isinstance(node, JoinTree) or not _is_kept(source, keepers)
        ]
        return begin + max((_reach(name, window) for name, window in missing), default=0)
    return _of_operation(node, begin)


def _is_kept(source: logical.Source, keepers: Iterable[logical.Query]) -> bool:
    return any(
        mine.stream.name == source.stream.name and _holds(mine.window, source.window)
        for keeper in keepers
        for mine in keeper.sources
    )


def _holds(larger: Window, window: Window) -> bool:
    if larger == window or (is_plain(larger) and larger.kind is WindowKind.UNBOUNDED):
        return True
    return larger.kind is window.kind and larger.size >= window.size and is_plain(larger)


def _reach(name: str, window: Window) -> int:
    """Milliseconds that a window reaches back."""
    if window.kind is WindowKind.ROWS and is_plain(window):
        raise _Unknown(f"from {window.size} rows of {name} on")
    if window.kind is WindowKind.UNBOUNDED or not is_plain(window):
        raise _Unknown(f"never: what {name} brought before is missing from {window}")
    return window.size if window.kind is WindowKind.RANGE else 0


def _of_operation(node: logical.Operation, begin: int) -> int:
    """Operations over one stream, and unions."""
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
        frames = [
            leaf.frame
            for item in node.items
            for leaf in leaves(item.expression)
            if isinstance(leaf, logical.Over)
        ]
        if any(not frame.by_time or frame.size is None for frame in frames):
            raise _Unknown(f"never: rows before {begin} are not counted")
        return begin + max((frame.size or 0 for frame in frames), default=0)
    return begin
