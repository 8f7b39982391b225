"""The catalogue: the streams a query file defines, in the order they were defined."""

from __future__ import annotations

from dataclasses import dataclass

from seustream.compiler.language.types import BIGINT, ERROR, Type

TIMESTAMP_NAMES = ("timestamp", "ts")
"""Names of the implicit time column of every stream, integer milliseconds."""


@dataclass(frozen=True, slots=True)
class WindowEnd:
    """The end of the window that a row is of: the row is before it, by so many milliseconds at most. Of windows that
    follow each other `offset` is a time at which one begins."""

    before: int
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """`ends` says that it holds the end of a window."""

    name: str
    type: Type
    nullable: bool = True
    ends: WindowEnd | None = None


TIME_COLUMN = Column("TimeStamp", BIGINT, nullable=False)


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream's definition. `defined_by` is the query of a derived stream, whose rows, if it has a column te,
    hold until then, for ever where it is NULL. A `table` is all there before the
    streams begin and has no times; `path` is the file it says it is in. `time` is the column that has the time of
    a stream's rows: the rows that come have it in place of one called ts, and a derived stream has it from the
    streams it reads. Times fall back by `out_of_orderness` milliseconds at most;
    one that falls back further is left out, an error if `late` is "error", kept beside the results if it is
    "side". A stream that brings nothing for `idle_timeout` milliseconds holds no other back. An unknown stream,
    already reported, has every column one asks for, of a type that silences what follows."""

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
        """The column of this name; the implicit time column unless one of the same name hides it."""
        folded = name.lower()
        for column in self.columns:
            if column.name.lower() == folded:
                return column
        if self.unknown:
            return Column(name, ERROR)
        return TIME_COLUMN if folded in TIMESTAMP_NAMES and not self.table else None

    def is_time(self, name: str) -> bool:
        """Says whether the column of this name has the time of the stream's rows."""
        if self.time is not None and name.lower() == self.time.lower():
            return True
        return self.column(name) is TIME_COLUMN

    @property
    def called_time(self) -> str:
        """The name by which a query asks for the time of the stream's rows."""
        return self.time or "ts"
