"""Input files of APAS queries: columns ts, te and one for each leaf, by dotted path.

The language has no CREATE STREAM: an input defines its stream's schema, as a source's HEADER does. It is
read as every input (`reading`). Files with groups of columns are read by Arrow instead, and their
groups become columns. If `te` is missing, in the file or in a row, it equals ts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from seustream.compiler.apas.tree import RESERVED, SchemaRefused, from_lists
from seustream.compiler.apas.types import shown
from seustream.compiler.catalogue import TIMESTAMP_NAMES, Column, Stream
from seustream.compiler.language.types import Type
from seustream.compiler.xsql.intervals import END, interval_stream
from seustream.engine.stream.schema import in_milliseconds
from seustream.engine.temporal.elements import FOREVER
from seustream.engine.times import Tuples
from seustream.errors import InputError, UserError
from seustream.inputs import plain_files
from seustream.reading import SUFFIXES, read_timed, take_table
from seustream.suggested import columns_of, type_of
from seustream.tables import BadCells, fields, fold, from_text

T = TypeVar("T")
_NEVER = ("inf", "+inf", "infinity", "+infinity")


def by_files(given: Sequence[str], read: Callable[[Path, str], T]) -> dict[str, T]:
    """Reads the file of each stream, given as STREAM=FILE."""
    found = {}
    for argument in given:
        name, _, path = argument.partition("=")
        if not path or not (name.isidentifier() and name.isascii()):
            raise UserError(
                [f"--input {argument}: want STREAM=FILE"],
                hint="give each stream a file: --input I=i.csv",
            )
        found[name] = read(Path(path), name)
    return found


def read_intervals(path: Path, name: str) -> tuple[Stream, Tuples]:
    """Returns the stream of an input, and its rows: ts, te as integers, then the leaves in order.
    Raises `InputError`."""
    kinds = columns_of(path, no_reals=[END])
    nested = any(map(pa.types.is_struct, kinds.schema.types))
    rows = _flat(path) if nested else kinds
    columns = [
        Column(END if fold(c.name) == END else c.name, of)
        for c in _leaves(path, rows.schema)
        if (of := type_of(c.type))
    ]
    found = Stream(name, tuple(columns))
    taken = take_table(str(path), rows, found) if nested else read_timed(path, found, _say_nothing)
    lists: list[list[object]] = []
    for column in columns:
        if column.name not in RESERVED:
            _place(path, lists, column.name.split("."), column.type)
    try:
        tree = from_lists(name, lists)
    except SchemaRefused as error:
        raise InputError(f"{path}: {error}") from None
    ts = taken.rows.column("ts")
    te = pc.coalesce(_ends(path, taken.rows), ts)
    # Leaves of one group are adjacent in the tree, whatever their order in the file.
    leaves = [taken.rows.column(".".join(leaf)) for leaf in tree.paths]
    return interval_stream(name, tree), Tuples(
        pa.table([ts, te, *leaves], names=[*RESERVED, *map(".".join, tree.paths)]), pa.int64()
    )


def _leaves(path: Path, schema: pa.Schema) -> list[pa.Field]:
    """Returns the columns besides ts, with te among them."""
    found = [column for column in schema if fold(column.name) not in TIMESTAMP_NAMES]
    if len(found) == len(schema):
        raise InputError(
            f"{path}: no time column, expected one named ts",
            "integer milliseconds or timestamps",
        )
    if len({fold(column.name) for column in found}) < len(found):  # of groups that are flat now
        raise InputError(f"{path}: two columns of one name")
    for column in found:
        if type_of(column.type) is None:
            raise InputError(
                f"{path}: column {column.name}: {column.type} is none of the types of a leaf"
            )
    return found


def _ends(path: Path, rows: pa.Table) -> pa.ChunkedArray:
    """Returns the ends of intervals in milliseconds, NULL where there is none; inf means never."""
    if END not in rows.column_names:
        return pa.nulls(rows.num_rows, pa.int64())
    te = rows.column(END)
    if pa.types.is_string(te.type):
        return _texts_of_ends(path, te)
    if pa.types.is_timestamp(te.type):
        return in_milliseconds(te)
    if pa.types.is_date(te.type):
        return te.cast(pa.timestamp("ms")).cast(pa.int64())
    if pa.types.is_integer(te.type) or te.null_count == len(te):
        return te.cast(pa.int64())
    if not pa.types.is_floating(te.type):
        raise InputError(
            f"{path}: column te: {te.type}, want milliseconds or a timestamp",
            "inf for never, or an empty cell for the time of ts",
        )
    never = pc.equal(te, float("inf"))
    whole = pc.if_else(never, None, te)
    bad = pc.invert(pc.and_(pc.equal(pc.floor(whole), whole), pc.less(pc.abs(whole), 2.0**63)))
    if pc.any(bad).as_py():
        row = int(np.flatnonzero(np.asarray(pc.fill_null(bad, False)))[0])
        raise InputError(
            f"{path}: row {row + 1}: te {te[row].as_py()} is no number of milliseconds",
            "whole milliseconds, a timestamp, or inf for never",
        )
    return pc.if_else(never, FOREVER, whole.cast(pa.int64()))


def _texts_of_ends(path: Path, te: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns the ends of intervals that are written in a text file, with others that never come."""
    never = pc.is_in(pc.utf8_lower(pc.utf8_trim_whitespace(te)), pa.array(_NEVER))
    (time,), faults = fields(Stream("", ())), BadCells()
    # A column of integers that lacks some is often written as whole reals.
    whole = pc.replace_substring_regex(te, r"^(\s*[-+]?\d+)\.0*(\s*)$", r"\1\2")
    ends = from_text(pc.if_else(never, None, whole), replace(time, nullable=True), faults)
    for row, reason in faults.listed:
        hint = "whole milliseconds, a timestamp, or inf for never"
        raise InputError(f"{path}: row {row + 1}: te: {reason}", hint)
    return pc.if_else(never, FOREVER, ends)


