"""Results of groups: their keys, their aggregates, and expressions over these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.language.types import BIGINT
from seustream.engine.host.aggregates import Aggregates, Turns
from seustream.engine.host.grouping import OLDEST, arguments_of
from seustream.engine.host.keys import KeyNumbers
from seustream.engine.stream.schema import arrow_type
from seustream.engine.stream.taken import taken

Ints = npt.NDArray[np.int64]
Rows = dict[tuple[int, str], pa.Array]

SINCE = -1, "since"
"""The oldest time of each group, among its columns."""


class Measures:
    """The keys and aggregates that expressions `parts` read. `read` are the expressions over rows
    from which they are computed: the keys, then the arguments of the aggregates."""

    def __init__(self, keys: Sequence[x.Expression], parts: Iterable[x.Expression]) -> None:
        self.keys = tuple(keys)
        found = dict.fromkeys(e for part in parts for e in x.walk(part))
        self.aggregates = [e for e in found if isinstance(e, x.AggregateCall)]
        arguments = [arguments_of(e) for e in self.aggregates]
        own = list(dict.fromkeys(argument for some in arguments for argument in some))
        self.read = (*self.keys, *own)
        self.numbers = [tuple(map(own.index, some)) for some in arguments]

    @property
    def fields(self) -> list[tuple[str, pa.DataType]]:
        """Names and types of columns that hold the values of `read`."""
        return [(f"c{number}", arrow_type(e.type)) for number, e in enumerate(self.read)]

    @property
    def can_fold(self) -> bool:
        """Returns whether groups need few of their rows, if none leaves."""
        return self.begun(ordered=True).can_fold

    def begun(self, ordered: bool) -> Aggregates:
        """Makes the aggregates, of no rows."""
        types = [e.type for e in self.read[len(self.keys) :]]
        return Aggregates(self.aggregates, self.numbers, types, ordered)

    def over(self, e: x.Expression) -> x.Expression:
        """Rewrites an expression to the columns that `of_points` returns."""
        if e in self.keys:
            return x.GroupValue(0, f"g{self.keys.index(e)}", e.type, True, "", holds=e)
        if isinstance(e, x.AggregateCall):
            return x.GroupValue(0, f"a{self.aggregates.index(e)}", e.type, True, "", holds=e)
        return x.rebuild(e, self.over)

    def groups(self, values: Sequence[pa.Array], count: int, whose: Ints | None = None) -> Ints:
        """Returns a number for the group of each row; NULL is a key like any other. With several
        queries, each group belongs to one."""
        types = [arrow_type(e.type) for e in self.keys]
        columns = list(values[: len(self.keys)])
        if whose is not None:
            types.insert(0, pa.int64())
            columns.insert(0, pa.array(whose))
        return KeyNumbers(types).numbers(columns, count)

    def of_points(
        self,
        values: Sequence[pa.Array],
        first: Ints,
        group: Ints,
        turns: Turns,
        faults: Faults,
        oldest: pa.Array | None = None,
    ) -> Rows:
        """Returns keys and aggregates at each point, and with the `oldest` times of rows the oldest
        of its group, as `SINCE`. `values` are those of `read`, in rows side by side by group;
        `first` has a row of each point's group."""
        rows: Rows = {}
        for number in range(len(self.keys)):
            rows[0, f"g{number}"] = taken(values[number], first)
        own = list(values[len(self.keys) :])
        wanted, numbers = list(self.aggregates), list(self.numbers)
        types = [e.type for e in self.read[len(self.keys) :]]
        if oldest is not None:
            wanted.append(OLDEST)
            numbers.append((len(own),))
            types.append(BIGINT)
            own.append(oldest)
        aggregates = Aggregates(wanted, numbers, types, ordered=True)
        aggregates.add(own, group)
        found = aggregates.at(turns, faults)
        if oldest is not None:
            rows[SINCE] = found.pop()
        rows |= {(0, f"a{number}"): one for number, one in enumerate(found)}
        return rows
