"""Reads JSON lines as columns of a stream: one object per line; empty lines are skipped."""

from __future__ import annotations

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
    """A line that is not an object with a value for each column, and the reason."""


class _Objects:
    """Gathers objects into columns, some thousands at a time."""

    def __init__(self, source: InputFile) -> None:
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

    def columns(self) -> Columns:
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
            if of.is_time and not self._row:
                first = cells[0] if isinstance(cells[0], str) else None
                self.source.time = time_type(pa.string(), first)
            self._chunks[place].append(from_cells(cells, of, self._row, self.cells[place]))
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
    """Returns False for half of a surrogate pair, which JSON can escape and UTF-8 cannot hold."""
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError:
        return False
    return True
