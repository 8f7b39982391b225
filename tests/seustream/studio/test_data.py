"""Random rows from a seed."""

from __future__ import annotations

import pytest

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


@pytest.mark.parametrize("length", ["char(1)", "varchar(3)", "varchar(8)"])
def test_texts_are_shortened_to_their_length(length: str) -> None:
    (stream,) = compile_text(f"CREATE STREAM R (a {length} NOT NULL);").program.base
    kinds = {("R", "a"): ("Settlement", "Withdrawal")}
    for made in (rows([stream], 3, 80), rows([stream], 3, 80, kinds)):
        found = set(tuples_of("R", made["R"], stream).rows["a"].to_pylist())
        assert len(found) > 1  # which pairs of words stay apart


@pytest.mark.parametrize("digits", [(1, 0), (10, 0), (1, 1), (2, 2), (3, 1), (10, 2), (38, 38)])
def test_decimals_have_the_digits_of_their_type(digits: tuple[int, int]) -> None:
    kind = f"decimal({digits[0]},{digits[1]})"
    (stream,) = compile_text(f"CREATE STREAM R (a {kind} NOT NULL);").program.base
    found = set(tuples_of("R", rows([stream], 3, 80)["R"], stream).rows["a"].to_pylist())
    assert len(found) > 3


def test_every_type_has_values() -> None:
    text = EVERY.replace("time,", "time NOT NULL,").replace("interval)", "interval NOT NULL)")
    for stream in compile_text(text).program.base:
        table = tuples_of(stream.name, rows([stream], 3, 80)[stream.name], stream).rows
        assert all(len(set(column.to_pylist())) > 1 for column in table.columns)
