"""Text in files and topics as columns of a stream, read in Spark's workers by the readers of
`seustream run`.

    value, origin, begin, whole, number  →  ts, a, b

A row is a line of a file, or a message. `origin` is the file, or the topic with its partition, and `number`
the offset of a message there. Spark divides large files of JSON: `begin` is the first byte of a task's part,
and `whole` tells whether that is all of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from seustream.compiler.catalogue import Stream
from seustream.csvlines import read_pieces
from seustream.engine.stream.schema import arrow_type
from seustream.errors import InputError
from seustream.fitting import Columns, InputFile
from seustream.jsonlines import Objects
from seustream.spark_feeder.errors import as_feed_errors
from seustream.spark_feeder.types import for_spark, spark_schema
from seustream.spark_feeder.workers import settle
from seustream.tables import Field

Source = tuple[str, int, bool]
"""An origin, its `begin`, and whether it is whole."""


def lines_of_files() -> list[Column]:
    """Returns the columns of lines from a frame of Spark's format `text`."""
    begin, length = f.col("_metadata.file_block_start"), f.col("_metadata.file_block_length")
    return [
        f.col("value").cast("binary").alias("value"),
        f.col("_metadata.file_path").alias("origin"),
        begin.alias("begin"),
        ((begin == 0) & (length >= f.col("_metadata.file_size"))).alias("whole"),
    ]


def messages() -> list[Column]:
    """Returns the columns of messages from a frame of Spark's format `kafka`."""
    return [
        f.col("value").cast("binary").alias("value"),
        f.concat(f.lit("topic "), "topic", f.lit(", partition "), "partition").alias("origin"),
        f.lit(0).cast("bigint").alias("begin"),
        f.lit(False).alias("whole"),
        f.col("offset").alias("number"),
    ]


@dataclass(frozen=True)
class LineReader:
    """Reads the lines of a stream's files, or the messages of its topic, as the columns `fields`."""

    stream: Stream
    fields: tuple[Field, ...]
    csv: bool = False

    @property
    def schema(self) -> StructType:
        """Returns the columns of the rows."""
        return spark_schema(pa.schema([(of.name, arrow_type(of.type)) for of in self.fields]))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        schema = self.schema
        with as_feed_errors():
            for source, given in groupby(_parts(batches), itemgetter(0)):
                parts = (part for _, part in given)
                for columns in (self._csv if self.csv else self._json)(source, parts):
                    rows = pa.table(columns, [of.name for of in self.fields]).combine_chunks()
                    yield from (for_spark(batch, schema) for batch in rows.to_batches())

    def _csv(self, source: Source, parts: Iterator[pa.RecordBatch]) -> Iterator[Columns]:
        file = self._file(source)
        if not source[2]:
            raise InputError(
                f"{file.said}: Spark divides this file, since its name does not end with .csv",
                "rename it",
            )
        texts = (part.column("value").to_pylist() for part in parts)
        yield from read_pieces(file, (b"".join(line + b"\n" for line in text) for text in texts))

    def _json(self, source: Source, parts: Iterator[pa.RecordBatch]) -> Iterator[Columns]:
        objects = Objects(self._file(source))
        line = 1
        for part in parts:
            is_topic = "number" in part.schema.names
            numbers = np.arange(line, line + part.num_rows)
            line += part.num_rows
            if is_topic:
                numbers = np.asarray(part.column("number"))
            objects.take(*_texts(part.column("value")), numbers)
            yield objects.columns(" offset " if is_topic else "")
        if source[2] and objects.found:
            objects.check()

    def _file(self, source: Source) -> InputFile:
        origin, begin, _ = source
        parts = urlsplit(origin)
        said = unquote(parts.path) if parts.scheme == "file" else origin
        said += f", from byte {begin}" if begin else ""
        return InputFile(Path(said), said, self.stream, self.fields, lambda text: None)


def _texts(values: pa.BinaryArray) -> tuple[bytes | pa.Buffer, npt.NDArray[np.int64]]:
    """Returns the bytes of all values, and where each begins and ends; that of NULL is empty."""
    whole = values.fill_null(b"") if values.null_count else values
    _, offsets, data = whole.buffers()
    ends = np.frombuffer(offsets, np.int32)[whole.offset : whole.offset + len(whole) + 1]
    return b"" if data is None else data, ends.astype(np.int64)


def _parts(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Source, pa.RecordBatch]]:
    """Yields the rows of each source by themselves."""
    for batch in batches:
        if not batch.num_rows:
            continue
        origins = np.asarray(batch.column("origin").dictionary_encode().indices)
        begins = np.asarray(batch.column("begin"))
        others = (np.diff(origins) != 0) | (np.diff(begins) != 0)
        ends = [*(np.flatnonzero(others) + 1).tolist(), batch.num_rows]
        for begin, end in zip([0, *ends], ends, strict=False):
            part = batch.slice(begin, end - begin)
            names = ("origin", "begin", "whole")
            origin, first, whole = (part.column(name)[0].as_py() for name in names)
            yield (origin, first, whole), part
