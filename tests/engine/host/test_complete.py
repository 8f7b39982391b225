"""From sequence numbers to rows: no part of a row is lost on the way, and nothing comes twice.

Runs whole queries on a device, because repeats and misses arise there.
"""

from __future__ import annotations

import datetime
import math
import random
import zlib

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.language.faults import Faults
from seustream.compiler.pipeline import PLANS, compile_text
from seustream.compiler.plan.encoding import Codec, Encoding
from seustream.engine.host.complete import project, residual, without_repeats
from seustream.engine.host.encode import encode
from seustream.engine.host.join import Side
from seustream.engine.host.rows import RowStore
from seustream.engine.stream.answers import result_schema
from seustream.engine.stream.schema import stream_schema
from seustream.hdl.device import Window, WindowKind
from tests.engine.host.reference import (
    ARROW,
    Condition,
    Query,
    Source,
    Stream,
    compare,
    kleene_or,
    random_streams,
    stream,
    value,
)
from tests.engine.host.running import DEVICES, compiled, driver_of, rows_of, run, same_as_in_loops

# --- all columns, as they came ---------------------------------------------------

EXTREMES: dict[str, list[object]] = {
    "smallint": [-32768, 32767, 0],
    "int": [-(2**31), 2**31 - 1, 0],
    "bigint": [-(2**63), 2**63 - 1, 2**53 + 1],
    "real": [-0.0, math.inf, 1.401298464324817e-45],
    "double precision": [-0.0, -math.inf, 5e-324],
    "varchar(8)": ["", "a'b\n\x00", "日本語\U0001f600"],
    "date": [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(1969, 12, 31)],
    "time": [datetime.time(), datetime.time(23, 59, 59, 999_000), datetime.time(12)],
    "timestamp": [
        datetime.datetime(1, 1, 1),
        datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    ],
    "boolean": [True, False, True],
}


def exact(found: object) -> object:
    """Distinguishes -0.0 from 0.0."""
    return (found, math.copysign(1, found)) if isinstance(found, float) else found


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("config", ["default", "thesis"])
def test_every_column_comes_back_as_it_was(device: str, config: str) -> None:
    """Covers every type and NULL, in a stream joined on a column of its own."""
    chance = random.Random(1)
    columns = {"k": "int"} | {f"c{i}": kind for i, kind in enumerate(ARROW)}
    r = Stream("R", columns)
    for number, row in enumerate(zip(*EXTREMES.values(), strict=True)):
        r.rows.append({"ts": number, "k": number, **dict(zip(list(columns)[1:], row, strict=True))})
    for number in range(3, 30):
        row = [None if chance.random() < 0.3 else value(chance, kind) for kind in ARROW]
        r.rows.append({"ts": number, "k": number, **dict(zip(list(columns)[1:], row, strict=True))})
    s = Stream("S", {"k": "int"}, [{"ts": 99, "k": number} for number in range(30)])
    text = "SELECT R.*, S.k FROM R, S WHERE R.k = S.k WINDOW UNBOUNDED;"
    found = run(driver_of(compiled([r, s], text, config=config), device), [r, s])["q0"]
    assert found.column_names == [
        *("R_k" if name == "k" else name for name in columns),
        "S_k",
        "ts_oldest",
        "ts_newest",
    ]
    kinds = [ARROW[kind] for kind in columns.values()]
    assert found.schema.types == [*kinds, pa.int32(), pa.int64(), pa.int64()]
    wanted = [
        (*(v for n, v in row.items() if n != "ts"), row["k"], row["ts"], 99) for row in r.rows
    ]
    assert [tuple(map(exact, row)) for row in rows_of(found)] == [
        tuple(map(exact, row)) for row in wanted
    ]


def test_the_select_list() -> None:
    """Covers names, order, repeated columns, expressions, and the two times at the end."""
    r = stream("R", [(5, 7, "x"), (6, 8, None)], "int", "varchar(8)")
    s = stream("S", [(3, 7), (9, 8)])
    text = (
        "SELECT y.a, x.b AS note, x.a * 2 + y.a AS sum, x.a AS again, x.ts, y.TimeStamp AS t,"
        " 'c' AS constant, NULL AS nothing, x.b IS NULL AS empty, coalesce(x.b, '-') || '!'"
        " FROM R AS x, S AS y WHERE x.a = y.a WINDOW UNBOUNDED;"
    )
    found = run(driver_of(compiled([r, s], text)), [r, s])["q0"]
    assert found.column_names == [
        *("a", "note", "sum", "again", "ts", "t", "constant", "nothing", "empty"),
        *("coalesce(x.b, '-') || '!'", "ts_oldest", "ts_newest"),
    ]
    assert rows_of(found) == [
        (7, "x", 21, 7, 5, 3, "c", None, False, "x!", 3, 5),
        (8, None, 24, 8, 6, 9, "c", None, True, "-!", 6, 9),
    ]
    assert found.schema.field("sum").type == pa.int64()
    assert [field.nullable for field in found.schema][-3:] == [True, False, False]


