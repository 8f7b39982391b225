"""Reads JSON lines as columns of a stream: one object per line; empty lines are skipped."""

from __future__ import annotations

import codecs
import json
from collections.abc import Sequence
from types import NoneType
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.engine.kernels import native
from seustream.engine.stream.schema import arrow_type
from seustream.engine.stream.taken import made as column_of
from seustream.errors import InputError
from seustream.fitting import Columns, InputFile, missing_column, warn_of_others
from seustream.tables import BadCells, Cells, Field, Wrong, fold, from_cells, time_type

Ints = npt.NDArray[np.int64]

_ROWS_AT_ONCE = 1 << 12
_BYTES_AT_ONCE = 1 << 20
_BYTES_OF_TEXT = 1 << 31
"""As many are too many for a column of Arrow's."""


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


def read_json(source: InputFile) -> Columns:
    """Reads one object per line and skips empty lines; a column absent from an object is NULL
    there."""
    objects = Objects(source)
    line = 1
    with source.path.open("rb") as file:
        while data := file.read(_BYTES_AT_ONCE) + file.readline():
            text = data.removeprefix(codecs.BOM_UTF8) if line == 1 else data
            objects.take(*lines_of(text, line))
            line += data.count(b"\n")
    if objects.found:
        objects.check()
    elif not objects.bad.total:
        source.warn(f"{source.said}: is empty, stream {source.stream.name} has no tuples")
    return objects.columns()


def lines_of(text: bytes, first: int) -> tuple[bytes, Ints, Ints]:
    """Returns what `Objects.take` wants of the lines of a text."""
    breaks = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")) + 1
    inner = breaks[:-1] if len(breaks) and breaks[-1] == len(text) else breaks
    ends = np.concatenate([[0], inner, [len(text)]]).astype(np.int64)
    return text, ends, np.arange(first, first + len(ends) - 1)


class _NotARow(Exception):
    """A line that is not an object with a value for each column, and the reason."""


