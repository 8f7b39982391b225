"""What a query makes of its rows: the SELECT list of each, or its groups."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from compiler.catalogue import TIME_COLUMN
from compiler.language import expressions as x
from compiler.plan.logical import Query
from engine.host.complete import project, result_schema, selected
from engine.host.errors import EvaluationError
from engine.host.evaluate import Rows, survivors
from engine.host.grouping import Grouping, of_results, of_stream
from engine.host.software import Side
from engine.temporal.merge import timestamps

Ints = npt.NDArray[np.int64]


def alone(query: Query, grouping: Grouping | None, rows: pa.Table, before: int) -> pa.Table:
    """The results of a query over one stream for new rows of it, `before` which others came."""
    with blaming(query):
        kept = survivors(
            x.conjuncts(query.where),
            lambda condition, index: _columns(rows, {condition}, index),
            rows.num_rows,
        )
        ts = timestamps(rows)[kept]
        read = {item.expression for item in query.items} | set(query.group_by)
        read |= {query.having} if query.having is not None else set()
        columns = _columns(rows, read, kept)
        if grouping is None:
            return selected(query, columns, ts, ts)
        if not len(kept):
            return result_schema(query).empty_table()
        return grouping.add(*of_stream(query.sources[0].window, ts, before + kept, columns))


def completed(
    query: Query, grouping: Grouping | None, sides: list[Side], sequences: Ints
) -> pa.Table:
    """The results of a join, given by sequence numbers."""
    if grouping is None:
        return project(query, sides, sequences)
    if not len(sequences):
        return result_schema(query).empty_table()
    return grouping.add(*of_results(query, sides, sequences))


def as_rows(query: Query, results: pa.Table) -> pa.Table:
    """Results as whoever reads them wants them: those of a definition are rows of the stream it
    defines, at the time of their newest component."""
    if query.defines is None:
        return results
    *columns, _, newest = results.columns
    names = results.column_names[:-2]
    return pa.table([newest, *columns], names=["ts", *names])


@contextlib.contextmanager
def blaming(query: Query) -> Iterator[None]:
    """Says of an expression without a value whose it is."""
    try:
        yield
    except EvaluationError as error:
        hint = "exclude such rows with another condition, which is then applied first"
        what = f"stream {query.defines}" if query.defines is not None else f"query {query.name}"
        raise EvaluationError(f"{what}: {error}", hint) from None


def _columns(rows: pa.Table, read: set[x.Expression], index: Ints) -> Rows:
    """The columns that expressions over one stream read, of some rows."""
    names = {column.name for e in read for column in x.columns(e)}
    where = pa.array(index)
    stored = {name: "ts" if name == TIME_COLUMN.name else name for name in names}
    return {(0, name): rows.column(at).combine_chunks().take(where) for name, at in stored.items()}