def test_a_join_of_a_stream_with_itself_tells_its_copies_apart() -> None:
    r = stream("R", [(1, 1, "a"), (2, 2, "b"), (4, 3, "c")], "int", "varchar(8)")
    text = "SELECT x.b AS first, y.b AS second FROM R AS x, R AS y WHERE x.a < y.a WINDOW RANGE 2;"
    found = run(driver_of(compiled([r], text)), [r])["q0"]
    assert rows_of(found) == [("a", "b", 1, 2), ("b", "c", 2, 4)]


def test_results_come_in_order_of_arrival() -> None:
    """Orders by arrival of the newest component; within one arrival by the components in FROM
    order."""
    r, s = stream("R", [(1, 0), (3, 0), (5, 0)]), stream("S", [(2, 1), (3, 1), (4, 1)])
    text = "SELECT y.ts AS s, x.ts AS r FROM S AS y, R AS x WINDOW UNBOUNDED;"
    found = run(driver_of(compiled([r, s], text)), [r, s])["q0"]
    pairs = list(zip(found.column("s").to_pylist(), found.column("r").to_pylist(), strict=True))
    # At the equal time 3 the tuple of R comes first.
    assert pairs == [(2, 1), (2, 3), (3, 1), (3, 3), (4, 1), (4, 3), (2, 5), (3, 5), (4, 5)]


# --- repeats --------------------------------------------------------------------


def any_of(*texts: str) -> Condition:
    """Makes a condition that any of these equalities fulfils: `0.a 1.b` is the first source's a and
    the second's b."""
    parts = [[side.split(".") for side in text.split()] for text in texts]
    text = " OR ".join(" = ".join(f"x{i}.{c}" for i, c in sides) for sides in parts)
    return Condition(
        f"({text})",
        lambda rows: kleene_or(
            [compare("=", *(rows[int(i)][c] for i, c in sides)) for sides in parts]
        ),
    )


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("device", DEVICES)
def test_a_result_of_two_terms_comes_once(plan: str, device: str) -> None:
    """Three streams of equal rows: every result fulfils both terms, and the device gives it once
    for each term."""
    streams = [stream(name, [(ts, 1, 1) for ts in range(4)], "int", "int") for name in "RST"]
    sources = tuple(Source(f"x{i}", s, "UNBOUNDED") for i, s in enumerate(streams))
    query = Query(sources, any_of("0.a 1.a", "1.b 2.b"))
    driver = same_as_in_loops(streams, query, device=device, plan=plan)
    assert driver.report.results == {"q0": 64}
    assert driver.report.join.repeats == 64


@pytest.mark.parametrize("seed", range(10))
def test_repeats_in_random_streams(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    streams = [
        stream(
            name,
            [(ts, chance.randint(0, 2), chance.choice((0, 1, None))) for ts in range(9)],
            "int",
            "int",
        )
        for name in "RST"
    ]
    sources = tuple(
        Source(f"x{i}", s, chance.choice(("RANGE 4", "ROWS 5"))) for i, s in enumerate(streams)
    )
    query = Query(sources, any_of("0.a 1.a", "1.b 2.b", "0.b 2.b"))
    driver = same_as_in_loops(streams, query, "tiny", "golden", "cost", chance)
    assert driver.report.join.repeats > 0


def test_without_repeats() -> None:
    given = np.array([[2, 1], [0, 5], [2, 1], [0, 4], [2, 1]])
    assert without_repeats(given).tolist() == [[0, 4], [0, 5], [2, 1]]
    assert without_repeats(np.empty((0, 3), np.int64)).shape == (0, 3)


# --- what the device cannot decide ----------------------------------------------


def pairs_kept(
    query: str, left: Stream, right: Stream, config: str = "default"
) -> tuple[list[tuple[object, ...]], int]:
    driver = driver_of(compiled([left, right], query, config=config))
    found = rows_of(run(driver, [left, right])["q0"])
    assert driver.report.join.in_software == {}
    return found, driver.report.join.residual


def test_like_is_left_to_the_host() -> None:
    r = stream(
        "R", [(1, 1, "abc"), (2, 1, "xbc"), (3, 1, None), (4, 2, "abd")], "int", "varchar(8)"
    )
    s = stream("S", [(5, 1, "a"), (5, 2, "b")], "int", "varchar(8)")
    start = "SELECT x.b, y.b AS other FROM R AS x, S AS y WHERE x.a = y.a AND "
    # A condition on one stream keeps tuples out; a condition on both drops results.
    kept, dropped = pairs_kept(start + "x.b LIKE 'a%' WINDOW UNBOUNDED;", r, s)
    assert (kept, dropped) == ([("abc", "a", 1, 5), ("abd", "b", 4, 5)], 0)
    kept, dropped = pairs_kept(start + "x.b || y.b LIKE 'a%a' WINDOW UNBOUNDED;", r, s)
    assert (kept, dropped) == ([("abc", "a", 1, 5)], 3)


def test_arithmetic_is_left_to_the_host() -> None:
    r, s = stream("R", [(ts, ts) for ts in range(4)]), stream("S", [(9, ts) for ts in range(4)])
    text = "SELECT x.a, y.a AS b FROM R AS x, S AS y WHERE x.a * y.a = 3 AND x.a <= y.a WINDOW UNBOUNDED;"
    kept, dropped = pairs_kept(text, r, s)
    assert kept == [(1, 3, 1, 9)]
    assert dropped == 9


def colliding_texts() -> tuple[str, str]:
    """Finds two texts of the same hash; 200,000 random texts contain about five such pairs."""
    chance = random.Random(6)
    seen: dict[int, str] = {}
    while True:
        text = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=8))
        other = seen.setdefault(zlib.crc32(text.encode()), text)
        if other != text:
            return other, text


