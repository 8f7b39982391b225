"""Input files as Arrow tables: CSV with a header, JSON lines, Parquet.

All three go the same way: find the stream's columns among the file's, convert column by
column (`tables`), and report bad cells together. Good files are read by Arrow alone; only
when something is wrong is a CSV file read a second time, to name lines.
"""

from __future__ import annotations

import csv
import json
import sys
import warnings
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import NoneType
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from seustream.compiler.catalogue import Stream
from seustream.compiler.errors import nearest
from seustream.engine.stream.schema import TABLE_TIME, arrow_type, stream_schema
from seustream.errors import InputError
from seustream.inputs import PlainFile, plain_files
from seustream.tables import (
    FAULTS_LISTED,
    BadCells,
    Field,
    Wrong,
    fields,
    fold,
    from_cells,
    from_column,
    from_text,
    time_type,
)

Warn = Callable[[str], None]
_Columns = list["pa.ChunkedArray[Any]"]

_ROWS_AT_ONCE = 1 << 12


@dataclass(frozen=True, slots=True)
class Tuples:
    """A file's tuples, and the type its times have there."""

    rows: pa.Table
    time: pa.DataType


def read(path: Path, stream: Stream, warn: Warn | None = None) -> pa.Table:
    """The file's tuples in the file's order, with the columns of `stream_schema(stream)`."""
    return read_timed(path, stream, warn).rows


def read_timed(path: Path, stream: Stream, warn: Warn | None = None) -> Tuples:
    """The file's tuples, and the type of their time.

    An input of several files is their tuples one after the other. The suffix says the format.
    Raises `InputError` with everything found wrong; `warn` gets the columns the stream does not
    have (by default it is a Python warning).
    """
    with plain_files(path, _READERS) as files:
        found = [_read_file(file, stream, warn or _python_warning) for file in files]
    if len({str(tuples.time) for tuples in found}) > 1:
        kinds = ", ".join(f"{file.said}: {t.time}" for file, t in zip(files, found, strict=True))
        raise InputError(f"{path}: the times of its files have several types", kinds)
    return Tuples(pa.concat_tables([tuples.rows for tuples in found]), found[0].time)


def _read_file(file: PlainFile, stream: Stream, warn: Warn) -> Tuples:
    path = file.path
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path}: is a pipe or a device, expected a file: it is read twice")
        with path.open("rb"):
            pass
        reader = _READERS.get(path.suffix.lower())
        if reader is None:
            known = ", ".join(_READERS)
            raise InputError(f"{file.said}: unknown format, the known suffixes are {known}")
        source = _Source(path, file.said, stream, fields(stream), warn)
        if not source.fields[0].names and not stream.table:
            raise InputError(
                f"{file.said}: stream {stream.name} has columns ts and TimeStamp of its own, "
                "which leaves no name for the time column"
            )
        columns = reader(source)
    except FileNotFoundError:
        raise InputError(f"{file.said}: no such file") from None
    except OSError as error:
        raise InputError(f"{file.said}: cannot be read: {error.strerror or error}") from None
    return _tuples(source, columns)


def take_table(name: str, table: pa.Table, stream: Stream) -> Tuples:
    """The tuples of a table; `name` is what errors call it."""
    source = _Source(Path(name), name, stream, fields(stream), lambda text: None)
    return _tuples(source, _table_columns(source, table))


def _tuples(source: _Source, columns: _Columns) -> Tuples:
    if source.stream.table:  # its rows come before all time
        columns = [pa.chunked_array([np.full(len(columns[0]), TABLE_TIME)]), *columns]
    return Tuples(pa.table(columns, schema=stream_schema(source.stream)), source.time)


def _python_warning(message: str) -> None:
    warnings.warn(message, stacklevel=2)


