"""The catalogue: the streams that a query file defines, in the order of their definitions."""

from __future__ import annotations

from dataclasses import dataclass

from seustream.compiler.language.types import BIGINT, ERROR, Type

TIMESTAMP_NAMES = ("timestamp", "ts")
"""Names of every stream's implicit time column, in integer milliseconds."""

NO_STREAM = "is a table, whose rows have no times"
STREAM_OF_TABLE = "SELECT joins a table with a stream; what reads streams can read a CREATE STREAM name AS SELECT ..."
"""The message and the hint where a table is read in the place of a stream."""


@dataclass(frozen=True, slots=True)
class WindowEnd:
    """The end of the window that contains a row. A row lies before this end, by at most this many
    milliseconds. If windows follow one another, `offset` is a time at which one begins."""

    before: int
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a stream; `ends` is set if it holds the end of a window."""

    name: str
    type: Type
    nullable: bool = True
    ends: WindowEnd | None = None


TIME_COLUMN = Column("TimeStamp", BIGINT, nullable=False)


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream's definition.

    `defined_by` is the query of a derived stream. If it has a column te, its rows hold until then,
    or for ever where te is NULL. A `table` is complete before the streams begin and has no times;
    `path` is the file that its definition names. `time` is the column with the time of a stream's
    rows: arriving rows have it in place of one called ts, and a derived stream inherits it from the
    streams it reads.

    Times fall back by at most `out_of_orderness` milliseconds. A row that falls back further is
    dropped, is an error if `late` is "error", or is kept beside the results if it is "side". A
    stream that brings nothing for `idle_timeout` milliseconds holds no other stream back. An
    unknown stream, already reported, has any column asked for, of a type that suppresses further
    errors.
    """

    name: str
    columns: tuple[Column, ...]
    defined_by: str | None = None
    unknown: bool = False
    table: bool = False
    path: str | None = None
    out_of_orderness: int = 0
    late: str = "drop"
    time: str | None = None
    idle_timeout: int | None = None

    def column(self, name: str) -> Column | None:
        """Returns the column of this name; the implicit time column unless a declared one hides it."""
        folded = name.lower()
        for column in self.columns:
            if column.name.lower() == folded:
                return column
        if self.unknown:
            return Column(name, ERROR)
        return TIME_COLUMN if folded in TIMESTAMP_NAMES and not self.table else None

    def is_time(self, name: str) -> bool:
        """Returns whether the column of this name holds the time of the stream's rows."""
        if self.time is not None and name.lower() == self.time.lower():
            return True
        return self.column(name) is TIME_COLUMN

    @property
    def called_time(self) -> str:
        """Returns the name by which a query refers to the time of the stream's rows."""
        return self.time or "ts"
