"""Rows of several streams wait until their place in the order is certain, also across a restart."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import INT
from seustream.engine.relational.inputs import Inputs
from seustream.engine.stream.merge import END_OF_STREAM
from seustream.engine.stream.schema import stream_schema

STREAMS = [Stream(name, (Column("a", INT),)) for name in ("S", "R")]


def rows(stream: Stream, times: list[int]) -> pa.Table:
    return pa.table([times, times], schema=stream_schema(stream))


def released(inputs: Inputs) -> list[tuple[int, str]]:
    found = []
    for part in inputs.release():
        left = [table.column("ts").to_pylist() for table in part.rows]
        found += [(left[of].pop(0), inputs.names[of]) for of in part.stream.tolist()]
    return found


@pytest.mark.parametrize("seed", range(10))
def test_by_time_then_in_the_order_in_which_they_are_given(seed: int) -> None:
    """With input cut anywhere, and saved and restored on the way, nothing is lost or comes
    twice."""
    print(f"seed {seed}")
    chance, inputs = random.Random(seed), Inputs(STREAMS)
    times = {s.name: sorted(chance.randrange(40) for _ in range(30)) for s in STREAMS}
    sent, found, promised = dict.fromkeys(times, 0), list[tuple[int, str]](), -(1 << 70)
    while any(sent[name] < len(some) for name, some in times.items()):
        stream = chance.choice(STREAMS)
        some = times[stream.name][sent[stream.name] :][: chance.randrange(6)]
        if some:
            inputs.push(stream.name, rows(stream, some))
            sent[stream.name] += len(some)
            inputs.advance(stream.name, some[-1] - 1)
        new = released(inputs)
        assert all(time > promised for time, _ in new)
        assert inputs.watermark >= promised
        promised, found = inputs.watermark, found + new
        if chance.random() < 0.4:
            plain, tables = inputs.plain(), inputs.tables()
            inputs = Inputs(STREAMS)
            inputs.restore(plain, tables)
    for stream in STREAMS:
        inputs.advance(stream.name, END_OF_STREAM)
    found += released(inputs)
    names = [stream.name for stream in STREAMS]
    assert found == sorted(
        ((time, name) for name in names for time in times[name]),
        key=lambda one: (one[0], names.index(one[1])),
    )


def test_a_stream_of_other_columns_begins_anew() -> None:
    inputs = Inputs(STREAMS)
    inputs.push("R", rows(STREAMS[1], [5, 6]))
    plain, tables = inputs.plain(), inputs.tables()
    other = Inputs([STREAMS[0], Stream("R", (Column("b", INT),))])
    other.restore(plain, tables)
    assert other.tables()["waiting R"].num_rows == 0
    same = Inputs(STREAMS)
    same.restore(plain, tables)
    assert same.tables()["waiting R"].column("ts").to_pylist() == [5, 6]
