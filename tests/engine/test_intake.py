"""Rows of a caller on their way into a stream: which are taken, and the messages for those that are
not."""

from __future__ import annotations

import math
import random

import pyarrow as pa
import pytest

from seustream.compiler.pipeline import compile_text
from seustream.engine.host.errors import RowsRefused
from seustream.engine.intake import Intake
from seustream.engine.kernels import native
from seustream.engine.stream.schema import stream_schema
from tests.engine.host.reference import (
    Stream,
    stream,
)
from tests.engine.host.running import (
    collected,
    compiled,
    driver_of,
    rows_of,
    run,
)


def refused(rows: pa.Table, what: str, create: Stream | None = None) -> None:
    r = create or stream("R", [], "int", "varchar(8)")
    driver = driver_of(compiled([r], "SELECT * FROM R WINDOW NOW;"))
    with pytest.raises(RowsRefused, match=what):
        driver.push("R", rows)
    assert run(driver, [r])["q0"].num_rows == 0
    assert driver.report.taken == {}


def test_rows_that_do_not_fit_their_stream() -> None:
    good = {"ts": [1], "a": pa.array([1], pa.int32()), "b": ["x"]}
    refused(
        pa.table({k: v for k, v in good.items() if k != "b"}),
        r"^stream R, column b: want one, the rows have ts, a$",
    )
    refused(
        pa.table({k: v for k, v in good.items() if k != "ts"}), "^stream R, column ts: want one"
    )
    twice = pa.table([good["ts"], good["a"], good["b"], good["b"]], names=["ts", "a", "b", "b"])
    refused(twice, "^stream R, column b: want one")
    refused(pa.table(good | {"a": [2**31]}), "^stream R, column a: .*2147483648 not in range")
    refused(pa.table(good | {"a": ["x"]}), "^stream R, column a: .*'x'")
    refused(pa.table(good | {"a": [1.5]}), "^stream R, column a: .*truncated")
    refused(pa.table(good | {"b": [[1]]}), "^stream R, column b: Unsupported cast")
    refused(
        pa.table(good | {"ts": pa.array([None], pa.int64())}),
        "^stream R, column ts, row 1 of 1: NULL",
    )
    moments = pa.array([1_000_000], pa.timestamp("us"))
    refused(
        pa.table(good | {"ts": moments}), r"^stream R, column ts: timestamp\[us\], want integers"
    )


def test_null_where_none_may_be() -> None:
    """The compiler relies on it: here it takes `a = a` for true."""
    r = Stream("R", {"a": "int NOT NULL"})
    driver = driver_of(compiled([r], "SELECT * FROM R WHERE a = a WINDOW NOW;"))
    with pytest.raises(
        RowsRefused, match=r"^stream R, column a, row 1 of 2: NULL, where none may be$"
    ):
        driver.push("R", pa.table({"ts": [1, 2], "a": pa.array([None, 1], pa.int32())}))
    driver.push("R", pa.table({"ts": [1], "a": pa.array([1], pa.int32())}))
    assert collected(driver, driver.finish())["q0"].num_rows == 1
    schema = stream_schema(driver.streams[0])
    assert (schema.field("a").nullable, schema.field("ts").nullable) == (False, False)


def test_a_text_that_is_too_long_is_refused() -> None:
    """The length counts characters, not bytes."""
    r = Stream("R", {"s": "varchar(5)", "t": "varchar"})
    driver = driver_of(compiled([r], "SELECT * FROM R WINDOW NOW;"))
    with pytest.raises(
        RowsRefused, match=r"^stream R, column s, row 2 of 2: 10,000 characters, at most 5$"
    ):
        driver.push("R", pa.table({"ts": [1, 2], "s": ["a", "b" * 10_000], "t": ["", ""]}))
    driver.push("R", pa.table({"ts": [1, 2], "s": ["äöüßé", None], "t": ["x" * 99, ""]}))
    assert collected(driver, driver.finish())["q0"].num_rows == 2


def test_rows_of_other_widths_columns_and_order_are_taken() -> None:
    r = stream("R", [], "int", "varchar(8)")
    driver = driver_of(compiled([r], "SELECT * FROM R WINDOW NOW;"))
    text = pa.array(["x", "y"]).dictionary_encode()
    rows = pa.table(
        {
            "extra": [0, 0],
            "b": text,
            "a": pa.array([1, 2], pa.int64()),
            "ts": pa.array([1, 2], pa.uint8()),
        }
    )
    driver.push("R", rows)
    assert rows_of(collected(driver, driver.finish())["q0"]) == [(1, "x", 1, 1), (2, "y", 2, 2)]


