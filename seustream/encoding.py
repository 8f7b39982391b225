"""Encodes result tables as CSV, JSON lines and Parquet.

Arrow's functions turn whole columns into text; only texts that need escapes, and nested values, are
written one by one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, Protocol, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_ROWS_AT_ONCE = 1 << 14
_ROWS_OF_A_GROUP = 1 << 17
QUERY_MEMBER = "query"


class Encoder(Protocol):
    """Writes rows as bytes to a file; `close` ends the format but leaves the file open."""

    def write(self, table: pa.Table) -> None: ...

    def close(self) -> None: ...


def encoder_of(format: str, file: BinaryIO, schema: pa.Schema, query: str | None = None) -> Encoder:
    """Returns an encoder. `query` is for JSON lines only, where it becomes a member of each object."""
    match format:
        case "csv":
            return _Lines(file, _csv_pieces(schema.names), _csv_cell, _csv_header(schema.names))
        case "jsonl":
            return _Lines(file, _json_pieces(schema.names, query), _json_value)
        case _:
            return _Parquet(file, schema)


def parquet_options(schema: pa.Schema) -> dict[str, Any]:
    """Returns the options that pack the columns of a Parquet file. Integers and times are stored as
    differences in as few bits as these need: this takes a third of the time of dictionaries and
    Snappy and, for results, whose times rise, half the bytes."""
    packed = [
        field.name
        for field in schema
        if pa.types.is_integer(field.type)
        or (pa.types.is_temporal(field.type) and not pa.types.is_interval(field.type))
    ]
    others = [
        f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name
        for field in schema
        if field.name not in packed
    ]
    return {
        "use_dictionary": others,
        "column_encoding": dict.fromkeys(packed, "DELTA_BINARY_PACKED"),
        "compression": dict.fromkeys(others, "snappy") | dict.fromkeys(packed, "none"),
    }


class _Lines:
    """Writes a text format with one line per row: pieces of fixed text around the values."""

    def __init__(
        self,
        file: BinaryIO,
        pieces: Sequence[str],
        spell: Callable[[pa.Array[Any]], pa.Array[Any]],
        head: str = "",
    ) -> None:
        self._file = file
        self._pieces = pieces
        self._spell = spell
        self._head = head

    def write(self, table: pa.Table) -> None:
        self._write_head()
        for start in range(0, table.num_rows, _ROWS_AT_ONCE):
            part = table.slice(start, _ROWS_AT_ONCE)
            parts: list[Any] = [self._pieces[0]]
            for column, piece in zip(part.columns, self._pieces[1:], strict=True):
                parts += [self._spell(_plain(column.combine_chunks())), piece]
            self._file.write(_bytes(pc.binary_join_element_wise(*parts, "")))

    def close(self) -> None:
        self._write_head()
        self._file.flush()

    def _write_head(self) -> None:
        self._file.write(self._head.encode())
        self._head = ""


class _Parquet:
    """Gathers rows, since a row group for each of many small tables would be slow to read."""

    def __init__(self, file: BinaryIO, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        self._schema = schema
        self._writer = pq.ParquetWriter(file, schema, **parquet_options(schema))
        self._waiting: list[pa.Table] = []
        self._rows = 0

    def write(self, table: pa.Table) -> None:
        self._waiting.append(table.cast(self._schema))
        self._rows += table.num_rows
        if self._rows >= _ROWS_OF_A_GROUP:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(pa.concat_tables(self._waiting))
        self._waiting, self._rows = [], 0


def _bytes(lines: object) -> memoryview:
    """Returns the bytes of an array of texts, which are already contiguous."""
    array = cast("pa.Array[Any]", lines)
    _, offsets, data = array.buffers()
    assert offsets is not None
    ends = np.frombuffer(offsets, np.int32)
    first, last = ends[array.offset], ends[array.offset + len(array)]
    return memoryview(data)[first:last] if data is not None else memoryview(b"")


# Values


def _plain(values: pa.Array[Any]) -> pa.Array[Any]:
    return cast("Any", values).dictionary_decode() if _is(values, "dictionary") else values


def _is(values: pa.Array[Any], *kinds: str) -> bool:
    return any(getattr(pa.types, f"is_{kind}")(values.type) for kind in kinds)


def _spelled(values: pa.Array[Any]) -> pa.Array[Any]:
    """Spells values as text: ISO for dates and times, milliseconds for intervals, JSON for nested
    values."""
    if _is(values, "list"):
        return _listed(values)
    if _is(values, "nested"):
        items = (None if v is None else _json(v) for v in values.to_pylist())
        return pa.array(list(items), pa.string())
    text = _string(pc.cast(values, pa.string()))
    if _is(values, "duration"):
        return _string(pc.binary_join_element_wise(text, " ms", ""))
    if _is(values, "floating"):
        for found, spelling in (("nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity")):
            text = _string(pc.if_else(pc.equal(text, found), spelling, text))
    elif _is(values, "timestamp"):
        if pc.any(pc.match_substring(text, "<")).as_py():
            # A year beyond those that Arrow can spell. numpy can, and only years are spelled
            # differently.
            zone = "Z" if cast("Any", values.type).tz else ""
            spelled = np.datetime_as_string(values.to_numpy(zero_copy_only=False))
            nulls = np.asarray(values.is_null())
            return pa.array([f"{s}{zone}" for s in spelled], pa.string(), mask=nulls)
        text = _string(pc.replace_substring(text, " ", "T"))
    return text


def python_values(column: pa.ChunkedArray[Any] | pa.Array[Any]) -> list[Any]:
    """Returns values as Python has them. Times that `datetime` lacks, before the year 1 or after 9999,
    are texts, as files have them."""
    try:
        found: list[Any] = column.to_pylist()
    except OverflowError:
        found = [_python_value(value) for value in column]
    return found


def _python_value(value: Any) -> Any:
    try:
        return value.as_py()
    except OverflowError:
        if isinstance(value, pa.ListScalar):
            return python_values(value.values)
        return _spelled(pa.array([value], value.type))[0].as_py()


def _listed(values: pa.Array[Any]) -> pa.Array[Any]:
    """Spells lists, whose elements are written as they are by themselves."""
    lists = cast("Any", values)
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0), np.int32)
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(lengths, dtype=np.int32)])
    elements = pa.ListArray.from_arrays(offsets, _json_value(_plain(lists.flatten())))
    text = pc.binary_join_element_wise("[", pc.binary_join(elements, ", "), "]", "")
    return _string(pc.if_else(lists.is_valid(), text, None))


def _string(values: object) -> pa.Array[Any]:
    return cast("pa.Array[Any]", values)


def _csv_pieces(names: Sequence[str]) -> list[str]:
    return ["", *[","] * (len(names) - 1), "\n"]


def _csv_header(names: Sequence[str]) -> str:
    cells = cast("list[str]", _csv_cell(pa.array(names, pa.string())).to_pylist())
    return ",".join(cells) + "\n"


def _csv_cell(values: pa.Array[Any]) -> pa.Array[Any]:
    """Writes NULL as an empty cell, and quotes an empty text and one with special characters of the
    format."""
    text = _spelled(values)
    quoted = _string(pc.match_substring_regex(text, '^$|[",\r\n]'))
    if pc.any(quoted).as_py():
        doubled = pc.replace_substring(text, '"', '""')
        inside = pc.binary_join_element_wise('"', doubled, '"', "")
        text = _string(pc.if_else(quoted, inside, text))
    return _string(pc.fill_null(text, ""))


def _json_pieces(names: Sequence[str], query: str | None) -> list[str]:
    first = "{" if query is None else f'{{"{QUERY_MEMBER}": {_json(query)}, '
    keys = [f"{_json(name)}: " for name in names]
    return [first + keys[0], *(f", {key}" for key in keys[1:]), "}\n"]


def _json_value(values: pa.Array[Any]) -> pa.Array[Any]:
    """Writes numbers and booleans as themselves, NaN and infinities as strings, since JSON lacks
    them."""
    text = _spelled(values)
    if _is(values, "floating"):
        named = pc.match_substring_regex(text, "[NI]")
        quoted = pc.binary_join_element_wise('"', text, '"', "")
        text = _string(pc.if_else(named, quoted, text))
    elif not _is(values, "integer", "boolean", "decimal", "nested", "null"):
        if pc.any(pc.match_substring_regex(text, r'["\\\x00-\x1f]')).as_py():
            items = (None if v is None else _json(v) for v in text.to_pylist())
            text = pa.array(list(items), pa.string())
        else:
            text = _string(pc.binary_join_element_wise('"', text, '"', ""))
    return _string(pc.fill_null(text, "null"))


def _json(value: object) -> str:
    return json.dumps(_jsonable(value), ensure_ascii=False)


def _jsonable(value: object) -> object:
    """Converts members of nested results that JSON cannot represent."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _NAMED.get(value, "NaN")
        case dict():
            return {str(key): _jsonable(item) for key, item in value.items()}
        case list() | tuple():
            return [_jsonable(item) for item in value]
        case _:
            iso = getattr(value, "isoformat", None)
            return iso() if callable(iso) else str(value)


_NAMED = {math.inf: "Infinity", -math.inf: "-Infinity"}
