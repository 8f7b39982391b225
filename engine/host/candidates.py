"""Rows that queries with something in common are answered of, and which of them each query wants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.logical.program import Query
from seustream.engine.host.constants import Interval, Places
from seustream.engine.host.grouping import Arrivals, Grouping, Members
from seustream.engine.stream.evaluate import Leaves
from seustream.engine.stream.faults import QueryFaults

Ints = npt.NDArray[np.int64]


class Candidates(Protocol):
    """Rows that conditions are decided on, in order. `null_decides`: where a condition is NULL, faults of
    others do not count, as a join finds no combinations for it."""

    null_decides: bool

    def __len__(self) -> int: ...

    def leaves(self, read: Iterable[x.Expression], index: Ints | None = None) -> Leaves:
        """The columns that expressions read, of some rows."""

    def name(self, row: int) -> str:
        """A row, for people."""

    def answer(
        self, query: Query, grouping: Grouping | None, index: Ints, faults: Faults
    ) -> pa.Table:
        """The results of a query for some rows."""

    def select(self, query: Query, index: Ints | None, faults: Faults) -> pa.Table:
        """The SELECT list of a query without groups over some rows."""

    def arrive(self, query: Query, index: Ints) -> tuple[Arrivals, Members, Ints | None]:
        """Some rows as members of groups like those of `query`, and the order in which they come, where it is
        another. A row may be there for several queries."""

    def beginnings(self, rows: Ints) -> Ints:
        """The first row from each of some on that comes with another arrival than the row before it."""


@dataclass(frozen=True, slots=True)
class Member:
    """A query of a family: `interval` is what its constants allow, `rest` its other conditions."""

    query: Query
    interval: Interval | None
    rest: tuple[x.Expression, ...]
    faults: QueryFaults


Share = tuple[Member, Places | Ints]
"""The rows that a query wants."""
Answers = Iterator[tuple[Member, Callable[[], pa.Table] | pa.Table]]
"""By query results, or what computes them and may fail. It has to be called before the next is asked for."""
