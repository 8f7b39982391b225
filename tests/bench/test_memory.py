"""The queries whose memory is measured, and the rows that they get."""

from __future__ import annotations

import pytest

from bench import memory
from seustream.compiler.pipeline import Options, compile_text
from seustream.engine.assembly import streams_read

CASES = [(name, shape) for name, case in memory.WORK.items() for shape in case.shapes]


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_a_query_reads_all_columns_of_the_rows_it_gets(name: str, shape: str) -> None:
    c = compile_text(memory._text(name, shape, 1_000), options=Options(devices=0))
    streams = {stream.name: stream for stream in c.program.base}
    assert streams_read(c.program) == streams.keys() == memory._streams(name).keys()
    for stream, of in streams.items():
        rows = memory._rows(name, shape, 1_000, stream, 0, 100)
        assert rows.column_names == ["ts", *(column.name for column in of.columns)]


def test_columns_of_a_narrow_row_take_16_bytes() -> None:
    columns, mean, peak = memory.run("join", "narrow", 1_000)
    assert columns == 16
    assert 0 < mean <= peak
