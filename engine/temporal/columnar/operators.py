"""The operators on columns. Each step gives an operator all insertions up to a time.

    process(inputs, bound) -> output, promise

`inputs` hold, for each input, everything that starts before `bound` and was not given before.
`promise` says that nothing later in the output starts before it. Results and their order are those
of the tuple-at-a-time definition, which the tests contain (`tests/engine/temporal/reference`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from seustream.compiler.apas import network as n
from seustream.compiler.language.faults import Faults
from seustream.engine.stream.schema import arrow_type
from seustream.engine.stream.sorting import lexsort
from seustream.engine.temporal.columnar.batch import IntervalBatch, concatenated
from seustream.engine.temporal.columnar.evaluate import holds, mapped
from seustream.engine.temporal.elements import FOREVER

Ints = npt.NDArray[np.int64]
Output = tuple[IntervalBatch, int]


class ColumnarOperator(Protocol):
    def process(self, inputs: Sequence[IntervalBatch], bound: int, last: bool) -> Output:
        """Takes the next insertions. With `last`, nothing comes any more, and `bound` is past all
        time."""

    def save(self) -> Any:
        """Returns the state it remembers between two calls, as values that `saving` takes."""

    def load(self, saved: Any) -> None:
        """Continues from a saved state."""


class Stateless:
    """Remembers nothing."""

    def save(self) -> Any:
        return None

    def load(self, saved: Any) -> None:
        """Does nothing: no state is saved."""


class ColumnarSetEnd(Stateless):
    """te := ts + size, saturated at the end of time."""

    def __init__(self, node: n.SetEndNode) -> None:
        self.size = node.size

    def process(self, inputs: Sequence[IntervalBatch], bound: int, last: bool) -> Output:
        (x,) = inputs
        if self.size is None:
            te = np.full(len(x), FOREVER)
        else:
            room = FOREVER - self.size
            te = np.where(x.ts > room, FOREVER, np.minimum(x.ts, room) + self.size)
        return IntervalBatch(x.ts, te, x.columns), bound


class ColumnarMerge(Stateless):
    """Merges in the order (ts, te, input, arrival). Numbers may be narrower in an input."""

    def __init__(self, node: n.MergeNode) -> None:
        self.types = [arrow_type(of) for _, of in node.leaves]

    def process(self, inputs: Sequence[IntervalBatch], bound: int, last: bool) -> Output:
        both = concatenated([self._widened(x) for x in inputs])
        return both.take(lexsort((both.te, both.ts))), bound

    def _widened(self, x: IntervalBatch) -> IntervalBatch:
        columns = [
            column if column.type == to else column.cast(to)
            for column, to in zip(x.columns, self.types, strict=True)
        ]
        return IntervalBatch(x.ts, x.te, tuple(columns))


class ColumnarSelect(Stateless):
    def __init__(self, node: n.SelectNode, faults: Faults) -> None:
        self.filter, self.map, self.faults = node.filter, node.map, faults

    def process(self, inputs: Sequence[IntervalBatch], bound: int, last: bool) -> Output:
        (x,) = inputs
        x = x.only(holds(self.filter, x.array, len(x), self.faults))
        return IntervalBatch(
            x.ts, x.te, tuple(mapped(self.map, x.array, len(x), self.faults))
        ), bound