class Objects:
    """Gathers the objects of a file into columns, some thousands at a time. `bad` are the lines that
    hold none, `found` tells whether any line did.

    A kernel reads the lines. Where they hold anything uncommon or wrong, they are read one by one.
    """

    def __init__(self, source: InputFile) -> None:
        self.source = source
        self.found = False
        self._slots: dict[str, int | None] = {}  # by key as it is written
        self._kernel = self._fresh()
        self._clear()

    def _fresh(self) -> native.Objects:
        kernel = native.Objects()
        only = [of.type.is_text and not of.is_json for of in self.source.fields]
        kernel.configure(np.array(only, np.uint8))
        return kernel

    def _clear(self) -> None:
        self.bad, self._cells = BadCells(), self.source.no_faults()
        self._lines: list[Ints] = []
        self._row = 0
        self._chunks: list[list[pa.Array[Any]]] = [[] for _ in self.source.fields]

    def take(self, data: bytes | pa.Buffer, ends: Ints, numbers: Ints) -> None:
        """Takes lines, or messages, of which number i is data[ends[i]:ends[i + 1]] and has
        `numbers[i]` in errors."""
        for at in range(0, len(numbers), _ROWS_AT_ONCE):
            some = slice(at, at + _ROWS_AT_ONCE)
            limits = ends[at : at + _ROWS_AT_ONCE + 1]
            if not self._together(data, limits, numbers[some]):
                self._one_by_one(data, limits, numbers[some])

    def _together(self, data: bytes | pa.Buffer, ends: Ints, numbers: Ints) -> bool:
        """Reads lines at once; returns False if they hold anything uncommon."""
        known = dict(self._slots)
        places = np.zeros(len(numbers), np.int64)
        made = None
        if ends[-1] - ends[0] < _BYTES_OF_TEXT:
            made = self._kernel.read(data, ends, places, self._slot)
        if made is None:
            # Keys of a line that is no object are not keys of the file.
            self._slots, self._kernel = known, self._fresh()
            return False
        columns = [column_of(one, pa.string()) for one in made]
        if rows := len(columns[0]):
            self._gather(columns, numbers[places[:rows]])
        return True

    def _one_by_one(self, data: bytes | pa.Buffer, ends: Ints, numbers: Ints) -> None:
        """Reads the same lines, and finds each bad one."""
        text, rows, lines = memoryview(data), list[list[object]](), list[int]()
        limits = ends.tolist()
        for begin, end, line in zip(limits, limits[1:], numbers.tolist(), strict=False):
            try:
                if line_text := bytes(text[begin:end]).decode().rstrip():
                    rows.append(self._row_of(line_text))
                    lines.append(line)
            except UnicodeDecodeError as error:
                self.bad.add(line, f"not UTF-8 text, at byte {error.start} of the line")
            except _NotARow as error:
                self.bad.add(line, str(error))
        if rows:
            cells = zip(*rows, strict=True)
            columns = [
                _cells(of, field) for of, field in zip(cells, self.source.fields, strict=True)
            ]
            self._gather(columns, np.array(lines, np.int64))

    def _row_of(self, text: str) -> list[object]:
        try:
            pairs = _decode(text)
        except json.JSONDecodeError as error:
            raise _NotARow(f"not a JSON object: {error.msg} at column {error.colno}") from None
        except (ValueError, RecursionError) as error:
            raise _NotARow(f"not a JSON object: {error}") from None
        if type(pairs) is not tuple:
            what = _JSON_NAMES.get(type(pairs), "value")
            raise _NotARow(f"a JSON {what}, expected one JSON object a line")
        row: list[object] = [_ABSENT] * len(self.source.fields)
        for key, value in pairs:
            slot = self._slots.get(key, -1)
            if slot == -1:
                slot = self._slot(key)
            if slot is None:
                continue
            if row[slot] is not _ABSENT:
                raise _NotARow(f"column {self.source.fields[slot].name} is there more than once")
            row[slot] = value
        return [None if value is _ABSENT else value for value in row]

    def check(self) -> None:
        """Checks that every column occurs in some object; members that belong to no column are
        ignored."""
        found = set(self._slots.values())
        others = [key for key, slot in self._slots.items() if slot is None]
        missing = [
            missing_column(self.source, of, others)
            for slot, of in enumerate(self.source.fields)
            if slot not in found
        ]
        if missing:
            raise InputError(missing)
        warn_of_others(self.source, others)

    def columns(self, where: str = "") -> Columns:
        """Returns the columns of the objects since the last call; raises `InputError` for what is
        wrong in them. `where` stands before the number of a line."""
        columns = [
            pa.chunked_array(chunks, type=arrow_type(of.type))
            for chunks, of in zip(self._chunks, self.source.fields, strict=True)
        ]
        lines = np.concatenate(self._lines or [np.zeros(0, np.int64)])
        self.source.report(self.bad, self._cells, lines, where)
        self._clear()
        return columns

    def _slot(self, key: str) -> int | None:
        folded = fold(key)
        fields = enumerate(self.source.fields)
        self._slots[key] = slot = next((n for n, of in fields if folded in of.names), None)
        return slot

    def _gather(self, columns: Sequence[Cells], lines: Ints) -> None:
        """Takes the cells of some rows, column by column."""
        for place, (cells, of) in enumerate(zip(columns, self.source.fields, strict=True)):
            if of.is_time and not self._row:
                first = cells[0].as_py() if isinstance(cells, pa.Array) else cells[0]
                self.source.time = time_type(pa.string(), first if isinstance(first, str) else None)
            self._chunks[place].append(from_cells(cells, of, self._row, self._cells[place]))
        self._row += len(lines)
        self._lines.append(lines)
        self.found = True


def _cells(values: Sequence[object], of: Field) -> Cells:
    """Returns JSON values as the text of cells; fast if all have one common type."""
    kinds = set(map(type, values)) - {NoneType}
    if kinds == {str}:
        texts = cast("Sequence[str | None]", values)
        if _is_unicode("".join(filter(None, texts))):
            return texts
    elif kinds <= {int, _Number} and not of.type.is_text:
        return [None if value is None else str(value) for value in values]
    return [_cell(value, of) for value in values]


def _cell(value: object, of: Field) -> str | Wrong | None:
    """Returns a JSON value as the text of a cell. A text column only accepts a string."""
    kind = type(value)
    if kind is str or (of.is_json and value is not None):
        text = cast("str", value) if kind is str else _written(value)
        return text if _is_unicode(text) else Wrong(f"{text!a} is not Unicode text")
    if value is None:
        return None
    if kind in (tuple, list):
        return Wrong(f"a JSON {_JSON_NAMES[kind]} is not {of.expected}")
    text = str(value).lower() if kind is bool else str(value)
    return (
        Wrong(f"the JSON {_JSON_NAMES[kind]} {text} is not a string") if of.type.is_text else text
    )


def _written(value: object) -> str:
    """Writes a decoded value as JSON."""
    if isinstance(value, tuple):
        members = (f"{json.dumps(key, ensure_ascii=False)}: {_written(of)}" for key, of in value)
        return f"{{{', '.join(members)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    return str(value) if isinstance(value, _Number) else json.dumps(value, ensure_ascii=False)


def _is_unicode(text: str) -> bool:
    """Returns False for half of a surrogate pair, which JSON can escape and UTF-8 cannot hold."""
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError:
        return False
    return True