def colliding_numbers() -> tuple[int, int]:
    numbers = np.random.default_rng(5).integers(-(2**63), 2**63 - 1, 400_000)
    codes, _ = encode(pa.array(numbers), Encoding(Codec.INTEGER_HASH, 32), 0)
    order = np.argsort(codes, kind="stable")
    (same,) = np.nonzero(np.diff(codes[order].astype(np.int64)) == 0)
    assert len(same)
    first, second = order[same[0]], order[same[0] + 1]
    return int(numbers[first]), int(numbers[second])


def test_texts_of_one_hash_do_not_join() -> None:
    one, other = colliding_texts()
    r, s = (
        stream("R", [(1, one), (2, other)], "varchar(8)"),
        stream("S", [(3, one)], "varchar(8)"),
    )
    text = "SELECT x.a FROM R AS x, S AS y WHERE x.a = y.a WINDOW UNBOUNDED;"
    assert pairs_kept(text, r, s) == ([(one, 1, 3)], 1)


def test_bigints_of_one_hash_do_not_join() -> None:
    one, other = colliding_numbers()
    r, s = stream("R", [(1, one), (2, other)], "bigint"), stream("S", [(3, one)], "bigint")
    text = "SELECT x.a FROM R AS x, S AS y WHERE x.a = y.a WINDOW UNBOUNDED;"
    assert pairs_kept(text, r, s) == ([(one, 1, 3)], 1)


@pytest.mark.parametrize(
    ("kind", "left", "right", "operator", "dropped"),
    [
        ("double precision", [1.0, 1.0 + 2**-40], [1.0], "=", 0),
        ("double precision", [1.0, 1.0 + 2**-40], [1.0], "<", 2),
        ("bigint", [2**53, 2**53 + 1], [2**53], "<=", 1),
        ("bigint", [-(2**63), -(2**63) + 1], [-(2**63)], ">", 1),
        ("varchar(8)", ["abcdX", "abcdY"], ["abcdY"], "<", 1),
        ("timestamp", [datetime.datetime(2006, 3, 1, 0, 0, 0, us) for us in (1, 2)], [datetime.datetime(2006, 3, 1, 0, 0, 0, 2)], "<", 1),
        ("real", [1.0, 1.0 + 2**-23], [1.0], "=", 0),
        ("timestamp", [datetime.datetime(1800, 1, 1), datetime.datetime(1900, 1, 1)], [datetime.datetime(1900, 1, 1)], "<", 1),
    ],
)  # fmt: skip
def test_what_a_code_does_not_tell_apart_the_host_does(
    kind: str, left: list[object], right: list[object], operator: str, dropped: int
) -> None:
    r, s = stream("R", list(enumerate(left)), kind), stream("S", [(9, v) for v in right], kind)
    text = f"SELECT x.a FROM R AS x, S AS y WHERE x.a {operator} y.a WINDOW UNBOUNDED;"
    kept, missed = pairs_kept(text, r, s)
    assert [row[0] for row in kept] == [
        a for a in left for b in right if compare(operator, a, b) is True
    ]
    assert missed == dropped


