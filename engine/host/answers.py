"""Computes the results of a query's rows: its SELECT list or its groups."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.catalogue import TIME_COLUMN
from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import FaultError, Faults
from seustream.compiler.logical.program import Query, Relation
from seustream.engine.host.complete import in_order, project, rows_of, selected
from seustream.engine.host.errors import WITHOUT, EvaluationError
from seustream.engine.host.grouping import (
    Arrivals,
    Form,
    Grouping,
    Members,
    newest_of,
    of_results,
    of_stream,
)
from seustream.engine.host.join import Side, WindowJoin, combination
from seustream.engine.host.rows import leaves
from seustream.engine.stream.answers import as_rows, columns_read, no_results
from seustream.engine.stream.evaluate import Leaves, survivors
from seustream.engine.stream.faults import QueryFaults, located
from seustream.engine.stream.merge import timestamps
from seustream.engine.stream.numbers import order_of
from seustream.engine.stream.taken import taken

Ints = npt.NDArray[np.int64]


class StreamRows:
    """New rows of one stream; `before` is the number of earlier rows."""

    def __init__(self, rows: pa.Table, before: int, alias: str) -> None:
        self.rows, self.before, self.alias = rows, before, alias
        self._count = int(rows.num_rows)
        self._times: Ints | None = None
        self._whole: dict[str, pa.Array] = {}

    def __len__(self) -> int:
        return self._count

    @property
    def times(self) -> Ints:
        if self._times is None:
            self._times = timestamps(self.rows)
        return self._times

    def name(self, row: int) -> str:
        return f"row {self.before + row + 1} of {self.alias} at ts {self.times[row]}"

    def leaves(self, read: Iterable[x.Expression], index: Ints | None = None) -> Leaves:
        names = dict.fromkeys(of.name for e in read for of in x.columns(e))
        return leaves(self._columns(names, self._some(index)))

    def _some(self, index: Ints | None) -> Ints | None:
        return None if index is None or len(index) == self._count else index

    def _columns(self, names: Iterable[str], some: Ints | None) -> dict[tuple[int, str], pa.Array]:
        return {(0, name): self._column(name, some) for name in names}

    def _column(self, name: str, some: Ints | None) -> pa.Array:
        whole = self._whole.get(name)
        if whole is None:
            column = self.rows.column("ts" if name == TIME_COLUMN.name else name)
            whole = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
            self._whole[name] = whole
        return whole if some is None else taken(whole, some)

    def select(self, query: Query, index: Ints | None, faults: Faults) -> pa.Table:
        some = self._some(index)
        columns = self._columns(columns_read(query).get(0, ()), some)
        ts = self._column("ts", some)
        return selected(query, columns, ts, ts, faults)

    def answer(
        self, query: Query, grouping: Grouping | None, index: Ints, faults: Faults
    ) -> pa.Table:
        with faults.naming(lambda row: self.name(int(index[row]))):
            if not len(index):
                return no_results(query)
            if grouping is None:
                return self.select(query, index, faults)
            return grouping.add(*self._members(grouping.form, index, once=True), faults)

    def arrive(self, form: Form, index: Ints) -> tuple[Arrivals, Members, Ints | None]:
        once = bool((index[1:] > index[:-1]).all())
        order = None if once else order_of(np.asarray(index))
        index = index if order is None else index[order]
        return *self._members(form, index, once), order

    def _members(self, form: Form, index: Ints, once: bool) -> tuple[Arrivals, Members]:
        """Returns some rows, in order, as members. `once`: none of them is there several times."""
        some = self._some(index) if once else index
        times = self.times if some is None else self.times[some]
        window = form.query.sources[0].window
        return of_stream(window, times, self.before + index, self._columns(form.names, some))

    def beginnings(self, rows: Ints) -> Ints:
        return rows


class JoinRows:
    """Results of a join, by sequence numbers, in the order in which they came into being."""

    def __init__(self, sides: list[Side], sequences: Ints) -> None:
        self.sides, self.sequences = sides, sequences

    def __len__(self) -> int:
        return len(self.sequences)

    def name(self, row: int) -> str:
        return combination(self.sides, self.sequences[row])

    def leaves(self, read: Iterable[x.Expression], index: Ints | None = None) -> Leaves:
        return leaves(rows_of(x.columns_by_source(read), self.sides, self._some(index)))

    def _some(self, index: Ints | None) -> Ints:
        return self.sequences if index is None else self.sequences[index]

    def select(self, query: Query, index: Ints | None, faults: Faults) -> pa.Table:
        return in_order(query, self.sides, self._some(index), faults)

    def answer(
        self, query: Query, grouping: Grouping | None, index: Ints, faults: Faults
    ) -> pa.Table:
        return results_of_join(query, grouping, self.sides, self.sequences[index], faults)

    def arrive(self, form: Form, index: Ints) -> tuple[Arrivals, Members, Ints | None]:
        return of_results(form.query, self.sides, self.sequences[index])

    def beginnings(self, rows: Ints) -> Ints:
        newest = newest_of(self.sides, self.sequences)
        begin = np.flatnonzero(newest[1:] != newest[:-1]) + 1
        return np.append(begin, len(newest))[np.searchsorted(begin, rows)]


def results_of_join(
    query: Query,
    grouping: Grouping | None,
    sides: list[Side],
    sequences: Ints,
    faults: Faults,
    ordered: bool = False,
) -> pa.Table:
    """Returns the result rows of a join, given by sequence numbers. `ordered`: they are in the order
    in which they came into being."""
    if grouping is None:
        return (in_order if ordered else project)(query, sides, sequences, faults)
    if not len(sequences):
        return no_results(query)
    arrivals, new, order = of_results(query, sides, sequences)
    arriving = sequences if order is None else sequences[order]
    with faults.naming(lambda row: combination(sides, arriving[row])):
        return grouping.add(arrivals, new, faults)


def selection_of(query: Query, rows: pa.Table) -> pa.Table:
    """Selects from rows of a stream that came before the query began."""
    batch, faults = StreamRows(rows, 0, query.sources[0].alias), Faults()
    return as_rows(query, batch.answer(query, None, _selected(query, batch, faults), faults))


class Blaming:
    """Adds to the first fault under `strict` the query or stream it belongs to."""

    __slots__ = ("_faults", "_query")

    def __init__(self, query: Query, faults: QueryFaults) -> None:
        self._query, self._faults = query, faults

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if not isinstance(error, FaultError):
            return
        where = located(error.place, self._faults.source)
        raise EvaluationError(f"{said_of(self._query)}: {where}, {error.row}", WITHOUT) from None


def said_of(query: Relation) -> str:
    """Returns what messages call a query or the stream that it defines."""
    if query.defines is None:
        return f"query {query.name}"
    name, _, part = query.defines.partition("#")  # a hidden one is part of a user's
    return name if part else f"stream {name}"


def _selected(query: Query, batch: StreamRows, faults: Faults) -> Ints:
    return survivors(
        x.conjuncts(query.where), lambda e, some: batch.leaves([e], some), len(batch), faults
    )


def fill_group_of_stream(
    query: Query, grouping: Grouping, batch: StreamRows, faults: Faults
) -> None:
    """Fills a group over one stream, which begins now, with the rows in its window."""
    batch.answer(query, grouping, _selected(query, batch, faults), faults)


def fill_group(query: Query, grouping: Grouping, sides: list[Side], faults: Faults) -> None:
    """Fills a group over a join, which begins now, with the results in its windows."""
    join = WindowJoin(x.conjuncts(query.where), sides)
    for found in join.results([np.arange(len(side.store)) for side in sides], faults):
        results_of_join(query, grouping, join.sides, found, faults)
