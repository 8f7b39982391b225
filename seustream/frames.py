"""Rows from Python: turns users' frames into rows of a stream.

before  a pandas frame with columns ts, id, customer
after   the stream `orders (id bigint, customer varchar)`, and an Arrow table of its rows
"""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json

from seustream.compiler.catalogue import TIMESTAMP_NAMES, Column, Stream
from seustream.compiler.errors import Problems, SourceText
from seustream.compiler.language.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    VARCHAR,
    Type,
    decimal,
)
from seustream.compiler.pattern.tree import Header
from seustream.compiler.xsql import tree
from seustream.compiler.xsql.parse import parse
from seustream.errors import InputError
from seustream.fitting import separator_hint
from seustream.inputs import PlainFile, plain_files
from seustream.reading import SUFFIXES, Tuples, csv_names, opened, read_timed, take_table
from seustream.tables import fold

Rows = Any
"""Arrow tables, batches and readers, pandas and Polars frames, DuckDB relations, anything with the
Arrow stream interface, a dict of columns, a list of dicts, or the path of a file."""

_SIMPLE: tuple[tuple[tuple[str, ...], Type], ...] = (
    (("int8", "int16", "uint8"), SMALLINT),
    (("int32", "uint16"), INT),
    (("int64", "uint32", "uint64"), BIGINT),
    (("float16", "float32"), REAL),
    (("float64",), DOUBLE),
    (("string", "large_string", "string_view", "null"), VARCHAR),
    (("boolean",), BOOLEAN),
    (("date",), DATE),
    (("time",), TIME),
    (("timestamp",), TIMESTAMP),
    (("duration",), INTERVAL),
)
_DIGITS = 38
_BEGINNING = 1 << 12
"""Bytes in which the first sign of a file stands, behind blanks."""


def is_path(rows: Rows) -> bool:
    """Returns whether the rows are the path of a file."""
    return isinstance(rows, (str, Path))


def readable(name: str, rows: Rows) -> Rows:
    """Returns rows that can be read several times; a reader has its rows once."""
    return rows if is_path(rows) else table_of(name, rows)


def tuples_of(name: str, rows: Rows, stream: Stream) -> Tuples:
    """Returns the rows of a known stream; raises `InputError` for rows that do not belong to it.
    Extra columns of a frame are ignored without a warning, since they are common there."""
    if is_path(rows):
        return read_timed(Path(rows), stream, lambda text: None)
    return take_table(name, table_of(name, rows), stream)


def stream_of(name: str, rows: Rows) -> Stream:
    """Derives the stream of some rows from their columns; raises `InputError` for a type that X-SQL
    lacks."""
    table = columns_of(Path(rows)) if is_path(rows) else table_of(name, rows)
    columns = []
    for column in table.schema:
        if fold(column.name) in TIMESTAMP_NAMES:
            continue
        found = type_of(column.type)
        if found is None:
            raise InputError(
                f"{name}: column {column.name} has type {column.type}, which no stream has",
                "leave it out, or convert it; CREATE STREAM names the columns to take",
            )
        columns.append(Column(column.name, found))
    _check_names(name, [column.name for column in columns])
    if len(columns) == len(table.schema):
        names = table.column_names
        other = separator_hint(names)
        raise InputError(
            f"{name}: no time column, expected one named ts, there are {', '.join(names)}",
            other
            or "integer milliseconds or timestamps; CREATE STREAM … WITH (time = 'column')"
            " names another column",
        )
    return Stream(name, tuple(columns))


def _check_names(stream: str, names: Sequence[str]) -> None:
    spelled: dict[str, list[str]] = {}
    for name in names:
        spelled.setdefault(fold(name), []).append(name)
    for same in spelled.values():
        if len(same) > 1:
            raise InputError(
                f"{stream}: column {same[0]} is there {len(same)} times: {', '.join(map(repr, same))}",
                "rename one; letter case does not tell columns apart",
            )


def declarations(text: str, whole: bool = False) -> set[str]:
    """Returns the streams that a text creates, folded. With `whole`, raises `CompileError` if a
    statement cannot be read."""
    source, problems, found = SourceText(text, "<sql>"), Problems(), set()
    statements = parse(source, problems)
    if whole:
        problems.raise_any(source)
    for statement in statements:
        if isinstance(statement, tree.CreateStream | tree.CreateStreamAs | tree.CreateStreamApas):
            found.add(statement.name.text.lower())
        header = getattr(statement, "header", None)  # of a pattern
        if isinstance(header, Header) and header.verb == "create" and header.name is not None:
            found.add(header.name.text.lower())
    return found


def has_word(text: str, name: str) -> bool:
    """Returns whether a name occurs in a text."""
    return re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE) is not None


