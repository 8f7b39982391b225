"""Reads input files as Arrow tables: CSV with a header, JSON lines, Parquet.

All three take the same steps: find the stream's columns among the file's, convert column by column
(`tables`), and report bad cells together. Good files are read by Arrow alone; a CSV file is read a
second time only if it has errors, to report their lines.
"""

from __future__ import annotations

import csv
import sys
import warnings
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from seustream.columns import from_column
from seustream.compiler.catalogue import Stream
from seustream.engine.stream.schema import TABLE_TIME, stream_schema, with_time
from seustream.engine.times import UNKNOWN, Tuples
from seustream.errors import InputError
from seustream.fitting import Columns, InputFile, Warn, places_of
from seustream.inputs import PlainFile, plain_files
from seustream.jsonlines import read_json
from seustream.tables import BadCells, fields, from_text, time_type


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


# CSV


def _read_csv(source: InputFile) -> Columns:
    header, skip = _csv_header(source)
    places = places_of(source, header)
    try:
        text = _csv_text(source.path, len(header), skip, places)
    except pa.ArrowInvalid:
        text = None
    if text is not None:
        cells = source.no_faults()
        columns = _csv_columns(source, text, cells)
        if not any(faults.total for faults in cells):
            return columns
    return _diagnose_csv(source, len(header), skip, places)


def _csv_columns(source: InputFile, text: pa.Table, cells: Sequence[BadCells]) -> Columns:
    if text.num_rows and source.fields[0].is_time:
        source.time = time_type(pa.string(), text.column(0)[0].as_py())
    return [
        from_text(column, of, faults)
        for column, of, faults in zip(text.columns, source.fields, cells, strict=True)
    ]


def opened(path: Path) -> Path | pa.BufferReader:
    """Returns what Arrow reads for a file. It takes no name that is not UTF-8."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return _content(path)
    return path


def _ended(path: Path, width: int) -> pa.BufferReader:
    """Returns a CSV file with one more row. If that row does not come out as it went in, a quote
    before it was never closed; Arrow then takes the rest of the file for one cell without an error.
    """
    return _content(path, b"\n" + b",".join([_LAST] * width) + b"\n")


def _content(path: Path, more: bytes = b"") -> pa.BufferReader:
    """Returns the bytes of a file, and more behind them.

    The bytes are Arrow's own. Its threads may hold what they read a moment longer than the call
    takes. A thread that releases a Python object while the interpreter exits is ended with it,
    which aborts the process.
    """
    with path.open("rb") as file:
        size = path.stat().st_size
        whole = pa.allocate_buffer(size + len(more))
        with memoryview(whole).cast("B") as view:
            end = file.readinto(view[:size])
            view[end : end + len(more)] = more
    return pa.BufferReader(whole.slice(0, end + len(more)))


_LAST = b"\x1e"


def _csv_text(
    path: Path,
    width: int,
    skip: int,
    places: Sequence[int],
    block: int | None = None,
    bad_row: Callable[[pa_csv.InvalidRow], str] | None = None,
) -> pa.Table | None:
    """Reads the cells of some columns as text, an empty unquoted one as NULL; returns None if a
    quote is never closed."""
    names = [str(place) for place in range(width)]
    with _ended(path, width) as file:
        table = pa_csv.read_csv(
            file,
            read_options=pa_csv.ReadOptions(
                column_names=names, skip_rows=skip, block_size=block, use_threads=bad_row is None
            ),
            parse_options=pa_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=bad_row),
            convert_options=pa_csv.ConvertOptions(
                include_columns=[names[place] for place in places],
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    rows = table.num_rows - 1
    if rows < 0 or any(column[rows].as_py() != _LAST.decode() for column in table.columns):
        return None
    return table.slice(0, rows)


def _csv_header(source: InputFile) -> tuple[list[str], int]:
    """Returns the names of the columns, and the number of lines up to the end of the header."""
    for _, last, row in _csv_rows(source.path):
        if any("\ufffd" in name for name in row):
            _check_utf8(source)
        return row, last
    raise InputError(f"{source.said}: is empty, expected a header with the names of the columns")


def csv_names(path: Path) -> list[str]:
    """Returns the names in the header of a CSV file."""
    return next((row for _, _, row in _csv_rows(path)), [])


def _csv_rows(path: Path) -> Iterator[tuple[int, int, list[str]]]:
    """Yields rows by Python's reader, which tracks lines: first line, last line, cells."""
    with (
        path.open(encoding="utf-8-sig", errors="replace", newline="") as file,
        _any_cell_length(),
    ):
        reader, first = csv.reader(file), 1
        for row in reader:
            if row:
                yield first, reader.line_num, row
            first = reader.line_num + 1


@contextmanager
def _any_cell_length() -> Iterator[None]:
    limit = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def _check_utf8(source: InputFile) -> None:
    data = source.path.read_bytes()
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = len((data[: error.start] + b".").splitlines())
        raise InputError(
            f"{source.said}:{line}: not UTF-8 text, at byte {error.start} of the file"
        ) from None


def _diagnose_csv(source: InputFile, width: int, skip: int, places: Sequence[int]) -> Columns:
    """Reads again a file that Arrow refused or that has bad cells, and reports every line with an
    error.

    Rows of a wrong width are left out, so that the cells of the others are checked too, and the
    whole file is one block. If a row longer than a block was the only problem, the columns come out
    valid.
    """
    _check_utf8(source)
    lines, first = array("q"), 0
    ragged: dict[int, int] = {}
    for first, _, row in islice(_csv_rows(source.path), 1, None):
        if len(row) == width:
            lines.append(first)
        else:
            ragged[first] = len(row)
    block = source.path.stat().st_size + (len(_LAST) + 1) * (width + 1)
    rows, cells = BadCells(), source.no_faults()
    try:
        text = _csv_text(source.path, width, skip, places, block, lambda row: "skip")
    except pa.ArrowInvalid as error:
        raise InputError(f"{source.said}: {error}") from None
    if text is None:
        ragged.pop(first, None)
    for line, found in ragged.items():
        rows.add(line, f"{found} {'cell' if found == 1 else 'cells'}, the header has {width}")
    if text is None:
        rows.add(first, "a quote is opened in this row and not closed before the end of the file")
        source.report(rows, cells, lines)
    assert text is not None
    columns = _csv_columns(source, text, cells)
    if text.num_rows != len(lines):  # the two readers differ on what a row is
        lines = array("q", range(1, text.num_rows + 1))
    source.report(rows, cells, lines)
    return columns


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
    ".csv": _read_csv,
    ".jsonl": read_json,
    ".ndjson": read_json,
    ".json": read_json,
    ".parquet": _read_parquet,
}

SUFFIXES = tuple(_READERS)
"""Those of the files in a folder that is an input."""