TEXT = """CREATE STREAM E (name varchar(3), v double, k int NOT NULL);
REGISTER QUERY q AS SELECT * FROM E;"""


def intake() -> Intake:
    return Intake(next(iter(compile_text(TEXT).program.base)))


@pytest.mark.parametrize("seed", range(3))
def test_every_form_of_rows(seed: int) -> None:
    print(f"seed {seed}")
    chance, one = random.Random(seed), intake()
    for _ in range(60):
        rows = chance.randint(0, 5)
        values = {
            "ts": [chance.randint(-9, 9) for _ in range(rows)],
            "name": [chance.choice(["", "a", "abc", None]) for _ in range(rows)],
            "v": [chance.choice([math.nan, None, 0.5, -0.0, 1e300]) for _ in range(rows)],
            "k": [chance.randint(0, 99) for _ in range(rows)],
        }
        types = {
            "ts": chance.choice([pa.int64(), pa.int16()]),
            "name": chance.choice([pa.string(), pa.large_string()]),
            "v": pa.float64(),
            "k": chance.choice([pa.int32(), pa.int64(), pa.int8()]),
        }
        names = chance.sample([*values], len(values))
        given = pa.table({name: pa.array(values[name], types[name]) for name in names})
        if chance.random() < 0.5:
            given = pa.concat_tables([given.slice(0, rows // 2), given.slice(rows // 2)])
        taken, times = one.take(given)
        assert times is None or times == native.times(taken.column("ts").__arrow_c_stream__())
        assert taken.schema == one.schema
        wanted = [None if v is None or math.isnan(v) else v for v in values["v"]]
        assert taken.to_pydict() == values | {"v": wanted}


@pytest.mark.parametrize(
    ("kind", "of", "good", "bad"),
    [
        ("date", pa.date32(), [-719162, 2932896, None], [-719163, 2932897]),
        ("timestamp", pa.timestamp("us"), [-62135596800000000, None], [-62135596800000001, 2**60]),
        ("time", pa.time32("ms"), [0, 86_399_999, None], [-1, 86_400_000]),
        ("interval", pa.duration("ms"), [-86399999913599999, None], [-(2**62), 2**62]),
    ],
)
def test_times_out_of_range(kind: str, of: pa.DataType, good: list[int], bad: list[int]) -> None:
    text = f"CREATE STREAM R (a {kind}); SELECT a FROM R WINDOW NOW"
    r, name = compile_text(text, "t.xsql").program.base[0], "a"

    def rows(values: list[int | None]) -> pa.Table:
        width = pa.int32() if of.bit_width == 32 else pa.int64()
        column = pa.array(values, width).view(of)
        return pa.table({"ts": range(len(values)), name: column})

    assert Intake(r).take(rows(good))[0].column(name).to_pylist()[-1] is None
    for value in bad:
        for pieces in (rows([*good, value]), pa.concat_tables([rows([*good]), rows([value])])):
            where = f"stream R, column {name}, row {len(good) + 1} of {len(good) + 1}"
            with pytest.raises(RowsRefused, match=f"^{where}: a value is out of"):
                Intake(r).take(pieces)
    hidden = pa.array(bad, pa.int32() if of.bit_width == 32 else pa.int64())
    mask = pa.array([0], pa.uint8()).buffers()[1]
    nothing = pa.Array.from_buffers(of, 2, [mask, hidden.buffers()[1]])
    taken, times = Intake(r).take(pa.table({"ts": [1, 2], name: nothing}))
    assert (taken.column(name).null_count, times) == (2, (1, 2, True))


def test_a_named_time_beyond_all_milliseconds_is_refused() -> None:
    text = "CREATE STREAM R (at timestamp) WITH (time = 'at'); SELECT at FROM R WINDOW NOW"
    r = compile_text(text, "t.xsql").program.base[0]
    for value in (2**62, -(2**62)):
        rows = pa.table({"at": pa.array([0, value], pa.timestamp("s"))})
        with pytest.raises(RowsRefused, match=r"^stream R, column at: a value is out of range"):
            Intake(r).take(rows)