@dataclass(slots=True)
class _Source:
    path: Path
    said: str
    stream: Stream
    fields: tuple[Field, ...]
    warn: Warn
    time: pa.DataType = field(default_factory=pa.int64)

    def no_faults(self) -> list[BadCells]:
        return [BadCells() for _ in self.fields]

    def report(
        self, rows: BadCells, cells: Sequence[BadCells], lines: Sequence[int], where: str = ""
    ) -> None:
        """Raises if anything is wrong: the first errors by line, and the count of all. `rows`
        counts in lines, `cells`, one a column, in rows, of which `lines` gives the line."""
        total = rows.total + sum(faults.total for faults in cells)
        if not total:
            return
        found = [(line, -1, reason) for line, reason in rows.listed]
        for place, (of, faults) in enumerate(zip(self.fields, cells, strict=True)):
            for row, reason in faults.listed:
                found.append((lines[row], place, f"column {of.name}: {reason}"))
        messages = [
            f"{self.said}:{where}{line}: {reason}"
            for line, _, reason in sorted(found)[:FAULTS_LISTED]
        ]
        if total > len(messages):
            messages.append(
                f"{self.said}: {total} errors in all, the first {len(messages)} are listed"
            )
        raise InputError(messages, total=total)


# Columns


def _places(source: _Source, names: Sequence[str]) -> list[int]:
    """Returns where in the file each column of the stream stands."""
    folded = [fold(name) for name in names]
    known = {name for of in source.fields for name in of.names}
    messages, places = [], []
    for of in source.fields:
        at = [place for place, name in enumerate(folded) if name in of.names]
        if len(at) > 1:
            given = ", ".join(repr(names[place]) for place in at)
            messages.append(f"{source.said}: column {of.name} is there {len(at)} times: {given}")
        elif not at:
            others = [name for name, low in zip(names, folded, strict=True) if low not in known]
            messages.append(_missing(source, of, others))
        places.extend(at[:1])
    if messages:
        raise InputError(messages, _separator_hint(names))
    _warn_of_others(source, [name for place, name in enumerate(names) if place not in places])
    return places


def _missing(source: _Source, of: Field, others: Sequence[str]) -> str:
    """`others` are the file's columns that belong to no stream, so that one may be the misspelt one."""
    names = [name.strip() for name in others]
    near = next((found for name in of.names if (found := nearest(name, names))), None)
    if of.is_time:
        what = f"no time column, expected one named {' or '.join(_time_names(of))}"
    else:
        what = f"no column {of.name}, which stream {source.stream.name} has"
    return f"{source.said}: {what}" + (f"; the nearest is {near!r}" if near else "")


def _time_names(of: Field) -> list[str]:
    return [name for name in ("ts", "TimeStamp") if name.lower() in of.names]


def _separator_hint(names: Sequence[str]) -> str | None:
    for mark, what in ((";", "semicolons"), ("\t", "tabs")):
        if len(names) == 1 and mark in names[0]:
            return f"the header has {what}; cells are separated by commas"
    return None


def _warn_of_others(source: _Source, names: Sequence[str]) -> None:
    if names:
        given = ", ".join(repr(name) for name in names)
        one = len(names) == 1
        source.warn(
            f"{source.said}: {'column' if one else 'columns'} {given} "
            f"{'is' if one else 'are'} not in stream {source.stream.name} and ignored"
        )


# CSV


def _read_csv(source: _Source) -> _Columns:
    header, skip = _csv_header(source)
    places = _places(source, header)
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


def _csv_columns(source: _Source, text: pa.Table, cells: Sequence[BadCells]) -> _Columns:
    if text.num_rows and not source.stream.table:
        source.time = time_type(pa.string(), text.column(0)[0].as_py())
    return [
        from_text(column, of, faults)
        for column, of, faults in zip(text.columns, source.fields, cells, strict=True)
    ]


def _ended(path: Path, width: int) -> pa.BufferReader:
    """A CSV file with one more row. If that row does not come out as it went in, a quote was
    opened before it and never closed; Arrow takes the rest of the file for one cell then, and
    does not mind.

    The bytes are Arrow's own. Its threads may hold what they read a moment longer than the call
    takes, and one that lets go of an object of Python's while the interpreter ends is ended with
    it, which aborts the process."""
    more = b"\n" + b",".join([_LAST] * width) + b"\n"
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
    """The cells of some columns as text, an empty unquoted one as NULL; None if a quote is never
    closed."""
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


