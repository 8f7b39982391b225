"""Rows from which related queries are answered, and the rows that each query wants."""

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
from seustream.engine.host.grouping import Arrivals, Form, Grouping, Members
from seustream.engine.stream.evaluate import Leaves
from seustream.engine.stream.faults import QueryFaults

Ints = npt.NDArray[np.int64]


class Candidates(Protocol):
    """Rows on which conditions are decided, in order."""

    def __len__(self) -> int: ...

    def leaves(self, read: Iterable[x.Expression], index: Ints | None = None) -> Leaves:
        """Returns the columns that expressions read, for some rows."""

    def name(self, row: int) -> str:
        """Describes a row to users."""

    def answer(
        self, query: Query, grouping: Grouping | None, index: Ints, faults: Faults
    ) -> pa.Table:
        """Returns the results of a query for some rows."""

    def select(self, query: Query, index: Ints | None, faults: Faults) -> pa.Table:
        """Returns the SELECT list of a query without groups over some rows."""

    def arrive(self, form: Form, index: Ints) -> tuple[Arrivals, Members, Ints | None]:
        """Returns some rows as members of groups of this form, with their order of arrival if it is
        different. A row may be there for several queries."""

    def beginnings(self, rows: Ints) -> Ints:
        """Returns for each of these rows the next one, itself included, that has another arrival
        than its predecessor."""


@dataclass(frozen=True, slots=True)
class Member:
    """A query of a family: `interval` covers the values that its constants allow; `rest` are its
    other conditions."""

    query: Query
    interval: Interval | None
    rest: tuple[x.Expression, ...]
    faults: QueryFaults


Share = tuple[Member, Places | Ints]
"""A query and the rows it wants."""
Answers = Iterator[tuple[Member, Callable[[], pa.Table] | pa.Table]]
"""Queries with their results, or with a function that computes them and may fail. It has to be
called before the next one is requested."""
