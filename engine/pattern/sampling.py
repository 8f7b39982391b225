"""Samples a piece of a stream for a query: lengths of lists, and how often conditions hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seustream.compiler.language.faults import Faults
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Class
from seustream.engine.pattern.batch import EventBatch
from seustream.engine.pattern.columns import Ints, Prepared, holds
from seustream.engine.pattern.found import runs
from seustream.engine.pattern.lists import BatchRows, Bindings, Lists

SAMPLE = 2_000
"""Events of the earlier list whose pairs are looked at, for the share a condition lets through."""


def sample_step(length: int) -> int:
    """Every how many of them."""
    return max(1, length // SAMPLE)


def pieces(counts: Ints, limit: int) -> list[slice]:
    """Consecutive stretches whose counts add up to no more than the limit, or are of one."""
    ends = np.cumsum(counts)
    found, begin = [], 0
    while begin < len(counts):
        done = int(ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(ends, done + limit, "right")), begin + 1)
        found.append(slice(begin, end))
        begin = end
    return found


def fitting(
    query: ir.PatternQuery, element: int, batch: EventBatch, faults: Faults | None = None
) -> Ints:
    """The rows of a batch that have an element's type and pass its constants."""
    wanted = query.elements[element].types
    if not wanted:
        rows: Ints = np.arange(len(batch))
    else:
        codes = [batch.names.index(kind) for kind in wanted if kind in batch.names]
        true = batch.type == codes[0] if len(codes) == 1 else np.isin(batch.type, codes)
        rows = np.flatnonzero(true)
    for conjunct in query.conjuncts:
        if conjunct.cls is Class.CONSTANT and conjunct.refs == (element,) and len(rows):
            prepared = Prepared(conjunct.expression)
            rows = rows[holds(prepared, BatchRows(batch, rows), faults)]
    return rows


def share(lists: Lists, conjunct: ir.Conjunct, refs: Sequence[int], limit: int) -> tuple[int, int]:
    """Sampled pairs of two anchors, the earlier first, and how many of them a condition lets
    through. `limit` is how many pairs are looked at together."""
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
