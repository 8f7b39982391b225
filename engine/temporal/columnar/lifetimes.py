"""Windows of libraries, on columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seustream.compiler.apas import network as n
from seustream.compiler.apas.streams import Lifetimes as Found
from seustream.compiler.language.faults import Faults
from seustream.engine.stream.sorting import lexsort
from seustream.engine.temporal import library
from seustream.engine.temporal.columnar.batch import IntervalBatch, concatenated, empty
from seustream.engine.temporal.columnar.evaluate import Evaluator, for_library

Ints = npt.NDArray[np.int64]


class ColumnarLifetimes:
    """Holds tuples until the window knows their lifetimes, and then until nothing that begins
    earlier can come; gives them out in the order of their new (ts, te)."""

    def __init__(self, node: n.LifetimesNode, faults: Faults) -> None:
        self.node, self.faults = node, faults
        with library.calling(node.shown):
            self.window = node.function.open(**dict(node.constants))
        self.seen = 0
        self.waiting = empty(node.leaves)
        self.waiting_numbers = np.empty(0, np.int64)
        self.ready = empty(node.leaves)
        self.ready_numbers = np.empty(0, np.int64)

    def process(
        self, inputs: Sequence[IntervalBatch], bound: int, last: bool
    ) -> tuple[IntervalBatch, int]:
        (x,) = inputs
        if len(x):
            columns = [
                Evaluator(each.frame, x.array, len(x), self.faults).value(each.conditions[0])
                for each in self.node.arguments
            ]
            self.waiting = concatenated([self.waiting, x])
            fresh = np.arange(self.seen, self.seen + len(x))
            self.waiting_numbers = np.concatenate((self.waiting_numbers, fresh))
            with library.calling(self.node.shown):
                found = self.window.push(
                    self.seen, x.ts, x.te, *for_library(self.node.shown, columns)
                )
            self.seen += len(x)
            self._decide(found)
        with library.calling(self.node.shown):
            found = self.window.advance(bound)
        self._decide(found)
        if last:
            with library.calling(self.node.shown):
                found = self.window.finish()
            self._decide(found)
            if len(self.waiting):
                raise library.LibraryFailed(
                    f"{self.node.shown}: {len(self.waiting)} tuples have no lifetime at the end"
                )
        floor = min(bound, int(self.waiting.ts[0])) if len(self.waiting) else bound
        return self._flushed(floor, last), floor

    def _decide(self, found: Found) -> None:
        shown = self.node.shown
        which, ts, te = library.lifetimes(shown, found)
        if not len(which):
            return
        at = np.minimum(
            np.searchsorted(self.waiting_numbers, which), max(len(self.waiting_numbers) - 1, 0)
        )
        known = len(self.waiting_numbers) and (self.waiting_numbers[at] == which).all()
        if not known or len(np.unique(which)) < len(which):
            raise library.LibraryFailed(
                f"{shown}: a tuple gets a lifetime that is unknown or has one already"
            )
        was = self.waiting.ts[at]
        wrong = np.flatnonzero((ts < was) | (te < ts))
        if len(wrong):
            first = int(wrong[0])
            message = library.wrong_lifetime(shown, *(int(c[first]) for c in (was, ts, te)))
            raise library.LibraryFailed(message)
        decided = self.waiting.take(at)
        self.ready = concatenated([self.ready, IntervalBatch(ts, te, decided.columns)])
        self.ready_numbers = np.concatenate((self.ready_numbers, which))
        left = np.ones(len(self.waiting), np.bool_)
        left[at] = False
        rest = np.flatnonzero(left)
        self.waiting, self.waiting_numbers = self.waiting.take(rest), self.waiting_numbers[rest]

    def _flushed(self, floor: int, last: bool) -> IntervalBatch:
        out = np.ones(len(self.ready), np.bool_) if last else self.ready.ts < floor
        gone, stay = np.flatnonzero(out), np.flatnonzero(~out)
        order = lexsort((self.ready_numbers[gone], self.ready.te[gone], self.ready.ts[gone]))
        batch = self.ready.take(gone[order])
        self.ready, self.ready_numbers = self.ready.take(stay), self.ready_numbers[stay]
        return batch

    def save(self) -> dict[str, Any]:
        with library.calling(self.node.shown):
            window = self.window.save()
        return {
            "window": window,
            "seen": self.seen,
            "waiting": (self.waiting.save(), self.waiting_numbers),
            "ready": (self.ready.save(), self.ready_numbers),
        }

    def load(self, saved: dict[str, Any]) -> None:
        self.seen = saved["seen"]
        waiting, self.waiting_numbers = saved["waiting"]
        ready, self.ready_numbers = saved["ready"]
        self.waiting, self.ready = IntervalBatch.load(waiting), IntervalBatch.load(ready)
        with library.calling(self.node.shown):
            self.window.load(saved["window"])
