"""The columns that the files of an input suggest, where no CREATE STREAM declares them.

    schemas     what Arrow makes of each file
    doubtful    columns that X-SQL may read otherwise than Arrow: they are read on trial
    large       columns of integers beyond 64 bits, which Arrow takes for reals

Columns of different files are the same if their names differ only in case or blanks.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json

from seustream.compiler.catalogue import TIMESTAMP_NAMES, Column, Stream
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
from seustream.csvlines import csv_names, opened
from seustream.errors import InputError
from seustream.inputs import PlainFile, plain_files
from seustream.reading import SUFFIXES, check, read_timed
from seustream.tables import fold

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
_GUESSED = (BOOLEAN, DATE, TIME, TIMESTAMP)
"""Types whose texts Arrow guesses by other rules than X-SQL reads them."""
_OF_JSON: dict[type, Type] = {bool: BOOLEAN, int: BIGINT, float: DOUBLE, str: VARCHAR}


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


def columns_of(path: Path, no_reals: Collection[str] = ()) -> pa.Table:
    """Returns a table without rows that has the columns of an input. Their types are those that hold
    in all of its files. `no_reals` names columns of which CSV files give the texts rather than reals."""
    with plain_files(path, SUFFIXES) as files:
        tables = [_plain(file) for file in files]
        texts = [(f.path, t) for f, t in zip(files, tables, strict=True) if _is_text(f.path)]
        doubtful = {fold(name) for file, table in texts for name in _doubtful(file, table)}
        large = {fold(name) for _, table in texts for name in _large(table)}
        for file, table in texts:
            same = {name for name in table.column_names if fold(name) in large}
            large -= {fold(name) for name in same if not _has_integers(file, name)}
        exact = pa.decimal128(_DIGITS, 0)
        for file, table in texts:
            for name in table.column_names:
                if fold(name) in large and not _hold(file, {name: exact}):
                    said = f"{path}: column {name} has integers of more than {_DIGITS} digits"
                    hint = "declare it by CREATE STREAM: double for the nearest, varchar for texts"
                    raise InputError(said, hint)
    every = [{fold(column.name): column.type for column in table.schema} for table in tables]
    kinds = {
        name: _common([types[fold(name)] for types in every if fold(name) in types])
        for name in tables[0].column_names
    }
    guessed = {name: kinds[name] for name in kinds if fold(name) in doubtful}
    if guessed and not _hold(path, guessed):
        wrong = [name for name, kind in guessed.items() if not _hold(path, {name: kind})]
        kinds |= dict.fromkeys(wrong, pa.string())
    kinds |= {name: exact for name in kinds if fold(name) in large}
    if all(file.suffix.lower() == ".csv" for file, _ in texts) and len(texts) == len(tables):
        kinds |= {n: pa.string() for n in kinds if fold(n) in no_reals and _is_real(kinds[n])}
    return pa.schema(list(kinds.items())).empty_table()


def _is_real(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_text(path: Path) -> bool:
    return path.suffix.lower() != ".parquet"


def _doubtful(path: Path, table: pa.Table) -> list[str]:
    """Returns the columns of a text file that X-SQL may read otherwise than Arrow: texts that Arrow
    took for something else, infinities, and integers that may be hexadecimal."""
    has_hex = _has_hex(path)
    return [
        name
        for name, column in zip(table.column_names, table.columns, strict=True)
        if type_of(column.type) in _GUESSED
        or (pa.types.is_floating(column.type) and pc.any(pc.is_inf(column)).as_py())
        or (has_hex and pa.types.is_integer(column.type))
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
    """Returns whether all cells of a column of a text file are written as integers."""
    if path.suffix.lower() != ".csv":
        with path.open("rb") as file:
            values = (json.loads(line).get(name) for line in file if line.strip())
            return not any(isinstance(value, float) for value in values)
    convert = pa_csv.ConvertOptions(
        column_types={name: pa.string()}, include_columns=[name], strings_can_be_null=True,
        null_values=[""],
    )  # fmt: skip
    cells = pa_csv.read_csv(opened(path), convert_options=convert).column(0)
    # None where there is no cell.
    return pc.all(pc.match_substring_regex(cells, r"^\s*[-+]?\d+\s*$")).as_py() is not False


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
    columns = [Column(name, of) for name, of in types.items() if of is not None]
    if not columns:
        return True
    try:
        _read_as(path, columns)
    except InputError:
        return False
    return True


def _read_as(path: Path, columns: Sequence[Column]) -> int:
    """Reads columns as these types and returns the number of rows; raises `InputError`, by line."""
    rows = read_timed(path, Stream(path.stem, tuple(columns), table=True), lambda text: None).rows
    return len(rows)


def _plain(file: PlainFile) -> pa.Table:
    """Reads a file with the types that its cells suggest; problems name the input, not what it was
    unpacked to."""
    check(file)
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
            case _:
                return _json(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except pa.ArrowException as error:
        raise InputError(f"{path}: {error}") from None


def _block(path: Path) -> int:
    """Returns the size of a block that has all of a file, as far as Arrow has such blocks."""
    return min(max(path.stat().st_size, 1), (1 << 31) - 1)


# JSON


def _json(path: Path) -> pa.Table:
    """Reads a file of JSON lines with the types that its values suggest. What is wrong with it is said by
    line, as against the first value of each member."""
    with path.open("rb") as file:
        if file.read(_BEGINNING).lstrip().startswith(b"["):
            raise InputError(f"{path}: a list", "write one object a line")
    try:
        try:
            table = pa_json.read_json(opened(path))
        except pa.ArrowInvalid:  # also where the first block suggests a type that others have not
            table = pa_json.read_json(opened(path), pa_json.ReadOptions(block_size=_block(path)))
        assert all(name is not None for name in table.column_names)  # raises for bad UTF-8
        return table
    except (pa.ArrowException, UnicodeDecodeError) as error:
        problem = str(error)
    with path.open("rb") as file:
        if not any(line.strip() for line in file):
            hint = "CREATE STREAM declares the columns of a file without rows"
            raise InputError(f"{path}: is empty, expected one JSON object a line", hint)
    members = _members(path)
    columns = [Column(name, of) for name, of in members.items() if of is not None]
    if columns or not members:
        _read_as(path, columns or [Column("ts", BIGINT)])
    raise InputError(f"{path}: {problem}")


def _members(path: Path) -> dict[str, Type | None]:
    """Returns the members of the objects in a file, with the type of their first value, None for lists and
    objects; a number may have a fraction if any has."""
    found: dict[str, Type | None] = {}
    with path.open("rb") as file:
        for line in file:
            try:
                row = json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError):
                continue
            for name, value in row.items() if isinstance(row, dict) else ():
                of = _OF_JSON.get(type(value))
                if found.get(name) is None or (of, found[name]) == (DOUBLE, BIGINT):
                    found[name] = of
    return found


# CSV


def _csv(path: Path) -> pa.Table:
    """Reads a CSV file with the types that its cells suggest. What is wrong with it is said by line."""
    convert = pa_csv.ConvertOptions(null_values=[""], strings_can_be_null=True)  # as it is read
    names = csv_names(path)
    try:
        try:
            table = pa_csv.read_csv(opened(path), convert_options=convert)
        except pa.ArrowInvalid:  # also where the first block suggests a type that others have not
            whole = pa_csv.ReadOptions(block_size=_block(path))
            table = pa_csv.read_csv(opened(path), whole, convert_options=convert)
        if not any(map(pa.types.is_binary, table.schema.types)) and "\ufffd" not in "".join(names):
            return table
        problem = "it is not UTF-8"
    except pa.ArrowException as error:
        problem = str(error)
    if not _read_as(path, [Column(name, VARCHAR) for name in names]) and names:
        return pa.schema([(name, pa.null()) for name in names]).empty_table()
    raise InputError(f"{path}: {problem}")
