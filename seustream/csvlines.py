"""Reads CSV with a header as columns of a stream: a whole file, or one that comes in pieces.

Good files are read by Arrow alone. Only text with errors is read a second time, to report their lines.
"""

from __future__ import annotations

import csv
import io
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.csv as pa_csv

from seustream.errors import InputError
from seustream.fitting import Columns, InputFile, places_of
from seustream.tables import BadCells, from_text, time_type

PIECE = 1 << 22
"""Bytes of a file in pieces that are read at once, at least. A cell in quotes that is longer takes
more."""
_LAST = b"\x1e"
_DECODED: Any = {"encoding": "utf-8-sig", "errors": "replace", "newline": ""}


@dataclass(frozen=True, slots=True)
class CsvText:
    """Rows of a file: all, or those of a piece that begins and ends with a line.

    data    the text, and the row of `_end` behind it
    width   the number of cells of a row
    places  those that are read
    line    the number of the first line in the file
    skip    the number of lines up to the end of the header, if it is there
    """

    data: pa.Buffer
    width: int
    places: Sequence[int]
    line: int = 1
    skip: int = 0

    @property
    def text(self) -> memoryview:
        return memoryview(self.data).cast("B")[: -len(_end(self.width))]

    def rows(self) -> Iterator[tuple[int, int, list[str]]]:
        """Yields what `_rows` does, without the header."""
        return islice(_rows(_text_file(self.text), self.line), 1 if self.skip else 0, None)

    def cells(
        self, block: int | None = None, bad_row: Callable[[pa_csv.InvalidRow], str] | None = None
    ) -> pa.Table | None:
        """Reads the cells as text, an empty unquoted one as NULL; returns None if a quote is never
        closed."""
        names = [str(place) for place in range(self.width)]
        table = pa_csv.read_csv(
            pa.BufferReader(self.data),
            read_options=pa_csv.ReadOptions(
                column_names=names,
                skip_rows=self.skip,
                block_size=block,
                use_threads=bad_row is None,
            ),
            parse_options=pa_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=bad_row),
            convert_options=pa_csv.ConvertOptions(
                include_columns=[names[place] for place in self.places],
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

    def whole_cells(self) -> pa.Table | None:
        """Reads the cells of the rows that have the right width, as one block."""
        return self.cells(len(self.data), lambda row: "skip")


def read_csv(source: InputFile) -> Columns:
    """Reads a file."""
    with source.path.open(**_DECODED) as file:
        header, skip = _header(source, file)
    if _is_damaged(header):
        _check_utf8(source, source.path.read_bytes())
    data = content(source.path, _end(len(header)))
    return _columns(source, CsvText(data, len(header), places_of(source, header), skip=skip))


def read_pieces(source: InputFile, pieces: Iterable[bytes]) -> Iterator[Columns]:
    """Reads a file that comes in pieces of whole lines, and yields its rows by and by."""
    header: list[str] = []
    places: Sequence[int] = ()
    waiting, line, least = b"", 1, PIECE
    for piece, last in _with_last(pieces):
        waiting += piece
        if len(waiting) < least and not last:
            continue
        skip = 0
        if not header:
            header, skip = _header(source, _text_file(waiting))
            if _is_damaged(header):
                _check_utf8(source, waiting)
            places = places_of(source, header)
        text = CsvText(_buffer(waiting, _end(len(header))), len(header), places, line, skip)
        if not last and _is_open(text):
            header = [] if skip else header
            least = 2 * len(waiting)
            continue
        yield _columns(source, text)
        line += waiting.count(b"\n")
        waiting, least = b"", PIECE


def csv_names(path: Path) -> list[str]:
    """Returns the names in the header of a file."""
    with path.open(**_DECODED) as file:
        return next((row for _, _, row in _rows(file)), [])


def opened(path: Path) -> Path | pa.BufferReader:
    """Returns what Arrow reads for a file. It takes no name that is not UTF-8."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return pa.BufferReader(content(path))
    return path


def content(path: Path, more: bytes = b"") -> pa.Buffer:
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
    return whole.slice(0, end + len(more))


def _buffer(text: bytes, more: bytes) -> pa.Buffer:
    """Does the same for bytes."""
    whole = pa.allocate_buffer(len(text) + len(more))
    with memoryview(whole).cast("B") as view:
        view[: len(text)] = text
        view[len(text) :] = more
    return whole


def _end(width: int) -> bytes:
    """Returns one more row. If it does not come out as it went in, a quote before it was never
    closed; Arrow then takes the rest of the text for one cell without an error."""
    return b"\n" + b",".join([_LAST] * width) + b"\n"


def _with_last(pieces: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yields each piece, and whether it is the last."""
    before: bytes | None = None
    for piece in pieces:
        if before is not None:
            yield before, False
        before = piece
    if before is not None:
        yield before, True


def _text_file(data: bytes | memoryview) -> TextIO:
    return io.TextIOWrapper(io.BytesIO(data), **_DECODED)


def _header(source: InputFile, file: TextIO) -> tuple[list[str], int]:
    """Returns the names of the columns, and the number of lines up to the end of the header."""
    for _, last, row in _rows(file):
        return row, last
    raise InputError(f"{source.said}: is empty, expected a header with the names of the columns")


def _is_damaged(names: Sequence[str]) -> bool:
    """Returns whether names may come from bytes that are not UTF-8."""
    return any("\ufffd" in name for name in names)


def _rows(file: TextIO, line: int = 1) -> Iterator[tuple[int, int, list[str]]]:
    """Yields rows by Python's reader, which tracks lines: first line, last line, cells."""
    with _any_cell_length():
        reader, first = csv.reader(file), line
        for row in reader:
            last = line - 1 + reader.line_num
            if row:
                yield first, last, row
            first = last + 1


@contextmanager
def _any_cell_length() -> Iterator[None]:
    limit = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def _check_utf8(source: InputFile, data: bytes, line: int = 1) -> None:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        *before, begun = (data[: error.start] + b".").splitlines()
        raise InputError(
            f"{source.said}:{line + len(before)}: not UTF-8 text, at byte {len(begun) - 1} of the line"
        ) from None


def _is_open(text: CsvText) -> bool:
    """Returns whether a quote is not closed before the end of the text."""
    try:
        return text.cells() is None
    except pa.ArrowInvalid:
        pass
    try:
        return text.whole_cells() is None
    except pa.ArrowInvalid:
        return False


def _columns(source: InputFile, text: CsvText) -> Columns:
    try:
        cells = text.cells()
    except pa.ArrowInvalid:
        cells = None
    if cells is not None:
        faults = source.no_faults()
        columns = _values(source, cells, faults)
        if not any(bad.total for bad in faults):
            return columns
    return _diagnosed(source, text)


def _values(source: InputFile, cells: pa.Table, faults: Sequence[BadCells]) -> Columns:
    if cells.num_rows and source.fields[0].is_time:
        source.time = time_type(pa.string(), cells.column(0)[0].as_py())
    return [
        from_text(column, of, bad)
        for column, of, bad in zip(cells.columns, source.fields, faults, strict=True)
    ]


def _diagnosed(source: InputFile, text: CsvText) -> Columns:
    """Reads again what Arrow refused or what has bad cells, and reports every line with an error.

    Rows of a wrong width are left out, so that the cells of the others are checked too, and the
    whole text is one block. If a row longer than a block was the only problem, the columns come out
    valid.
    """
    _check_utf8(source, bytes(text.text), text.line)
    lines, first = array("q"), 0
    ragged: dict[int, int] = {}
    for first, _, row in text.rows():
        if len(row) == text.width:
            lines.append(first)
        else:
            ragged[first] = len(row)
    rows, faults = BadCells(), source.no_faults()
    try:
        cells = text.whole_cells()
    except pa.ArrowInvalid as error:
        raise InputError(f"{source.said}: {error}") from None
    if cells is None:
        ragged.pop(first, None)
    for line, found in ragged.items():
        what = "cell" if found == 1 else "cells"
        rows.add(line, f"{found} {what}, the header has {text.width}")
    if cells is None:
        rows.add(first, "a quote is opened in this row and not closed before the end of the file")
        source.report(rows, faults, lines)
    assert cells is not None
    columns = _values(source, cells, faults)
    if cells.num_rows != len(lines):  # the two readers differ on what a row is
        lines = array("q", range(text.line, text.line + cells.num_rows))
    source.report(rows, faults, lines)
    return columns