def declared(stream: Stream) -> str:
    """Returns the statement that creates a stream."""
    columns = (f"{_quoted(column.name)} {column.type}" for column in stream.columns)
    return f"CREATE STREAM {_quoted(stream.name)} ({', '.join(columns)});"


def table_of(name: str, rows: Rows) -> pa.Table:
    """Converts rows in any of these forms to an Arrow table."""
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    try:
        if isinstance(rows, Mapping):
            return _of_columns(name, rows)
        if hasattr(rows, "__arrow_c_stream__"):
            return pa.table(rows)
        if hasattr(rows, "collect_schema"):  # a lazy frame of Polars
            return pa.table(rows.collect())
        if hasattr(rows, "to_arrow_table"):  # a DuckDB relation
            return pa.table(rows.to_arrow_table())
        if hasattr(rows, "read_all"):
            return pa.table(rows.read_all())
        if hasattr(rows, "iloc") and hasattr(rows, "columns"):
            return pa.Table.from_pandas(rows, preserve_index=False)
        if isinstance(rows, Sequence) and all(isinstance(row, Mapping) for row in rows):
            if not rows:
                raise InputError(
                    f"{name}: an empty list has no columns", "give a table with a schema"
                )
            names = list(dict.fromkeys(key for row in rows for key in row))
            return _of_columns(name, {key: [row.get(key) for row in rows] for key in names})
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name}: {error}") from None
    raise InputError(
        f"{name}: {type(rows).__name__} is no table",
        "an Arrow table, a pandas or Polars frame, a DuckDB relation, a dict of columns, a list of"
        " dicts, or the path of a file",
    )


