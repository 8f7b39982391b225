"""The results of a query's rows: the SELECT list of each, or its groups."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.catalogue import TIME_COLUMN
from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import FaultError
from seustream.compiler.logical.program import Query
from seustream.engine.host.complete import project, selected
from seustream.engine.host.errors import EvaluationError
from seustream.engine.host.grouping import Grouping, of_results, of_stream
from seustream.engine.host.join import Side, combination
from seustream.engine.host.rows import Rows, leaves
from seustream.engine.stream.answers import result_schema
from seustream.engine.stream.evaluate import survivors
from seustream.engine.stream.faults import QueryFaults, located
from seustream.engine.stream.merge import timestamps

Ints = npt.NDArray[np.int64]


def alone(
    query: Query, grouping: Grouping | None, rows: pa.Table, before: int, faults: QueryFaults
) -> pa.Table:
    """The results of a query over one stream for new rows of it, `before` which others came."""
    times = timestamps(rows)
    alias = query.sources[0].alias

    def name(row: int) -> str:
        return f"row {before + row + 1} of {alias} at ts {times[row]}"

    with blaming(query, faults):
        with faults.naming(name):
            kept = survivors(
                x.conjuncts(query.where),
                lambda condition, index: leaves(_columns(rows, {condition}, index)),
                rows.num_rows,
                faults,
            )
        ts = times[kept]
        read = {item.expression for item in query.items} | set(query.group_by)
        read |= {query.having} if query.having is not None else set()
        columns = _columns(rows, read, kept)
        with faults.naming(lambda row: name(int(kept[row]))):
            if grouping is None:
                return selected(query, columns, ts, ts, faults)
            if not len(kept):
                return result_schema(query).empty_table()
            arrivals, new = of_stream(query.sources[0].window, ts, before + kept, columns)
            return grouping.add(arrivals, new, faults)


def completed(
    query: Query,
    grouping: Grouping | None,
    sides: list[Side],
    sequences: Ints,
    faults: QueryFaults,
) -> pa.Table:
    """The results of a join, given by sequence numbers."""
    if grouping is None:
        return project(query, sides, sequences, faults)
    if not len(sequences):
        return result_schema(query).empty_table()
    arrivals, new, ordered = of_results(query, sides, sequences)
    with faults.naming(lambda row: combination(sides, ordered[row])):
        return grouping.add(arrivals, new, faults)


@contextlib.contextmanager
def blaming(query: Query, faults: QueryFaults) -> Iterator[None]:
    """Says of the first fault under `strict` whose it is."""
    try:
        yield
    except FaultError as error:
        what = f"stream {query.defines}" if query.defines is not None else f"query {query.name}"
        raise EvaluationError(
            f"{what}: {located(error.place, faults.source)}, {error.row}",
            "exclude such rows with another condition; without strict the value is NULL",
        ) from None


def _columns(rows: pa.Table, read: set[x.Expression], index: Ints) -> Rows:
    """The columns that expressions over one stream read, of some rows."""
    names = {column.name for e in read for column in x.columns(e)}
    where = pa.array(index)
    stored = {name: "ts" if name == TIME_COLUMN.name else name for name in names}
    return {(0, name): rows.column(at).combine_chunks().take(where) for name, at in stored.items()}
