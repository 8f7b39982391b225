"""The rows of a page are those of a run, in its order, and have its values."""

from __future__ import annotations

import io
import json
import random
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from seustream.compiler.catalogue import Stream
from seustream.compiler.logical.program import Program
from seustream.compiler.pipeline import compile_text
from seustream.encoding import encoder_of
from seustream.errors import InputError
from seustream.studio.rows import as_json, left_out, page_rows


def created(text: str) -> tuple[Program, Stream]:
    program = compile_text(text).program
    return program, program.base[0]


@pytest.mark.parametrize("slack", [0, 3, 20])
def test_late_rows_are_left_out_by_the_definition(slack: int) -> None:
    """A row is late if its time is more than the slack behind the highest before it; the others are in
    the order of their times, and of their arrival."""
    program, stream = created(
        f"CREATE STREAM R (n int) WITH (max_out_of_orderness = '{slack} ms');"
    )
    for seed in range(20):
        chance = random.Random(seed)
        times = [chance.randrange(40) for _ in range(30)]
        highest = [max(times[: n + 1]) for n in range(len(times))]
        late = [n for n, ts in enumerate(times) if ts < highest[n] - slack]
        taken = sorted(set(range(30)) - set(late), key=lambda n: (times[n], n))
        found = page_rows(stream, {"R": {"ts": times, "n": list(range(30))}}, "")
        assert found.given["n"].to_pylist() == [*range(30)], f"seed {seed}"
        assert found.taken["n"].to_pylist() == taken, f"seed {seed}"
        assert found.left_out["n"].to_pylist() == late, f"seed {seed}"
        shown = {"R": {"columns": ["ts", "n"], "rows": [[times[n], n] for n in late]}}
        assert left_out(program, {"R": found}) == (shown if late else {})


def test_rows_without_a_time_are_left_out() -> None:
    program, stream = created("CREATE STREAM R (n int, at timestamp) WITH (time = 'at');")
    at = pa.array([None, 5_000_000, 1_000_000], pa.timestamp("us"))
    found = page_rows(stream, {"R": pa.table({"n": [1, 2, 3], "at": at})}, "")
    assert found.taken["n"].to_pylist() == [2]
    assert [row[1:] for row in left_out(program, {"R": found})["R"]["rows"]] == [
        [1, None],
        [3, "1970-01-01T00:00:01.000000"],
    ]


def test_a_page_needs_rows_and_not_too_many() -> None:
    _, stream = created("CREATE STREAM R (n int);")
    with pytest.raises(InputError, match="no rows for stream R") as refused:
        page_rows(stream, {"S": []}, "")
    assert refused.value.hint == "drop R.csv on the page"
    many = {"ts": list(range(2001)), "n": [0] * 2001}
    with pytest.raises(InputError, match="2,001 rows") as refused:
        page_rows(stream, {"R": many}, "seustream run")
    assert str(refused.value.hint).endswith("seustream run")


VALUES: list[tuple[pa.Array[Any], list[Any]]] = [
    (pa.array([0.1, None], pa.float32()), [0.1, None]),
    (pa.array([float("inf"), float("-inf")]), ["Infinity", "-Infinity"]),
    (pa.array([2**53, -(2**53)]), [2**53, -(2**53)]),
    (pa.array([2**53 + 1, 1234567890123456789]), ["9007199254740993", "1234567890123456789"]),
    (pa.array([Decimal("1.10"), None]), ["1.10", None]),
    (pa.array([Decimal("123456789012345678.91")]), ["123456789012345678.91"]),
    (pa.array([True, None]), [True, None]),
    (pa.array(["", 'a\n"é', None]), ["", 'a\n"é', None]),
    (pa.array([1250], pa.timestamp("ms", "UTC")), ["1970-01-01T00:00:01.250Z"]),
    (pa.array([timedelta(seconds=5)], pa.duration("ms")), ["5000 ms"]),
    (pa.array([["é", None], None]), ['["é", null]', None]),
]


@pytest.mark.parametrize(("column", "shown"), VALUES, ids=str)
def test_values_are_those_of_a_run(column: pa.Array[Any], shown: list[Any]) -> None:
    """Only what a browser would round, and lists, are text where JSON lines have more."""
    assert as_json(pa.table([column], names=["a"])) == {
        "columns": ["a"],
        "rows": [[value] for value in shown],
    }
    lines = io.BytesIO()
    encoder_of("jsonl", lines, pa.schema([("a", column.type)])).write(pa.table({"a": column}))
    exact = {"parse_int": Decimal, "parse_float": Decimal}
    for line, value in zip(lines.getvalue().splitlines(), shown, strict=True):
        written = json.loads(line, **exact)["a"]
        if isinstance(written, Decimal | list):
            value = json.loads(str(value), **exact)
        assert written == value


def test_columns_may_have_one_name() -> None:
    both = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert as_json(both) == {"columns": ["a", "a"], "rows": [[1, 2]]}
