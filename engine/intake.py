"""Takes rows into a run: with the stream's columns, in its types.

NaN is NULL, as everywhere. Rows of a table come before all time. Rows without a time are left out
of a stream that names its time.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.catalogue import Stream
from seustream.compiler.language.types import TIME_RANGES, Kind
from seustream.engine.host.errors import RowsRefused
from seustream.engine.kernels import native
from seustream.engine.stream.evaluate import real_only
from seustream.engine.stream.ranges import IN_WORDS, first_out_of_range, out_of_range
from seustream.engine.stream.schema import TABLE_TIME, stream_schema, with_time

_TEXTS = (Kind.CHAR, Kind.VARCHAR)
_REALS = (1, 0)
"""No range, which says to the kernel that numbers are reals."""


class _Taken(NamedTuple):
    """A column of the stream: its place in the rows, and the changes it needs."""

    place: int
    name: str
    cast: pa.DataType | None
    real: bool
    whole: bool
    longest: int | None
    kind: Kind | None


class _Seen(NamedTuple):
    """The work on rows of one schema. `same`: they have the stream's schema. `places` are those of
    its columns, None if the rows have just these, in order. `wants` are the conditions under which
    they may stay unchanged, None if a column has to be cast."""

    schema: pa.Schema
    columns: list[_Taken]
    same: bool
    places: list[int] | None
    wants: npt.NDArray[np.int64] | None


class Intake:
    """Takes rows of one stream, in any thread. The work is determined once for all rows of one
    schema, and a kernel checks whether rows may stay unchanged."""

    def __init__(self, stream: Stream) -> None:
        self.stream, self.schema = stream, stream_schema(stream)
        self._lengths = {c.name: c.type.length for c in stream.columns if c.type.kind in _TEXTS}
        self._times = {c.name: c.type.kind for c in stream.columns if c.type.kind in TIME_RANGES}
        self._seen: _Seen | None = None

    def take(self, rows: pa.Table) -> tuple[pa.Table, native.TimesOf | None]:
        """Returns the rows in the stream's form, and their times where these are known by then;
        raises `RowsRefused` for rows that do not fit the stream."""
        if self.stream.time is not None or self.stream.table:
            rows = self._timed(rows)
        seen = self._seen
        if seen is None or not seen.schema.equals(rows.schema):
            seen = self._looked_at(rows)
            self._seen = seen if rows.num_rows else None
        if seen.wants is not None:
            own = rows if seen.places is None else rows.select(seen.places)
            # Through a reader, because a table first looks where the memory of each column is.
            sound = native.sound(own.to_reader().__arrow_c_stream__(), seen.wants)
            if sound is not None:
                capsule, at, times = sound
                return (rows if seen.same else self._renamed(capsule, at)), times
        return self._changed(rows, seen), None

    def _renamed(self, capsule: object, at: int) -> pa.Table:
        """Returns the same cells under the stream's schema, which differs in nullability. It costs
        a third of building a new table from the columns."""
        rows = pa.RecordBatch._import_from_c(at, self.schema)
        return pa.Table.from_batches([rows], self.schema)

    def _looked_at(self, rows: pa.Table) -> _Seen:
        columns = [self._taken(want, rows) for want in self.schema]
        places = [one.place for one in columns]
        wants = [
            (
                number,
                of.bit_width // 8 if one.real or one.kind is not None else 0,
                one.whole,
                -1 if one.longest is None else one.longest,
                *(_REALS if one.kind is None else TIME_RANGES[one.kind]),
            )
            for number, (one, of) in enumerate(zip(columns, self.schema.types, strict=True))
        ]
        return _Seen(
            rows.schema,
            columns,
            rows.schema.equals(self.schema),
            None if places == [*range(len(rows.schema))] else places,
            None if any(one.cast for one in columns) else np.array(wants, np.int64).reshape(-1),
        )

    def _changed(self, rows: pa.Table, seen: _Seen) -> pa.Table:
        """Returns the rows changed column by column: cast, in one piece, without NaN."""
        columns = []
        for taken in seen.columns:
            column = rows.column(taken.place)
            column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
            if taken.cast is not None:
                try:
                    column = column.cast(taken.cast)
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                    where = self._where(taken.name)
                    raise RowsRefused(f"{where}: {error}", f"it takes {taken.cast}") from None
            if taken.real:
                column = real_only(column)
            if taken.kind is not None and out_of_range(column, taken.kind):
                place = first_out_of_range(column, taken.kind)
                where, words = self._where(taken.name, rows, place), IN_WORDS[taken.kind]
                raise RowsRefused(f"{where}: a value is out of range, {words}")
            if taken.whole and column.null_count:
                where = self._where(taken.name, rows, _first(pc.is_null(column)))
                raise RowsRefused(f"{where}: NULL, where none may be")
            if taken.longest is not None:
                lengths = pc.utf8_length(column)
                if (pc.max(lengths).as_py() or 0) > taken.longest:
                    place = _first(pc.greater(lengths, taken.longest))
                    where = self._where(taken.name, rows, place)
                    raise RowsRefused(
                        f"{where}: {lengths[place].as_py():,} characters, at most {taken.longest:,}"
                    )
            columns.append(column)
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _timed(self, rows: pa.Table) -> pa.Table:
        """Returns the rows with their time in the column ts."""
        stream = self.stream
        if stream.time is not None:
            if stream.time.lower() not in map(str.lower, rows.column_names):
                raise RowsRefused(
                    f"stream {stream.name}: no column {stream.time}, which is its time"
                )
            try:
                rows = with_time(stream, rows)
            except pa.ArrowInvalid:
                where, words = self._where(stream.time), IN_WORDS[Kind.TIMESTAMP]
                raise RowsRefused(f"{where}: a value is out of range, {words}") from None
            rows = rows.filter(pc.is_valid(rows.column("ts")))
        if stream.table:
            rows = rows.drop_columns([name for name in rows.column_names if name == "ts"])
            rows = rows.append_column("ts", pa.array(np.full(rows.num_rows, TABLE_TIME)))
        return rows

    def _taken(self, want: pa.Field, rows: pa.Table) -> _Taken:
        place = rows.schema.get_field_index(want.name)
        if place < 0:
            raise RowsRefused(
                f"{self._where(want.name)}: want one, the rows have {', '.join(rows.column_names)}"
            )
        found = rows.schema.field(place).type
        if want.name == "ts" and not pa.types.is_integer(found) and rows.num_rows:
            raise RowsRefused(f"{self._where(want.name)}: {found}, want integers, in milliseconds")
        return _Taken(
            place,
            want.name,
            None if found == want.type else want.type,
            pa.types.is_floating(want.type),
            not want.nullable,
            self._lengths.get(want.name),
            self._times.get(want.name),
        )

    def _where(self, column: str, rows: pa.Table | None = None, place: int = 0) -> str:
        """Returns where something is wrong. Rows of a stream that names its time are not counted:
        those without a time are gone by then."""
        where = f"stream {self.stream.name}, column {column}"
        if rows is None or self.stream.time is not None:
            return where
        return f"{where}, row {place + 1:,} of {rows.num_rows:,}"


def _first(of: pa.Array[Any]) -> int:
    """Returns the place of the first true value."""
    found: int = pc.index(of, True).as_py()
    return found


def accepted(stream: Stream, rows: pa.Table) -> pa.Table:
    """Returns the rows in the stream's form."""
    return _intake(stream).take(rows)[0]


_intake = functools.lru_cache(maxsize=256)(Intake)