def _csv_header(source: _Source) -> tuple[list[str], int]:
    """The names of the columns, and the number of lines down to the end of the header."""
    for _, last, row in _csv_rows(source.path):
        if any("\ufffd" in name for name in row):
            _check_utf8(source)
        return row, last
    raise InputError(f"{source.said}: is empty, expected a header with the names of the columns")


def _csv_rows(path: Path) -> Iterator[tuple[int, int, list[str]]]:
    """Rows by Python's reader, which knows lines: first line, last line, cells."""
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


def _check_utf8(source: _Source) -> None:
    data = source.path.read_bytes()
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = len((data[: error.start] + b".").splitlines())
        raise InputError(
            f"{source.said}:{line}: not UTF-8 text, at byte {error.start} of the file"
        ) from None


def _diagnose_csv(source: _Source, width: int, skip: int, places: Sequence[int]) -> _Columns:
    """Reads again a file that Arrow refused or that has bad cells, and names every line.

    Rows of a wrong width are left out, so that the cells of the others are checked too, and
    the whole file is one block. If a row longer than a block was all that was wrong, the
    columns come out good.
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


# JSON lines


class _Number(str):
    """A JSON number with a point or an exponent, kept as it is written."""

    __slots__ = ()


_decode = json.JSONDecoder(object_pairs_hook=tuple, parse_float=_Number).decode
_JSON_NAMES = {
    int: "number",
    float: "number",
    _Number: "number",
    bool: "boolean",
    tuple: "object",
    list: "array",
}
_ABSENT = object()


def _read_json(source: _Source) -> _Columns:
    """One object a line, empty lines apart; a column absent from an object is NULL there."""
    lines, bad = array("q"), BadCells()
    gathered = _Objects(source)
    offset = 0
    with source.path.open("rb") as file:
        for line, raw in enumerate(file, 1):
            try:
                if text := raw.decode("utf-8-sig" if line == 1 else "utf-8").rstrip():
                    gathered.add(text)
                    lines.append(line)
            except UnicodeDecodeError as error:
                bad.add(line, f"not UTF-8 text, at byte {offset + error.start} of the file")
            except _NotARow as error:
                bad.add(line, str(error))
            offset += len(raw)
    if lines:
        gathered.check()
    elif not bad.total:
        source.warn(f"{source.said}: is empty, stream {source.stream.name} has no tuples")
    columns = gathered.columns()
    source.report(bad, gathered.cells, lines)
    return columns


class _NotARow(Exception):
    """A line that is no object with a value for each column; says why."""


class _Objects:
    """Objects gathered into columns, some thousands at a time."""

    def __init__(self, source: _Source) -> None:
        self.source = source
        self.cells = source.no_faults()
        self._slots: dict[str, int | None] = {}  # by key as it is written
        self._row = 0
        self._rows: list[list[object]] = []
        self._chunks: list[list[pa.Array[Any]]] = [[] for _ in source.fields]

    def add(self, text: str) -> None:
        try:
            pairs = _decode(text)
        except json.JSONDecodeError as error:
            raise _NotARow(f"not a JSON object: {error.msg} at column {error.colno}") from None
        except (ValueError, RecursionError) as error:
            raise _NotARow(f"not a JSON object: {error}") from None
        if type(pairs) is not tuple:
            what = _JSON_NAMES.get(type(pairs), "value")
            raise _NotARow(f"a JSON {what}, expected one JSON object a line")
        row = [_ABSENT] * len(self.source.fields)
        for key, value in pairs:
            slot = self._slots.get(key, -1)
            if slot == -1:
                slot = self._slot(key)
            if slot is None:
                continue
            if row[slot] is not _ABSENT:
                raise _NotARow(f"column {self.source.fields[slot].name} is there more than once")
            row[slot] = value
        if _ABSENT in row:
            row = [None if value is _ABSENT else value for value in row]
        self._rows.append(row)
        if len(self._rows) == _ROWS_AT_ONCE:
            self._flush()

    def check(self) -> None:
        """Every column must be in some object; what is in no column is ignored."""
        found = set(self._slots.values())
        others = [key for key, slot in self._slots.items() if slot is None]
        missing = [
            _missing(self.source, of, others)
            for slot, of in enumerate(self.source.fields)
            if slot not in found
        ]
        if missing:
            raise InputError(missing)
        _warn_of_others(self.source, others)

    def columns(self) -> _Columns:
        self._flush()
        return [
            pa.chunked_array(chunks, type=arrow_type(of.type))
            for chunks, of in zip(self._chunks, self.source.fields, strict=True)
        ]

    def _slot(self, key: str) -> int | None:
        folded = fold(key)
        fields = enumerate(self.source.fields)
        self._slots[key] = slot = next((n for n, of in fields if folded in of.names), None)
        return slot

    def _flush(self) -> None:
        for place, values in enumerate(zip(*self._rows, strict=True)):
            of = self.source.fields[place]
            cells = _cells(values, of)
            if of.is_time and not self._row and isinstance(cells[0], str):
                self.source.time = time_type(pa.string(), cells[0])
            self._chunks[place].append(from_cells(cells, of, self._row, self.cells[place]))
        self._row += len(self._rows)
        self._rows.clear()


def _cells(values: Sequence[object], of: Field) -> Sequence[str | Wrong | None]:
    """JSON values as the text of cells; quickly where they are all of one usual type."""
    kinds = set(map(type, values)) - {NoneType}
    if kinds == {str}:
        texts = cast("Sequence[str | None]", values)
        if _is_unicode("".join(filter(None, texts))):
            return texts
    elif kinds <= {int, _Number} and not of.type.is_text:
        return [None if value is None else str(value) for value in values]
    return [_cell(value, of) for value in values]


def _cell(value: object, of: Field) -> str | Wrong | None:
    """A JSON value as the text of a cell. In a text column only a string will do."""
    kind = type(value)
    if kind is str:
        text = cast("str", value)
        return text if _is_unicode(text) else Wrong(f"{text!a} is not Unicode text")
    if value is None:
        return None
    if kind in (tuple, list):
        return Wrong(f"a JSON {_JSON_NAMES[kind]} is not {of.expected}")
    text = str(value).lower() if kind is bool else str(value)
    return (
        Wrong(f"the JSON {_JSON_NAMES[kind]} {text} is not a string") if of.type.is_text else text
    )


def _is_unicode(text: str) -> bool:
    """False for half of a surrogate pair, which JSON can escape and UTF-8 cannot hold."""
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError:
        return False
    return True


# Parquet


def _read_parquet(source: _Source) -> _Columns:
    if not source.path.stat().st_size:
        raise InputError(f"{source.said}: is empty, expected a Parquet file")
    try:
        with pq.ParquetFile(source.path) as file:
            names = file.schema_arrow.names
            table = file.read(columns=[names[place] for place in _places(source, names)])
    except pa.ArrowException as error:
        raise InputError(f"{source.said}: cannot be read as Parquet: {error}") from None
    return _table_columns(source, table)


def _table_columns(source: _Source, table: pa.Table) -> _Columns:
    names = table.schema.names
    chosen = [names[place] for place in _places(source, names)]
    if not source.stream.table:
        source.time = time_type(table.column(chosen[0]).type)
    columns, messages, cells = [], [], source.no_faults()
    for name, of, faults in zip(chosen, source.fields, cells, strict=True):
        column = from_column(table.column(name), of, faults)
        if column is None:
            found = table.column(name).type
            messages.append(
                f"{source.said}: column {of.name} has type {found}, expected {of.expected}"
            )
        else:
            columns.append(column)
    if messages:
        raise InputError(messages)
    source.report(BadCells(), cells, range(1, table.num_rows + 1), " row ")
    return columns


_READERS: dict[str, Callable[[_Source], _Columns]] = {
    ".csv": _read_csv,
    ".jsonl": _read_json,
    ".ndjson": _read_json,
    ".json": _read_json,
    ".parquet": _read_parquet,
}
