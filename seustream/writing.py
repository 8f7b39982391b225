"""Writes result tables into files, so that all of a run's files appear or none does, or to stdout."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import pyarrow as pa

from seustream.encoding import QUERY_MEMBER, Encoder, encoder_of
from seustream.errors import OutputError
from seustream.files import Replacement, check_place

FORMATS = ("csv", "jsonl", "parquet")


class Writer:
    """Writes the result file of one query. It stays a temporary file beside its place until
    `commit`, which moves it there atomically; `abort` removes it."""

    def __init__(self, path: Path, schema: pa.Schema, format: str) -> None:
        _check_names(path.stem, schema.names, format)
        self.path = path
        self.schema = schema
        self._format = format
        self._place: Replacement | None = None
        self._file: BinaryIO | None = None
        self.encoder_of: Encoder | None = None
        self._finished = False

    def write(self, table: pa.Table | pa.RecordBatch) -> None:
        """Appends rows. Their columns must match the schema."""
        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        _check_types(table.schema, self.schema)
        with _blaming(self.path):
            self._open().write(table)

    def commit(self) -> None:
        """Moves the file into its place, even one without rows."""
        try:
            self.finish()
            self.publish()
        except BaseException:
            self.abort()
            raise
        self.settle()

    def abort(self) -> None:
        """Removes what was written and restores the previous file."""
        with suppress(Exception):
            if self.encoder_of is not None and not self._finished:
                self.encoder_of.close()
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
        if self._place is not None:
            self._place.abort()
        self._finished = True

    # The steps of a commit, which `OutputSet` interleaves for several writers.

    def finish(self) -> None:
        """Writes to the end, which includes every step that is likely to fail, such as on a full
        disk."""
        if self._finished:
            return
        with _blaming(self.path):
            check_place(self.path)
            self._open().close()
            assert self._file is not None
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        self._finished = True

    def publish(self) -> None:
        """Renames into place, and keeps the previous file under another name."""
        assert self._place is not None
        with _blaming(self.path):
            self._place.publish()

    def settle(self) -> None:
        """Makes the commit final: nothing will be undone any more."""
        assert self._place is not None
        self._place.settle()

    def _open(self) -> Encoder:
        if self._finished:
            raise ValueError(f"{self.path} is closed")
        if self.encoder_of is None:
            self._place = Replacement(self.path)
            self._file = self._place.temporary.open("xb")
            self.encoder_of = encoder_of(self._format, self._file, self.schema)
        return self.encoder_of


class OutputSet:
    """Writes the result files of several queries, `<query>.<format>` in one directory.

    As a context manager it creates the directory if it is missing. Leaving it commits all files.
    Leaving it by an exception removes them, and the directory if it was created here, and keeps
    earlier files of these names unchanged. `commit` may be called earlier.

    Without a directory (None or "-") rows go to stdout as they come. JSON lines have the query as
    first member there; CSV works for one query, Parquet not at all.
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
        self.done = False
        self._writers: dict[str, Writer] = {}
        self._encoders: dict[str, Encoder] = {}
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
        """Returns the file of each query; none on stdout."""
        return {name: writer.path for name, writer in self._writers.items()}

    def __enter__(self) -> Self:
        if self._writers and self._directory is not None:
            try:
                self._make(self._directory)
                for writer in self._writers.values():
                    with _blaming(writer.path):
                        check_place(writer.path)
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

    @property
    def writers(self) -> list[Writer]:
        return list(self._writers.values())

    def end_streams(self) -> None:
        """Ends what goes to stdout."""
        for encoder in self._encoders.values():
            encoder.close()

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
        """Moves all files into place. The files are complete before the first is renamed, and if a
        rename fails, those before it are undone."""
        commit_all([self])

    def abort(self) -> None:
        if self.done:
            return
        self.done = True
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
        if stdout is None and sys.__stdout__ is None:
            raise OutputError("stdout is closed", "give -o a directory")
        file = sys.stdout.buffer if stdout is None else stdout
        for name, schema in self._schemas.items():
            columns = [QUERY_MEMBER, *schema.names] if format == "jsonl" else schema.names
            _check_names(name, columns, format)
            self._encoders[name] = encoder_of(format, file, schema, name)

    def _make(self, directory: Path) -> None:
        missing = [p for p in (directory, *directory.parents) if not p.exists()]
        with _blaming(directory):
            for one in reversed(missing):
                one.mkdir(exist_ok=True)
                self._made.append(one)
            if not directory.is_dir():
                raise NotADirectoryError(None, "not a directory")


def commit_all(sets: Sequence[OutputSet]) -> None:
    """Commits several sets, as if they were one."""
    sets = [one for one in sets if not one.done]
    writers = [writer for one in sets for writer in one.writers]
    try:
        for one in sets:
            one.end_streams()
        for writer in writers:
            writer.finish()
        for writer in writers:
            writer.publish()
    except BaseException:
        for one in sets:
            one.abort()
        raise
    for one in sets:
        one.done = True
    for writer in writers:
        writer.settle()


@contextmanager
def _blaming(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error


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
    """Refuses duplicate names: JSON and Parquet readers would lose all but one of the columns of a
    name."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice and format != "csv":
        raise OutputError(
            [f"query {query} has {Counter(names)[name]} columns {name}" for name in twice],
            "AS gives a column another name; with --format csv they may be the same",
        )


def _check_types(found: pa.Schema, expected: pa.Schema) -> None:
    if found.names != expected.names or found.types != expected.types:
        raise ValueError(f"rows of another schema: {found}, expected {expected}")
