"""Result tables into files, so that all of a run's files appear or none does, or to stdout.

Rows become text by Arrow's functions on whole columns; only texts that need escapes, and
nested values, are written one by one.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Protocol, Self, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from seustream.errors import OutputError

FORMATS = ("csv", "jsonl", "parquet")

_ROWS_AT_ONCE = 1 << 14
_ROWS_OF_A_GROUP = 1 << 17
_QUERY = "query"


class Writer:
    """The result file of one query. It stays a temporary file beside its place until
    `commit`, which puts it there at once and whole; `abort` removes it."""

    def __init__(self, path: Path, schema: pa.Schema, format: str) -> None:
        _check_names(path.stem, schema.names, format)
        self.path = path
        self.schema = schema
        self._format = format
        self._temporary: Path | None = None
        self._backup: Path | None = None
        self._file: BinaryIO | None = None
        self._encoder: _Encoder | None = None
        self._finished = self._published = False

    def write(self, table: pa.Table | pa.RecordBatch) -> None:
        """Appends rows. Their columns must be the schema's."""
        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        _check_types(table.schema, self.schema)
        with _blaming(self.path):
            self._open().write(table)

    def commit(self) -> None:
        """Puts the file in its place; one without rows too."""
        try:
            self.finish()
            self.publish()
        except BaseException:
            self.abort()
            raise
        self.settle()

    def abort(self) -> None:
        """Removes what was written and brings back the file that was there."""
        with suppress(Exception):
            if self._encoder is not None and not self._finished:
                self._encoder.close()
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
        self.retract()
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)
        self._finished = True

    # The steps of a commit, which `OutputSet` takes for several writers at a time.

    def finish(self) -> None:
        """Everything that can be expected to fail, such as a full disk: writes to the end."""
        if self._finished:
            return
        with _blaming(self.path):
            _check_place(self.path)
            self._open().close()
            assert self._file is not None
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        self._finished = True

    def publish(self) -> None:
        """Renames into place, keeping the file that was there under another name."""
        assert self._temporary is not None
        with _blaming(self.path):
            _check_place(self.path)
            if os.path.lexists(self.path):
                backup = _unused(self.path.parent)
                try:
                    os.link(self.path, backup, follow_symlinks=False)
                except (OSError, NotImplementedError):  # a file system without hard links
                    self.path.replace(backup)
                self._backup = backup
            self._temporary.replace(self.path)
        self._published = True

    def retract(self) -> None:
        """Undoes `publish`."""
        if self._backup is not None:
            with suppress(OSError):
                self._backup.replace(self.path)  # does nothing if both are one file still
                self._backup.unlink(missing_ok=True)
        elif self._published:
            self.path.unlink(missing_ok=True)
        self._backup, self._published = None, False

    def settle(self) -> None:
        """Nothing will be undone any more."""
        if self._backup is not None:
            with suppress(OSError):
                self._backup.unlink(missing_ok=True)
        self._backup, self._published = None, False

    def _open(self) -> _Encoder:
        if self._finished:
            raise ValueError(f"{self.path} is closed")
        if self._encoder is None:
            self._temporary = _unused(self.path.parent)
            self._file = self._temporary.open("xb")
            self._encoder = _encoder(self._format, self._file, self.schema)
        return self._encoder


class OutputSet:
    """The result files of several queries, `<query>.<format>` in one directory.

    As a context manager it makes the directory if there is none. Leaving it commits all files;
    leaving it by an exception removes them, and the directory if it was made here, and leaves
    files of these names from before as they were. `commit` may be called earlier.

    Without a directory (None or "-") rows go to stdout as they come. JSON lines have the query
    as first member there; CSV works for one query, Parquet not at all.
    """

    def __init__(
        self,
        directory: Path | str | None,
        format: str,
        schemas: Mapping[str, pa.Schema],
        stdout: BinaryIO | None = None,
    ) -> None:
        if format not in FORMATS:
            raise OutputError(f"unknown format {format!r}", f"formats: {', '.join(FORMATS)}")
        self._directory = None if directory is None or str(directory) == "-" else Path(directory)
        self._schemas = dict(schemas)
        self._made: list[Path] = []
        self._done = False
        self._writers: dict[str, Writer] = {}
        self._encoders: dict[str, _Encoder] = {}
        if self._directory is None:
            self._to_stdout(format, stdout)
        else:
            _check_file_names(self._schemas, format)
            self._writers = {
                name: Writer(self._directory / f"{name}.{format}", schema, format)
                for name, schema in self._schemas.items()
            }

    @property
    def paths(self) -> dict[str, Path]:
        """The file of each query; none on stdout."""
        return {name: writer.path for name, writer in self._writers.items()}

    def __enter__(self) -> Self:
        if self._writers and self._directory is not None:
            try:
                self._make(self._directory)
                for writer in self._writers.values():
                    with _blaming(writer.path):
                        _check_place(writer.path)
            except BaseException:
                self.abort()
                raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.commit()
        else:
            self.abort()

    def write(self, name: str, table: pa.Table | pa.RecordBatch) -> None:
        """Appends rows to the results of one query."""
        if name in self._writers:
            self._writers[name].write(table)
            return
        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        _check_types(table.schema, self._schemas[name])
        self._encoders[name].write(table)

    def commit(self) -> None:
        """All files into place. The files are complete before the first is renamed, and if a
        rename fails, those before it are undone."""
        if self._done:
            return
        try:
            for encoder in self._encoders.values():
                encoder.close()
            for writer in self._writers.values():
                writer.finish()
            for writer in self._writers.values():
                writer.publish()
        except BaseException:
            self.abort()
            raise
        self._done = True
        for writer in self._writers.values():
            writer.settle()

    def abort(self) -> None:
        if self._done:
            return
        self._done = True
        for writer in self._writers.values():
            writer.abort()
        for directory in reversed(self._made):
            with suppress(OSError):  # no longer empty
                directory.rmdir()

    def _to_stdout(self, format: str, stdout: BinaryIO | None) -> None:
        if format == "parquet":
            raise OutputError(
                "Parquet cannot go to stdout", "use --format jsonl, or -o with a directory"
            )
        if format == "csv" and len(self._schemas) > 1:
            raise OutputError(
                f"the results of {len(self._schemas)} queries cannot be one CSV on stdout, "
                "their columns differ",
                "use --format jsonl, or -o with a directory",
            )
        file = sys.stdout.buffer if stdout is None else stdout
        for name, schema in self._schemas.items():
            columns = [_QUERY, *schema.names] if format == "jsonl" else schema.names
            _check_names(name, columns, format)
            self._encoders[name] = _encoder(format, file, schema, name)

    def _make(self, directory: Path) -> None:
        missing = [p for p in (directory, *directory.parents) if not p.exists()]
        with _blaming(directory):
            for one in reversed(missing):
                one.mkdir(exist_ok=True)
                self._made.append(one)
            if not directory.is_dir():
                raise NotADirectoryError(None, "not a directory")