def test_a_narrow_device_leaves_more_to_the_host() -> None:
    """Times and reals lose their low bits in 8 bits; the results are complete all the same."""
    chance = random.Random(4)
    for kind in ("real", "time", "varchar(8)", "double precision"):
        r = Stream("R", {"a": kind}, [{"ts": ts, "a": value(chance, kind)} for ts in range(12)])
        s = Stream("S", {"a": kind}, [{"ts": ts, "a": value(chance, kind)} for ts in range(12)])
        for operator in ("<", "=", ">=", "<>"):
            where = Condition(
                f"x.a {operator} y.a",
                lambda rows, o=operator: compare(o, rows[0]["a"], rows[1]["a"]),  # type: ignore[misc]
            )
            query = Query((Source("x", r, "UNBOUNDED"), Source("y", s, "ROWS 5")), where)
            same_as_in_loops([r, s], query, "thesis")


# --- the steps by themselves ----------------------------------------------------


def sides_of(text: str, *streams: Stream, dropped: int = 0) -> tuple[object, list[Side]]:
    """Returns a query and its streams' rows, arrived in turn, of which the first are dropped."""
    create = "\n".join(s.create for s in streams)
    query = compile_text(f"{create} {text}", stop_after="tree").program.queries[0]
    sides = []
    for number, source in enumerate(query.sources):
        store = RowStore(stream_schema(source.stream), 1)
        table = streams[number].table.cast(store.table.schema)
        positions = np.arange(table.num_rows) * len(streams) + number
        store.append(table, np.asarray(table.column("ts")), [positions])
        store.drop_before(dropped)
        sides.append(Side(store, 0, Window(WindowKind.UNBOUNDED), source.alias))
    return query, sides


def test_project_and_residual_go_by_sequence_number() -> None:
    """The rows before the named ones are already dropped."""
    r, s = stream("R", [(ts, ts) for ts in range(5)]), stream("S", [(ts, -ts) for ts in range(5)])
    text = "SELECT R.a, S.a AS b FROM R, S WHERE R.a + S.a > 0 WINDOW UNBOUNDED;"
    query, sides = sides_of(text, r, s, dropped=2)
    found = np.array([[4, 2], [3, 3], [2, 4], [4, 3]])
    faults = Faults()
    kept = residual((query.where,), sides, found, faults)  # type: ignore[attr-defined]
    assert kept.tolist() == [[4, 2], [4, 3]]
    rows = project(query, sides, kept[::-1], faults)  # type: ignore[arg-type]
    assert rows_of(rows) == [(4, -2, 2, 4), (4, -3, 3, 4)]
    none = project(query, sides, kept[:0], faults)  # type: ignore[arg-type]
    assert (none.num_rows, none.schema) == (0, result_schema(query))  # type: ignore[arg-type]
    assert residual((query.where,), sides, kept[:0], faults).shape == (0, 2)  # type: ignore[attr-defined]
    assert residual((), sides, found, faults).tolist() == found.tolist()


@pytest.mark.parametrize("seed", range(6))
def test_every_expression_fits_its_column(seed: int) -> None:
    """The columns of a result have the types of its schema, from a join as from a single stream."""
    print(f"seed {seed}")
    streams = random_streams(random.Random(seed), 8, 2)
    name, kind = next(iter(streams[0].columns.items()))
    items = [f"x.{name} AS a", f"coalesce(x.{name}, NULL) AS b", f"nullif(x.{name}, x.{name}) AS c"]
    items += [f"x.{name} IS NULL AS d", f"greatest(x.{name}, x.{name}) AS e", "NULL = NULL AS f"]
    items += [f"CAST(x.{name} AS varchar(3)) AS g", f"x.{name} = x.{name} AS h", "-1 AS i"]
    if "int" in kind or kind in ("real", "double precision"):
        items += [f"-x.{name} AS j", f"abs(x.{name}) AS k", f"ceil(x.{name}) AS l"]
        items += [
            f"x.{name} / 3 AS m",
            f"CAST(x.{name} AS real) AS n",
            f"least(x.{name}, 1.5) AS o",
        ]
    chosen = ", ".join(items)
    small = [{**row, name: None if row[name] in _EDGES else row[name]} for row in streams[0].rows]
    streams[0].rows = small
    queries = (
        f"SELECT {chosen} FROM S0 AS x WINDOW NOW;",
        f"SELECT {chosen} FROM S0 AS x, S1 AS y WINDOW UNBOUNDED;",
    )
    driver = driver_of(compiled(streams, *queries))
    found = run(driver, streams)
    for query in driver.compilation.program.queries:
        assert found[query.name].schema == result_schema(query)
        assert found[query.name].num_rows
        found[query.name].validate(full=True)
    alone = set(map(repr, (row[:-2] for row in rows_of(found["q0"]))))
    joined = set(map(repr, (row[:-2] for row in rows_of(found["q1"]))))
    assert joined <= alone


_EDGES = (-32768, -(2**31), -(2**63))
