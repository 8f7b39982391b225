"""Rows from Python: turns users' frames into rows of a stream.

before  a pandas frame with columns ts, id, customer
after   the stream `orders (id bigint, customer varchar)`, and an Arrow table of its rows
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from seustream.compiler.catalogue import TIMESTAMP_NAMES, Column, Stream
from seustream.compiler.errors import Problems, SourceText
from seustream.compiler.pattern.tree import Header
from seustream.compiler.xsql import tree
from seustream.compiler.xsql.parse import parse
from seustream.engine.times import Tuples
from seustream.errors import InputError
from seustream.fitting import separator_hint
from seustream.reading import read_timed, take_table
from seustream.suggested import columns_of, type_of
from seustream.tables import TIME_NAME, fold

Rows = Any
"""Arrow tables, batches and readers, pandas and Polars frames, DuckDB relations, anything with the
Arrow stream interface, a dict of columns, a list of dicts, or the path of a file."""


def is_path(rows: Rows) -> bool:
    """Returns whether the rows are the path of a file."""
    return isinstance(rows, (str, Path))


def readable(name: str, rows: Rows) -> Rows:
    """Returns rows that can be read several times; a reader has its rows once."""
    return rows if is_path(rows) else table_of(name, rows)


def tuples_of(name: str, rows: Rows, stream: Stream) -> Tuples:
    """Returns the rows of a known stream; raises `InputError` for rows that do not belong to it.
    Extra columns of a frame are ignored without a warning, since they are common there."""
    if is_path(rows):
        return read_timed(Path(rows), stream, lambda text: None)
    return take_table(name, table_of(name, rows), stream)


def stream_of(name: str, rows: Rows) -> Stream:
    """Derives the stream of some rows from their columns; raises `InputError` for a type that X-SQL
    lacks."""
    table = columns_of(Path(rows)) if is_path(rows) else table_of(name, rows)
    columns = []
    times = [column.name for column in table.schema if fold(column.name) in TIMESTAMP_NAMES]
    if len(times) > 1:
        given = ", ".join(map(repr, times))
        raise InputError(
            f"{name}: column {TIME_NAME} is there {len(times)} times: {given}",
            "leave one out; CREATE STREAM can declare the other as a column",
        )
    for column in table.schema:
        if column.name in times:
            continue
        found = type_of(column.type)
        if found is None:
            raise InputError(
                f"{name}: column {column.name} has type {column.type}, which no stream has",
                "leave it out, or convert it; CREATE STREAM names the columns to take",
            )
        columns.append(Column(column.name.strip(), found))
    _check_names(name, [column.name for column in columns])
    if not times:
        names = table.column_names
        other = separator_hint(names)
        raise InputError(
            f"{name}: no time column, expected one named ts, there are {', '.join(names)}",
            other
            or "integer milliseconds or timestamps; CREATE STREAM … WITH (time = 'column')"
            " names another column",
        )
    return Stream(name, tuple(columns))


def _check_names(stream: str, names: Sequence[str]) -> None:
    spelled: dict[str, list[str]] = {}
    for name in names:
        spelled.setdefault(fold(name), []).append(name)
    for same in spelled.values():
        if len(same) > 1:
            raise InputError(
                f"{stream}: column {same[0]} is there {len(same)} times: {', '.join(map(repr, same))}",
                "rename one; letter case does not tell columns apart",
            )


def declarations(text: str, whole: bool = False) -> set[str]:
    """Returns the streams that a text creates, folded. With `whole`, raises `CompileError` if a
    statement cannot be read."""
    source, problems, found = SourceText(text, "<sql>"), Problems(), set()
    statements = parse(source, problems)
    if whole:
        problems.raise_any(source)
    for statement in statements:
        if isinstance(statement, tree.CreateStream | tree.CreateStreamAs | tree.CreateStreamApas):
            found.add(statement.name.text.lower())
        header = getattr(statement, "header", None)  # of a pattern
        if isinstance(header, Header) and header.verb == "create" and header.name is not None:
            found.add(header.name.text.lower())
    return found


def has_word(text: str, name: str) -> bool:
    """Returns whether a name occurs in a text."""
    return re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE) is not None


def declared(stream: Stream) -> str:
    """Returns the statement that creates a stream."""
    columns = (f"{_quoted(column.name)} {column.type}" for column in stream.columns)
    return f"CREATE STREAM {_quoted(stream.name)} ({', '.join(columns)});"


def table_of(name: str, rows: Rows) -> pa.Table:
    """Converts rows in any of these forms to an Arrow table."""
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    try:
        if isinstance(rows, Mapping):
            return _of_columns(name, rows)
        if hasattr(rows, "__arrow_c_stream__"):
            return pa.table(rows)
        if hasattr(rows, "collect_schema"):  # a lazy frame of Polars
            return pa.table(rows.collect())
        if hasattr(rows, "to_arrow_table"):  # a DuckDB relation
            return pa.table(rows.to_arrow_table())
        if hasattr(rows, "read_all"):
            return pa.table(rows.read_all())
        if hasattr(rows, "iloc") and hasattr(rows, "columns"):
            return pa.Table.from_pandas(rows, preserve_index=False)
        if isinstance(rows, Sequence) and all(isinstance(row, Mapping) for row in rows):
            if not rows:
                raise InputError(
                    f"{name}: an empty list has no columns", "give a table with a schema"
                )
            names = list(dict.fromkeys(key for row in rows for key in row))
            return _of_columns(name, {key: [row.get(key) for row in rows] for key in names})
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name}: {error}") from None
    raise InputError(
        f"{name}: {type(rows).__name__} is no table",
        "an Arrow table, a pandas or Polars frame, a DuckDB relation, a dict of columns, a list of"
        " dicts, or the path of a file",
    )


def _of_columns(name: str, columns: Mapping[Any, Any]) -> pa.Table:
    found = {}
    for key, values in columns.items():
        try:
            found[key] = values if isinstance(values, pa.ChunkedArray) else pa.array(values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{name}: column {key}: {error}") from None
    return pa.table(found)


def _quoted(name: str) -> str:
    """Quotes a name so that X-SQL reads it, whatever it contains."""
    if '"' in name or "\n" in name or not name:
        raise InputError(f"{name!r} cannot name a stream or a column", "rename it in the frame")
    return f'"{name}"'
