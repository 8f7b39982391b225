"""Input files of APAS queries: columns ts, te and one for each leaf, by dotted path.

The language has no CREATE STREAM: a file defines its stream's schema, as a source's HEADER does. If
`te` is missing, in the file or in a row, it equals ts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json

from seustream.compiler.apas.tree import RESERVED, SchemaRefused, from_lists
from seustream.compiler.apas.types import shown
from seustream.compiler.catalogue import Stream
from seustream.compiler.language.types import Type
from seustream.compiler.xsql.intervals import interval_stream
from seustream.engine.stream.schema import arrow_type
from seustream.engine.temporal.elements import FOREVER
from seustream.errors import InputError, UserError
from seustream.frames import type_of
from seustream.reading import Tuples

T = TypeVar("T")


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
    """Returns the stream of a file, and its rows: ts, te as integers, then the leaves in order.
    Raises `InputError`."""
    try:
        reader = _READERS.get(path.suffix.lower())
        if reader is None:
            known = ", ".join(_READERS)
            raise InputError(f"{path}: unknown format, the known suffixes are {known}")
        table = reader(path)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except pa.ArrowInvalid as error:
        raise InputError(f"{path}: {error}") from None
    if "ts" not in table.column_names:
        raise InputError(f"{path}: no time column, expected one named ts")
    if len(set(table.column_names)) < table.num_columns:
        raise InputError(f"{path}: two columns of one name")
    ts = _time(path, "ts", table.column("ts"))
    te = _time(path, "te", table.column("te")) if "te" in table.column_names else ts
    if ts.null_count:
        row = int(np.flatnonzero(np.asarray(ts.is_null()))[0])
        raise InputError(f"{path}: row {row + 1}: no ts")
    te = pc.coalesce(te, ts)
    lists: list[list[object]] = []
    for column in table.schema:
        if column.name not in RESERVED:
            of = type_of(column.type)
            if of is None:
                raise InputError(
                    f"{path}: column {column.name}: {column.type} is none of the types of a leaf"
                )
            _place(path, lists, column.name.split("."), of)
    try:
        tree = from_lists(name, lists)
    except SchemaRefused as error:
        raise InputError(f"{path}: {error}") from None
    # Leaves of one group are adjacent in the tree, whatever their order in the file.
    columns = [
        table.column(".".join(leaf)).cast(arrow_type(type))
        for leaf, type in zip(tree.paths, tree.types, strict=True)
    ]
    rows = pa.table([ts, te, *columns], names=[*RESERVED, *map(".".join, tree.paths)])
    return interval_stream(name, tree), Tuples(rows, pa.int64())


def read_schema(path: Path, name: str) -> Stream:
    """Returns a stream alone: from a file of rows, or from a .json of nested lists."""
    if path.suffix.lower() != ".json":
        return read_intervals(path, name)[0]
    try:
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


def _time(path: Path, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Converts times to milliseconds; inf means never."""
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return column.cast(pa.timestamp("ms")).cast(pa.int64())
    if pa.types.is_floating(column.type) and name == "te":
        whole = pc.if_else(pc.equal(column, float("inf")), None, column).cast(pa.int64())
        return pc.if_else(pc.equal(column, float("inf")), FOREVER, whole)
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    raise InputError(f"{path}: column {name}: {column.type}, want milliseconds or a timestamp")


def _parquet(path: Path) -> pa.Table:
    import pyarrow.parquet as pq  # slow, and of no use to other formats

    return pq.read_table(path).flatten()


_READERS: dict[str, Callable[[Path], pa.Table]] = {
    ".csv": lambda path: pa_csv.read_csv(path),
    ".jsonl": lambda path: pa_json.read_json(path).flatten(),
    ".parquet": _parquet,
}
