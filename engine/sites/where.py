"""X-SQL conditions that are no equalities, as residual conditions of a join across sites.

before  R.a = S.d AND (R.b < S.e OR S.e IS NULL) AND R.b > 3
after   R.a = S.d joins; R.b < S.e OR … is looked at where R and S meet; R.b > 3 at the source

Rows carry the columns such conditions read. Their payload is their place in their table and these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from compiler.catalogue import TIME_COLUMN
from compiler.language import expressions as x
from engine.host.rows import leaves
from engine.sites.model import Join
from engine.stream.evaluate import holds
from engine.stream.schema import arrow_type


@dataclass(frozen=True, slots=True)
class Where:
    """A condition over streams. `columns` says, for each of `streams`, what its rows carry after
    their place."""

    streams: tuple[int, ...]
    condition: x.Expression
    columns: tuple[tuple[str, ...], ...]

    def among(self, payloads: Sequence[tuple[object, ...]]) -> Sequence[bool]:
        columns = {}
        for column in x.columns(self.condition):
            at = self.streams.index(column.source)
            place = 1 + self.columns[at].index(column.name)
            values = [payload[at][place] for payload in payloads]  # type: ignore[index]  # of that place: a tuple
            columns[column.source, column.name] = pa.array(values, _type(column))
        found: list[bool] = holds(self.condition, leaves(columns), len(payloads)).tolist()
        return found


def _type(column: x.Column) -> pa.DataType:
    return pa.int64() if column.name == TIME_COLUMN.name else arrow_type(column.type)


def _in_table(name: str) -> str:
    return "ts" if name == TIME_COLUMN.name else name


def at_source(join: Join, stream: int, rows: pa.Table) -> list[int]:
    """The places of the rows that the conditions over this stream alone leave."""
    kept = np.ones(rows.num_rows, np.bool_)
    for residual in join.residuals:
        if isinstance(residual, Where) and residual.streams == (stream,):
            columns = {
                (stream, column.name): rows.column(_in_table(column.name)).combine_chunks()
                for column in x.columns(residual.condition)
            }
            kept &= holds(residual.condition, leaves(columns), rows.num_rows)
    return [int(place) for place in np.flatnonzero(kept)]


def carried(join: Join, stream: int, rows: pa.Table) -> list[tuple[object, ...]]:
    """Each row's payload."""
    columns = [rows.column(_in_table(name)).to_pylist() for name in join.streams[stream].carried]
    return list(zip(range(rows.num_rows), *columns, strict=True))
