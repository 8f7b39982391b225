"""Samples a piece of a stream for a query: lengths of lists, and how often conditions hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seustream.compiler.language.faults import Faults
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Class
from seustream.engine.pattern.batch import EventBatch
from seustream.engine.pattern.columns import Bools, Ints, Prepared, holds
from seustream.engine.pattern.found import pieces, runs
from seustream.engine.pattern.lists import BatchRows, Bindings, Lists

SAMPLE = 2_000
"""Events of the earlier list whose pairs are sampled for the share that a condition lets
through."""


def sample_step(length: int) -> int:
    """Returns the step width that samples a list of this length."""
    return max(1, length // SAMPLE)


Constants = Sequence[tuple[int, Prepared]]
"""Conditions on the event of one element alone."""


def constants(query: ir.PatternQuery) -> Constants:
    """Returns the conditions of a query that one event decides, each with its element."""
    return [
        (conjunct.refs[0], Prepared(conjunct.expression))
        for conjunct in query.conjuncts
        if conjunct.cls is Class.CONSTANT and len(conjunct.refs) == 1
    ]


_KEPT = 256
_known: dict[int, tuple[ir.PatternQuery, list[str], Bools]] = {}
"""By the id of a query, which is kept alive beside it: the names of types last asked for, and which
of them its elements take."""


def _fits(query: ir.PatternQuery, names: list[str]) -> Bools:
    """Returns for each element which event types it takes; the last column stands for no type."""
    known = _known.get(id(query))
    if known is not None and known[1] is names and known[2].shape[1] == len(names) + 1:
        return known[2]
    if len(_known) >= _KEPT:
        _known.clear()
    some = [element.types for element in query.elements]
    fits = np.array([[not one or name in one for name in names] + [not one] for one in some])
    _known[id(query)] = query, names, fits
    return fits


def fitting(
    query: ir.PatternQuery, batch: EventBatch, of: Constants, faults: Faults | None = None
) -> list[Ints]:
    """Returns, by element, the rows of a batch that have its type and pass its constants."""
    found = [column.nonzero()[0] for column in _fits(query, batch.names)[:, batch.type]]
    for element, condition in of:
        rows = found[element]
        if len(rows):
            found[element] = rows[holds(condition, BatchRows(batch, rows), faults)]
    return found


def share(lists: Lists, conjunct: ir.Conjunct, refs: Sequence[int], limit: int) -> tuple[int, int]:
    """Returns how many pairs of two anchors were sampled, the earlier first, and how many of them a
    condition lets through. `limit` is the number of pairs evaluated together."""
    a, b = refs
    rows = np.arange(0, len(lists.T[a]), sample_step(len(lists.T[a])))
    times = lists.T[a][rows]
    begin = np.searchsorted(lists.T[b], times, "right")
    if lists.query.window is None:
        end = np.searchsorted(lists.T[b], lists.stretch_end(times), "left")
    else:
        end = np.searchsorted(lists.T[b], times + lists.query.window, "right")
    counts, prepared = end - begin, Prepared(conjunct.expression)
    pairs = passed = 0
    for piece in pieces(counts, limit):
        part = counts[piece]
        at = {a: np.repeat(rows[piece], part), b: runs(begin[piece], part)}
        true = holds(prepared, Bindings(lists, len(at[a]), at))
        pairs, passed = pairs + len(true), passed + int(true.sum())
    return pairs, passed