def _of_columns(name: str, columns: Mapping[Any, Any]) -> pa.Table:
    found = {}
    for key, values in columns.items():
        try:
            found[key] = values if isinstance(values, pa.ChunkedArray) else pa.array(values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{name}: column {key}: {error}") from None
    return pa.table(found)


def type_of(kind: pa.DataType) -> Type | None:
    """Returns the type of a column, None for one that no stream has."""
    if pa.types.is_dictionary(kind):
        return type_of(kind.value_type)
    if pa.types.is_decimal(kind):
        return decimal(kind.precision, kind.scale) if kind.precision <= _DIGITS else None
    for names, found in _SIMPLE:
        if any(getattr(pa.types, f"is_{name}")(kind) for name in names):
            return found
    return None


def columns_of(path: Path) -> pa.Table:
    """Returns a table without rows that has the columns of an input. Their types are those that hold
    in all of its files."""
    with plain_files(path, SUFFIXES) as files:
        tables = [_plain(file) for file in files]
        schemas = [table.schema for table in tables]
        has_types = files[0].path.suffix.lower() == ".parquet"
        odd = set[str]() if has_types else {name for t in tables for name in _infinite(t)}
        if any(_has_hex(file.path) for file in files):
            odd |= {c.name for s in schemas for c in s if pa.types.is_integer(c.type)}
        large = set[str]() if has_types else {name for t in tables for name in _large(t)}
        large = {n for n in large if all(_has_integers(file.path, n) for file in files)}
    every = [{column.name: column.type for column in schema} for schema in schemas]
    kinds = {
        column.name: _common([types[column.name] for types in every if column.name in types])
        for column in schemas[0]
    }
    if not has_types:
        guessed = {
            name: kind for name, kind in kinds.items() if type_of(kind) in _GUESSED or name in odd
        }
        if guessed and not _hold(path, guessed):
            wrong = [name for name, kind in guessed.items() if not _hold(path, {name: kind})]
            kinds |= dict.fromkeys(wrong, pa.string())
    for name in large:
        kinds[name] = exact = pa.decimal128(_DIGITS, 0)
        if not _hold(path, {name: exact}):
            said = f"{path}: column {name} has integers of more than {_DIGITS} digits"
            hint = "declare it by CREATE STREAM: double for the nearest, varchar for texts"
            raise InputError(said, hint)
    return pa.schema(list(kinds.items())).empty_table()


_GUESSED = (BOOLEAN, DATE, TIME, TIMESTAMP)
"""Types whose texts Arrow guesses by other rules than X-SQL reads them."""


def _infinite(table: pa.Table) -> list[str]:
    """Returns the columns of reals that have an infinity, which Arrow takes for all that is too
    large."""
    return [
        name
        for name, column in zip(table.column_names, table.columns, strict=True)
        if pa.types.is_floating(column.type) and pc.any(pc.is_inf(column)).as_py()
    ]


def _large(table: pa.Table) -> list[str]:
    """Returns the columns of reals with a number beyond 64-bit integers. Arrow takes whole numbers that
    are as large for reals, among which different ones are equal."""
    return [
        name
        for name, column in zip(table.column_names, table.columns, strict=True)
        if pa.types.is_floating(column.type)
        and pc.any(pc.greater_equal(pc.abs(column), 2.0**63)).as_py()
    ]


def _has_integers(path: Path, name: str) -> bool:
    """Returns whether all cells of a column are written as integers."""
    if path.suffix.lower() != ".csv":
        with path.open("rb") as file:
            values = (json.loads(line).get(name) for line in file if line.strip())
            return not any(isinstance(value, float) for value in values)
    convert = pa_csv.ConvertOptions(
        column_types={name: pa.string()}, include_columns=[name], strings_can_be_null=True,
        null_values=[""],
    )  # fmt: skip
    cells = pa_csv.read_csv(opened(path), convert_options=convert).column(0)
    return bool(pc.all(pc.match_substring_regex(cells, r"^\s*[-+]?\d+\s*$")).as_py())


def _has_hex(path: Path) -> bool:
    """Returns whether an integer in a CSV file may be hexadecimal, as Arrow reads it."""
    if path.suffix.lower() != ".csv" or not path.stat().st_size:
        return False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(b"0x") >= 0 or data.find(b"0X") >= 0


def _common(kinds: Sequence[pa.DataType]) -> pa.DataType:
    """Returns the type of a column that has several in different files."""
    found = [kind for kind in dict.fromkeys(kinds) if not pa.types.is_null(kind)]
    if len(found) < 2:
        return found[0] if found else kinds[0]
    try:
        each = [pa.schema([("", kind)]) for kind in found]
        return pa.unify_schemas(each, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return pa.string()


def _hold(path: Path, kinds: Mapping[str, pa.DataType]) -> bool:
    """Returns whether columns read as the types that were guessed; their time is of no interest."""
    types = {n: type_of(kind) for n, kind in kinds.items() if fold(n) not in TIMESTAMP_NAMES}
    columns = tuple(Column(name, of) for name, of in types.items() if of is not None)
    if not columns:
        return True
    try:
        read_timed(path, Stream(path.stem, columns, table=True), lambda text: None)
    except InputError:
        return False
    return True


def _plain(file: PlainFile) -> pa.Table:
    """Reads a file with the types that its cells suggest; problems name the input, not what it was
    unpacked to."""
    try:
        return _read(file.path)
    except InputError as error:
        said = [message.replace(str(file.path), file.said) for message in error.messages]
        raise InputError(said, error.hint, error.total) from None


def _read(path: Path) -> pa.Table:
    try:
        match path.suffix.lower():
            case ".parquet":
                import pyarrow.parquet as pq

                file = pq.ParquetFile(opened(path), coerce_int96_timestamp_unit="us")
                return file.schema_arrow.empty_table()
            case ".csv":
                return _csv(path)
            case ".json" | ".jsonl" | ".ndjson":
                with path.open("rb") as file:
                    if file.read(_BEGINNING).lstrip().startswith(b"["):
                        raise InputError(f"{path}: a list", "write one object a line")
                return _json(path)
            case _:
                raise InputError(
                    f"{path}: unknown format, the known suffixes are .csv, .jsonl, .ndjson, .json,"
                    " .parquet"
                )
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except pa.ArrowException as error:
        raise InputError(f"{path}: {error}") from None


def _json(path: Path) -> pa.Table:
    try:
        return pa_json.read_json(opened(path))
    except pa.ArrowInvalid:  # also where the first block suggests a type that others have not
        return pa_json.read_json(opened(path), pa_json.ReadOptions(block_size=_block(path)))


def _block(path: Path) -> int:
    """Returns the size of a block that has all of a file, as far as Arrow has such blocks."""
    return min(max(path.stat().st_size, 1), (1 << 31) - 1)


def _csv(path: Path) -> pa.Table:
    """Reads a CSV file with the types that its cells suggest. What is wrong with it is said by line."""
    convert = pa_csv.ConvertOptions(null_values=[""], strings_can_be_null=True)  # as it is read
    try:
        try:
            table = pa_csv.read_csv(opened(path), convert_options=convert)
        except pa.ArrowInvalid:  # also where the first block suggests a type that others have not
            whole = pa_csv.ReadOptions(block_size=_block(path))
            table = pa_csv.read_csv(opened(path), whole, convert_options=convert)
        if not any(map(pa.types.is_binary, table.schema.types)):
            return table
        problem = "it is not UTF-8"
    except pa.ArrowException as error:
        problem = str(error)
    texts = tuple(Column(name, VARCHAR) for name in csv_names(path))
    read_timed(path, Stream(path.stem, texts, table=True), lambda text: None)
    raise InputError(f"{path}: {problem}")


def _quoted(name: str) -> str:
    """Quotes a name so that X-SQL reads it, whatever it contains."""
    if '"' in name or "\n" in name or not name:
        raise InputError(f"{name!r} cannot name a stream or a column", "rename it in the frame")
    return f'"{name}"'