def _flat(path: Path) -> pa.Table:
    """Reads an input with groups of columns; each leaf becomes a column."""
    with plain_files(path, SUFFIXES) as files:
        for file in files:
            if file.path.suffix.lower() not in _READERS:
                raise InputError(
                    f"{file.said}: groups of columns beside a file that has none",
                    "give a stream files of JSON and Parquet, or of CSV with columns such as at.x",
                )
        try:
            tables = [_READERS[file.path.suffix.lower()](file.path) for file in files]
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
        except pa.ArrowException as error:
            raise InputError(f"{path}: {error}") from None
    while any(pa.types.is_struct(of) for table in tables for of in table.schema.types):
        tables = [table.flatten() for table in tables]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise InputError(f"{path}: its files do not fit together: {error}") from None


def _say_nothing(text: str) -> None: ...


def read_schema(path: Path, name: str) -> Stream:
    """Returns a stream alone: from a file of rows, or from a .json of nested lists."""
    try:
        if path.suffix.lower() != ".json" or not path.read_text("utf-8").lstrip().startswith("["):
            return read_intervals(path, name)[0]
        return interval_stream(name, from_lists(name, json.loads(path.read_text("utf-8"))))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: {error}") from None


def _place(path: Path, lists: list[list[object]], parts: list[str], type: Type) -> None:
    """Enters a leaf into nested lists."""
    label, *rest = parts
    found = next((entry for entry in lists if entry[0] == label), None)
    if not rest:
        lists.append([label, shown(type)])
        return
    if found is None:
        found = [label, []]
        lists.append(found)
    inside = found[1]
    if not isinstance(inside, list):
        raise InputError(f"{path}: {label} is a column and a group of columns")
    _place(path, inside, rest, type)


def _parquet(path: Path) -> pa.Table:
    import pyarrow.parquet as pq  # slow, and of no use to other formats

    return pq.read_table(path)


_READERS: dict[str, Callable[[Path], pa.Table]] = {
    ".jsonl": pa_json.read_json,
    ".ndjson": pa_json.read_json,
    ".json": pa_json.read_json,
    ".parquet": _parquet,
}
"""The formats that have groups of columns."""
