"""The rows that a page goes through, and rows as JSON.

before  rows of a stream, a frame or a file, in any order
after   those that a run takes, in the order in which it does, so that its n-th tuple of the stream is row n;
        and those that it leaves out
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from seustream.compiler.catalogue import Stream
from seustream.compiler.logical.program import Program
from seustream.encoding import encoder_of
from seustream.engine.stream.merge import Merger
from seustream.engine.times import Times
from seustream.errors import InputError
from seustream.frames import Rows, tuples_of
from seustream.studio.data import MOST_ROWS

_EXACT = 1 << 53
"""Integers up to this one are numbers in a browser, too."""


@dataclass(frozen=True, slots=True)
class PageRows:
    """The rows of a stream.

    given     as they arrive
    taken     those that a run takes, in its order
    left_out  those that are late or have no time
    time      the type of their time outside
    """

    given: pa.Table
    taken: pa.Table
    left_out: pa.Table
    time: pa.DataType


def page_rows(stream: Stream, rows: Mapping[str, Rows], instead: str) -> PageRows:
    """Takes the rows of a stream. Raises `InputError` if there are none, or too many for the page;
    `instead` is the command for these."""
    if stream.name not in rows:
        raise InputError(f"no rows for stream {stream.name}", f"drop {stream.name}.csv on the page")
    tuples = tuples_of(stream.name, rows[stream.name], stream)
    given = tuples.rows
    if given.num_rows > MOST_ROWS:
        what = f"stream {stream.name} has {given.num_rows:,} rows, the page steps through {MOST_ROWS:,}"
        raise InputError(what, f"take fewer, or run them: {instead}")
    timed = pc.is_valid(given["ts"])
    late = [given.filter(pc.invert(timed))]
    gate = Merger([stream.name], stream.out_of_orderness, lambda _, some: late.append(some))
    gate.push(stream.name, given.filter(timed))
    gate.stop(stream.name)
    taken = [part.rows[0] for part in gate.release(MOST_ROWS)]
    return PageRows(
        given, pa.concat_tables([given.slice(0, 0), *taken]), pa.concat_tables(late), tuples.time
    )


def left_out(program: Program, found: Mapping[str, PageRows]) -> dict[str, Any]:
    """Returns the rows that a run leaves out, as JSON by stream."""
    times = Times(program, {name: one.time for name, one in found.items()})
    return {
        name: as_json(times.rows(name, one.left_out))
        for name, one in found.items()
        if one.left_out.num_rows
    }


def as_json(table: pa.Table) -> dict[str, Any]:
    """Returns column names and rows, with the values as `run` writes them. Those that a browser
    cannot hold exactly become text."""
    columns = [
        column.cast(pa.string()) if pa.types.is_decimal(column.type) else column
        for column in table.columns
    ]
    named = pa.table(columns, names=[str(place) for place in range(len(columns))])
    lines = io.BytesIO()
    encoder_of("jsonl", lines, named.schema).write(named)
    rows = [json.loads(line, parse_int=_whole) for line in lines.getvalue().splitlines()]
    return {
        "columns": table.column_names,
        "rows": [[_cell(value) for value in row.values()] for row in rows],
    }


def _whole(digits: str) -> int | str:
    number = int(digits)
    return number if abs(number) <= _EXACT else digits


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value
