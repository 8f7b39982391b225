"""Reads input files as Arrow tables: CSV with a header, JSON lines, Parquet.

All three take the same steps: find the stream's columns among the file's, convert column by column
(`tables`), and report bad cells together. CSV is in `csvlines`, JSON in `jsonlines`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from seustream.columns import from_column
from seustream.compiler.catalogue import Stream
from seustream.csvlines import opened, read_csv
from seustream.engine.stream.schema import TABLE_TIME, stream_schema, with_time
from seustream.engine.times import UNKNOWN, Tuples
from seustream.errors import InputError
from seustream.fitting import Columns, InputFile, Warn, places_of
from seustream.inputs import PlainFile, plain_files
from seustream.jsonlines import read_json
from seustream.tables import BadCells, fields, time_type


def read(path: Path, stream: Stream, warn: Warn | None = None) -> pa.Table:
    """Reads the file's tuples in the file's order, with the columns of `stream_schema(stream)`."""
    return read_timed(path, stream, warn).rows


def read_timed(path: Path, stream: Stream, warn: Warn | None = None) -> Tuples:
    """Reads the file's tuples, and the type of their time.

    An input of several files is their concatenation. The suffix determines the format. Raises
    `InputError` with all errors; `warn` receives the columns that the stream lacks (by default it
    issues a Python warning).
    """
    with plain_files(path, _READERS) as files:
        found = [_read_file(file, stream, warn or _python_warning) for file in files]
    kinds = [tuples.time for tuples in found if tuples.time != UNKNOWN]
    if len(set(map(str, kinds))) > 1:
        said = ", ".join(f"{file.said}: {t.time}" for file, t in zip(files, found, strict=True))
        raise InputError(f"{path}: the times of its files have several types", said)
    rows = pa.concat_tables([tuples.rows for tuples in found])
    return Tuples(rows, kinds[0] if kinds else UNKNOWN)


def check(file: PlainFile) -> None:
    """Raises `InputError` for what is no file to read, or of no known format."""
    path = file.path
    if path.is_dir():
        raise InputError(f"{path}: is a folder in a folder", f"name it by a pattern: {path}/*")
    if path.suffix.lower() not in _READERS:
        known = ", ".join(_READERS)
        raise InputError(f"{file.said}: unknown format, the known suffixes are {known}")
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: is a pipe or a device, expected a file: it is read twice")
        with path.open("rb"):
            pass
    except FileNotFoundError:
        raise InputError(f"{file.said}: no such file") from None
    except OSError as error:
        raise InputError(f"{file.said}: cannot be read: {error.strerror or error}") from None


def _read_file(file: PlainFile, stream: Stream, warn: Warn) -> Tuples:
    check(file)
    source = InputFile(file.path, file.said, stream, fields(stream), warn)
    if not stream.table and stream.time is None and not source.fields[0].names:
        raise InputError(
            f"{file.said}: stream {stream.name} has columns ts and TimeStamp of its own, "
            "which leaves no name for the time column"
        )
    try:
        columns = _READERS[file.path.suffix.lower()](source)
    except OSError as error:
        raise InputError(f"{file.said}: cannot be read: {error.strerror or error}") from None
    return _tuples(source, columns)


def take_table(name: str, table: pa.Table, stream: Stream) -> Tuples:
    """Returns the tuples of a table; `name` is its name in errors."""
    source = InputFile(Path(name), name, stream, fields(stream), lambda text: None)
    return _tuples(source, _table_columns(source, table))


def _tuples(source: InputFile, columns: Columns) -> Tuples:
    if source.stream.table:  # its rows come before all time
        columns = [pa.chunked_array([np.full(len(columns[0]), TABLE_TIME)]), *columns]
    elif source.stream.time is not None:
        named = pa.table(columns, names=[of.name for of in source.fields])
        time = named.schema.field(source.stream.time).type
        source.time = time if pa.types.is_timestamp(time) else pa.int64()
        columns = list(with_time(source.stream, named).columns)
    return Tuples(pa.table(columns, schema=stream_schema(source.stream)), source.time)


def _python_warning(message: str) -> None:
    warnings.warn(message, stacklevel=2)


# Parquet


def _read_parquet(source: InputFile) -> Columns:
    import pyarrow.parquet as pq  # slow, and of no use to other formats

    if not source.path.stat().st_size:
        raise InputError(f"{source.said}: is empty, expected a Parquet file")
    try:
        # Times of 96 bits, as Spark writes them, reach far beyond those in nanoseconds.
        with pq.ParquetFile(opened(source.path), coerce_int96_timestamp_unit="us") as file:
            names = file.schema_arrow.names
            table = file.read(columns=[names[place] for place in places_of(source, names)])
    except pa.ArrowException as error:
        raise InputError(f"{source.said}: cannot be read as Parquet: {error}") from None
    return _table_columns(source, table)


def _table_columns(source: InputFile, table: pa.Table) -> Columns:
    names = table.schema.names
    chosen = [names[place] for place in places_of(source, names)]
    if not source.stream.table:
        source.time = time_type(table.column(chosen[0]).type)
    columns, messages, cells = [], [], source.no_faults()
    for name, of, faults in zip(chosen, source.fields, cells, strict=True):
        column = from_column(table.column(name), of, faults)
        if column is None:
            found = table.column(name).type
            messages.append(
                f"{source.said}: column {of.name} has type {found}, expected {of.expected_type}"
            )
        else:
            columns.append(column)
    if messages:
        raise InputError(messages)
    source.report(BadCells(), cells, range(1, table.num_rows + 1), " row ")
    return columns


_READERS: dict[str, Callable[[InputFile], Columns]] = {
    ".csv": read_csv,
    ".jsonl": read_json,
    ".ndjson": read_json,
    ".json": read_json,
    ".parquet": _read_parquet,
}

SUFFIXES = tuple(_READERS)
"""Those of the files in a folder that is an input."""
