"""Streams of a `run` that APAS queries define: computed from the input files before all else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from compiler.apas.compile import Compiled
from compiler.catalogue import Stream
from compiler.plan.logical import Program
from compiler.xsql.intervals import END, leaves, tree_of
from engine.host.stores import stream_schema
from engine.stream.schema import arrow_type
from engine.temporal.columnar.run import ColumnarRun
from engine.temporal.elements import FOREVER


@dataclass(slots=True)
class ApasReport:
    """What became of the APAS queries, by stream: results, and rows they could not take, why."""

    results: dict[str, int] = field(default_factory=dict)
    refused: dict[str, dict[str, int]] = field(default_factory=dict)


def read_by_apas(program: Program) -> set[str]:
    """The base streams they read."""
    return {name for c in program.apas.values() for name in c.network.sources}


def run_apas_streams(
    program: Program,
    tables: Mapping[str, pa.Table],
) -> tuple[dict[str, pa.Table], ApasReport]:
    """The rows of every stream an APAS query of the program defines. `tables` are the rows of base
    streams that are not late."""
    known = {stream.name: stream for stream in program.streams}
    report = ApasReport()
    found = {}
    for name, c in program.apas.items():
        run = ColumnarRun(c, {source: tree_of(known[source]) for source in c.network.sources})
        for source in c.network.sources:
            rows = _in_order(_intervals(known[source], tables[source]))
            run.push(source, rows)
        found[name] = _rows(known[name], c, list(run.finish()))
        report.results[name] = found[name].num_rows
        for source, reasons in run.reasons.items():
            report.refused[source] = dict(reasons)
    return found, report


def _intervals(stream: Stream, rows: pa.Table) -> pa.Table:
    """Rows of a base stream as tuples that hold from ts to te; of points, te is ts."""
    begin = rows["ts"].cast(pa.int64())
    ends = next((c for c in stream.columns if c.name == END and c.type.is_integer), None)
    end = begin if ends is None else pc.coalesce(rows[END].cast(pa.int64()), begin)
    types = tree_of(stream).types
    columns = [
        rows[column.name].cast(arrow_type(type))
        for column, type in zip(leaves(stream), types, strict=True)
    ]
    names = ["ts", "te", *(column.name for column in leaves(stream))]
    return pa.table([begin, end, *columns], names=names)


def _in_order(rows: pa.Table) -> pa.Table:
    """As APAS takes them, by (ts, te)."""
    order = np.lexsort((rows["te"].to_numpy(), rows["ts"].to_numpy()))
    return rows.take(pa.array(order))


def _rows(stream: Stream, c: Compiled, results: list[pa.Table]) -> pa.Table:
    """Results as rows of the stream: the begin is the time, the end a column."""
    target = stream_schema(stream)
    if not results:
        return target.empty_table()
    whole = pa.concat_tables(results)
    end = pc.if_else(pc.equal(whole["te"], FOREVER), pa.scalar(None, pa.int64()), whole["te"])
    columns = [whole["ts"], end, *whole.columns[2:]]
    table = pa.Table.from_arrays(columns, names=target.names).cast(target)
    order = np.argsort(table["ts"].to_numpy(), kind="stable")
    return table.take(pa.array(order))
