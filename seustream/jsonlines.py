"""Reads JSON lines as columns of a stream: one object per line; empty lines are skipped."""

from __future__ import annotations

import codecs
import json
from array import array
from collections.abc import Sequence
from types import NoneType
from typing import Any, cast

import pyarrow as pa

from seustream.engine.stream.schema import arrow_type
from seustream.errors import InputError
from seustream.fitting import Columns, InputFile, missing_column, warn_of_others
from seustream.tables import BadCells, Field, Wrong, fold, from_cells, time_type

_ROWS_AT_ONCE = 1 << 12


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
    with source.path.open("rb") as file:
        for line, raw in enumerate(file, 1):
            objects.take(line, raw.removeprefix(codecs.BOM_UTF8) if line == 1 else raw)
    if objects.found:
        objects.check()
    elif not objects.bad.total:
        source.warn(f"{source.said}: is empty, stream {source.stream.name} has no tuples")
    return objects.columns()


class _NotARow(Exception):
    """A line that is not an object with a value for each column, and the reason."""


class Objects:
    """Gathers the objects of a file into columns, some thousands at a time. `bad` are the lines that
    hold none, `found` tells whether any line did."""

    def __init__(self, source: InputFile) -> None:
        self.source = source
        self.found = False
        self._slots: dict[str, int | None] = {}  # by key as it is written
        self._clear()

    def _clear(self) -> None:
        self.bad, self._cells = BadCells(), self.source.no_faults()
        self._lines = array("q")
        self._row = 0
        self._rows: list[list[object]] = []
        self._chunks: list[list[pa.Array[Any]]] = [[] for _ in self.source.fields]

    def take(self, line: int, raw: bytes) -> None:
        """Takes a line, whose number is for errors."""
        try:
            if text := raw.decode().rstrip():
                self._add(text)
                self._lines.append(line)
                self.found = True
        except UnicodeDecodeError as error:
            self.bad.add(line, f"not UTF-8 text, at byte {error.start} of the line")
        except _NotARow as error:
            self.bad.add(line, str(error))

    def _add(self, text: str) -> None:
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
        self._flush()
        columns = [
            pa.chunked_array(chunks, type=arrow_type(of.type))
            for chunks, of in zip(self._chunks, self.source.fields, strict=True)
        ]
        self.source.report(self.bad, self._cells, self._lines, where)
        self._clear()
        return columns

    def _slot(self, key: str) -> int | None:
        folded = fold(key)
        fields = enumerate(self.source.fields)
        self._slots[key] = slot = next((n for n, of in fields if folded in of.names), None)
        return slot

    def _flush(self) -> None:
        for place, values in enumerate(zip(*self._rows, strict=True)):
            of = self.source.fields[place]
            cells = _cells(values, of)
            if of.is_time and not self._row:
                first = cells[0] if isinstance(cells[0], str) else None
                self.source.time = time_type(pa.string(), first)
            self._chunks[place].append(from_cells(cells, of, self._row, self._cells[place]))
        self._row += len(self._rows)
        self._rows.clear()


def _cells(values: Sequence[object], of: Field) -> Sequence[str | Wrong | None]:
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
