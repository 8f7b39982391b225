"""Random rows from a seed."""

from __future__ import annotations

from seustream.compiler.pipeline import compile_text
from seustream.frames import stream_of, tuples_of
from seustream.studio.data import rows

EVERY = """CREATE STREAM R (a smallint, b int, c bigint, d real, e double precision, f decimal(8,2),
g char(9), h varchar(20), i date, j timestamp, k boolean); CREATE STREAM S (t time, u interval);"""


def test_rows_are_of_their_stream_and_in_order() -> None:
    streams = compile_text(EVERY).program.base
    found = rows(streams, 7, 200)
    assert sum(map(len, found.values())) == 200
    for stream in streams:
        times = [row["ts"] for row in found[stream.name]]
        assert times == sorted(times)
        assert tuples_of(stream.name, found[stream.name], stream).rows.num_rows == len(times)


def test_a_seed_gives_the_same_rows_again_and_another_gives_others() -> None:
    streams = [stream_of("R", {"ts": [1], "a": [2]})]
    assert rows(streams, 1, 50) == rows(streams, 1, 50) != rows(streams, 2, 50)
    assert rows([], 1, 50) == {}