def _unused(directory: Path) -> Path:
    """A name for a temporary file. Short, since the query's own may be as long as names go."""
    return directory / f".{secrets.token_hex(8)}.tmp"


@contextmanager
def _blaming(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error


def _check_place(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(None, "is a directory")


def _check_file_names(schemas: Mapping[str, pa.Schema], format: str) -> None:
    messages = [
        f"query {name!r} cannot name a file"
        for name in schemas
        if not name or any(mark in name for mark in "/\\\0")
    ]
    same = Counter(name.casefold() for name in schemas)
    messages += [
        f"query {name!r} has the file name of another, {name}.{format}, but for case"
        for name in schemas
        if same[name.casefold()] > 1
    ]
    if messages:
        raise OutputError(messages, "REGISTER QUERY gives a query another name")


def _check_names(query: str, names: Sequence[str], format: str) -> None:
    """JSON and Parquet readers would lose all but one of the columns of a name."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice and format != "csv":
        raise OutputError(
            [f"query {query} has {Counter(names)[name]} columns {name}" for name in twice],
            "AS gives a column another name; with --format csv they may be the same",
        )


def _check_types(found: pa.Schema, expected: pa.Schema) -> None:
    if found.names != expected.names or found.types != expected.types:
        raise ValueError(f"rows of another schema: {found}, expected {expected}")


# Formats


class _Encoder(Protocol):
    """Rows into bytes on a file; `close` ends the format but leaves the file open."""

    def write(self, table: pa.Table) -> None: ...

    def close(self) -> None: ...


def _encoder(format: str, file: BinaryIO, schema: pa.Schema, query: str | None = None) -> _Encoder:
    """`query` is for JSON lines only, where it becomes a member of each object."""
    match format:
        case "csv":
            return _Lines(file, _csv_pieces(schema.names), _csv_cell, _csv_header(schema.names))
        case "jsonl":
            return _Lines(file, _json_pieces(schema.names, query), _json_value)
        case _:
            return _Parquet(file, schema)


class _Lines:
    """A text format with a line for each row: pieces of fixed text around the values."""

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
        self._schema = schema
        self._writer = pq.ParquetWriter(file, schema)
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
    """The bytes of an array of texts, which stand one after the other already."""
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
    """Values as text: ISO for dates and times, milliseconds for intervals, JSON for what is
    nested."""
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
            # A year past those Arrow can spell. numpy can, and years are all that differs.
            zone = "Z" if cast("Any", values.type).tz else ""
            spelled = np.datetime_as_string(values.to_numpy(zero_copy_only=False))
            nulls = np.asarray(values.is_null())
            return pa.array([f"{s}{zone}" for s in spelled], pa.string(), mask=nulls)
        text = _string(pc.replace_substring(text, " ", "T"))
    return text


def _string(values: object) -> pa.Array[Any]:
    return cast("pa.Array[Any]", values)


def _csv_pieces(names: Sequence[str]) -> list[str]:
    return ["", *[","] * (len(names) - 1), "\n"]


def _csv_header(names: Sequence[str]) -> str:
    cells = cast("list[str]", _csv_cell(pa.array(names, pa.string())).to_pylist())
    return ",".join(cells) + "\n"


def _csv_cell(values: pa.Array[Any]) -> pa.Array[Any]:
    """NULL is an empty cell. An empty text is in quotes, as is one with marks of the format."""
    text = _spelled(values)
    quoted = _string(pc.match_substring_regex(text, '^$|[",\r\n]'))
    if pc.any(quoted).as_py():
        doubled = pc.replace_substring(text, '"', '""')
        inside = pc.binary_join_element_wise('"', doubled, '"', "")
        text = _string(pc.if_else(quoted, inside, text))
    return _string(pc.fill_null(text, ""))


def _json_pieces(names: Sequence[str], query: str | None) -> list[str]:
    first = "{" if query is None else f'{{"{_QUERY}": {_json(query)}, '
    keys = [f"{_json(name)}: " for name in names]
    return [first + keys[0], *(f", {key}" for key in keys[1:]), "}\n"]


def _json_value(values: pa.Array[Any]) -> pa.Array[Any]:
    """Numbers and booleans as themselves, NaN and infinities as strings: JSON lacks them."""
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
    """Nested results may hold what JSON has no form for."""
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
