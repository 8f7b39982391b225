"""Expressions: columns found, types inferred, constants read."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import pytest

from seustream.compiler.catalogue import TIME_COLUMN
from seustream.compiler.language import expressions as x
from seustream.compiler.language import types as t
from seustream.compiler.language.bind import MAX_DEPTH
from seustream.compiler.language.types import Kind, Type
from seustream.compiler.pipeline import Options, compile_text
from seustream.hdl.isa import Condition
from tests.compiler.xsql.problems import STREAMS, Mistake, mistakes, reported

TYPED = """\
CREATE STREAM K (si smallint, i int, bi bigint, r real, d double precision, c char(4),
  v varchar(9), dt date, tm time, ts_ timestamp, b boolean NOT NULL, m decimal(9, 3), iv interval);
"""


@pytest.mark.parametrize("mistake", mistakes("bind"), ids=str)
def test_mistake(mistake: Mistake) -> None:
    assert reported(STREAMS + mistake.text) == [mistake.report(STREAMS.count("\n"))]


def value(written: str) -> x.Expression:
    """Returns an expression as bound in SELECT."""
    text = f"{TYPED} SELECT {written} AS x FROM K WINDOW 1"
    return compile_text(text, stop_after="tree").written.queries[0].items[0].expression


def predicate(written: str) -> x.Expression:
    text = f"{TYPED} SELECT i FROM K WHERE {written} WINDOW 1"
    return compile_text(text, stop_after="tree").written.queries[0].where


# --- types --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "bound"),
    [
        ("si", "smallint"),
        ("bi", "bigint"),
        ("c", "char(4)"),
        ("ts", "bigint"),
        ("K.TimeStamp", "bigint"),
        # constants
        ("1", "int"),
        ("2147483647", "int"),
        ("2147483648", "bigint"),
        ("-2147483648", "int"),
        ("-2147483649", "bigint"),
        ("9223372036854775807", "bigint"),
        ("-9223372036854775808", "bigint"),
        ("1.0", "double precision"),
        ("1e2", "double precision"),
        ("'x'", "varchar"),
        ("TRUE", "boolean"),
        ("NULL", "null"),
        ("DATE '2006-03-01'", "date"),
        ("5 min", "interval"),
        ("9223372036854775808", "decimal(19,0)"),
        ("38%", "double precision"),
        # arithmetic: integers in 64 bits, decimals exactly, anything else in double precision
        ("si + si", "bigint"),
        ("i * bi", "bigint"),
        ("i / 2", "double precision"),
        ("i DIV 2", "bigint"),
        ("mod(i, NULL)", "bigint"),
        ("m + i", "decimal(14,3)"),
        ("m * m", "decimal(19,6)"),
        ("m + 1.50", "decimal(10,3)"),
        ("m + d", "double precision"),
        ("iv + iv", "interval"),
        ("ts_ - ts_", "interval"),
        ("dt + 5 min", "timestamp"),
        ("i + r", "double precision"),
        ("r + r", "double precision"),
        ("r - d", "double precision"),
        ("2 + 3", "int"),
        ("2147483647 + 1", "bigint"),
        ("1 + 1.5", "double precision"),
        ("c || v", "varchar"),
        ("v || NULL", "varchar"),
        ("NULL + NULL", "bigint"),
        # signs keep the type
        ("-si", "bigint"),
        ("- r", "double precision"),
        ("+i", "int"),
        ("- NULL", "bigint"),
        # conditions
        ("i = 1", "boolean"),
        ("i = 1 AND b", "boolean"),
        ("NOT b", "boolean"),
        ("i IN (1, 2)", "boolean"),
        ("i IS NULL", "boolean"),
        ("v LIKE 'x'", "boolean"),
        # casts and functions
        ("CAST(i AS varchar(3))", "varchar(3)"),
        ("CAST(v AS int)", "int"),
        ("CAST(NULL AS date)", "date"),
        ("abs(si)", "bigint"),
        ("coalesce(i, d)", "double precision"),
        ("count(*)", "bigint"),
        ("sum(si)", "bigint"),
        ("sum(r)", "double precision"),
        ("avg(bi)", "double precision"),
        ("max(dt)", "date"),
        ("min(v)", "varchar(9)"),
        ("sum(m)", "decimal(19,3)"),
        ("avg(m)", "decimal(13,7)"),
        ("avg(iv)", "interval"),
        ("median(i)", "double precision"),
        ("array_agg(i)", "list(int)"),
        ("max_by(v, i)", "varchar(9)"),
        ("count(DISTINCT v) FILTER (WHERE b)", "bigint"),
        ("Upper(C)", "varchar"),
        ("LENGTH(v)", "bigint"),
    ],
)
def test_type(written: str, bound: str) -> None:
    assert str(value(written).type) == bound


@pytest.mark.parametrize(
    ("written", "of"),
    [
        ("si = i", "int"),
        ("i < bi", "bigint"),
        ("i = r", "double precision"),
        ("r = r", "real"),
        ("r = d", "double precision"),
        ("r > 1", "double precision"),
        ("c = v", "varchar"),
        ("v = 'x'", "varchar"),
        ("dt = dt", "date"),
        ("tm < tm", "time"),
        ("b = TRUE", "boolean"),
        ("i = NULL", "int"),
        ("dt = '2006-03-01'", "date"),
        ("'12:00' < tm", "time"),
        ("ts_ > '2006-03-01 12:30'", "timestamp"),
        ("ts > 5", "bigint"),
        ("dt = ts_", "timestamp"),
        ("m < 1.5", "decimal(9,3)"),
        ("m = d", "double precision"),
        ("iv > '1 hour'", "interval"),
        ("iv > 500", "bigint"),
    ],
)
def test_what_a_comparison_compares(written: str, of: str) -> None:
    compare = predicate(written)
    assert isinstance(compare, x.Compare)
    assert str(compare.of) == of


INTEGERS = {"si", "i", "bi"}
KIN = [{*INTEGERS, "r", "d", "m"}, {"c", "v"}, {"dt", "ts_"}, {*INTEGERS, "iv"}]
TYPES = {
    "si": t.SMALLINT,
    "i": t.INT,
    "bi": t.BIGINT,
    "r": t.REAL,
    "d": t.DOUBLE,
    "c": Type(Kind.CHAR, 4),
    "v": Type(Kind.VARCHAR, 9),
    "dt": t.DATE,
    "tm": t.TIME,
    "ts_": t.TIMESTAMP,
    "b": t.BOOLEAN,
    "m": t.decimal(9, 3),
    "iv": t.INTERVAL,
}


def test_every_pair_of_types() -> None:
    """The whole table: numbers compare with numbers, texts with texts, a date with a timestamp, an
    interval with integers as its milliseconds; all others only with their own type."""
    for left, a in TYPES.items():
        for right, b in TYPES.items():
            text = f"{TYPED} SELECT i FROM K WHERE {left} = {right} WINDOW 1"
            if left == right or any({left, right} <= kin for kin in KIN):
                assert predicate(f"{left} = {right}").type == t.BOOLEAN
            else:
                (report,) = reported(text)
                assert report.message == f"{a} cannot be compared with {b}"


@pytest.mark.parametrize(
    ("of", "into"),
    [
        ("si i bi", "si i bi r d m c v b iv"),
        ("r d m", "si i bi r d m c v b"),
        ("b", "si i bi r d m c v b"),
        ("dt", "dt ts_ c v"),
        ("ts_", "dt ts_ tm c v"),
        ("tm", "tm ts_ c v"),
        ("iv", "iv si i bi c v"),
        ("c v", "si i bi r d m c v dt tm ts_ b iv"),
    ],
)
def test_casts(of: str, into: str) -> None:
    for column in of.split():
        for name, to in TYPES.items():
            text = f"{TYPED} SELECT CAST({column} AS {to}) FROM K WINDOW 1"
            if name in into.split():
                assert value(f"CAST({column} AS {to})").type == to
            else:
                (report,) = reported(text)
                assert report.message == f"{TYPES[column]} cannot become {to}"


def test_a_refused_cast_says_what_would_do() -> None:
    (report,) = reported(f"{TYPED} SELECT CAST(tm AS date) FROM K WINDOW 1")
    assert report.hint == "it can become char, varchar, time, timestamp"


# --- columns ------------------------------------------------------------------


def test_a_column_knows_its_stream() -> None:
    text = STREAMS + "SELECT y.b FROM S AS x, R AS y WINDOW 1"
    (item,) = compile_text(text, stop_after="tree").written.queries[0].items
    assert item.expression == x.ColumnReference(1, "b", t.INT, True, "y")


def test_a_column_that_is_never_null_is_known_as_such() -> None:
    assert value("b") == x.ColumnReference(0, "b", t.BOOLEAN, False, "K")
    assert value("i") == x.ColumnReference(0, "i", t.INT, True, "K")


@pytest.mark.parametrize("name", ["ts", "TS", "timestamp", "K.TimeStamp"])
def test_the_implicit_time(name: str) -> None:
    assert value(name) == x.ColumnReference(0, TIME_COLUMN.name, t.BIGINT, False, "K")


# --- what conditions become ---------------------------------------------------


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("b", "K.b"),
        ("NOT b", "NOT K.b"),
        ("b AND TRUE", "K.b AND TRUE"),
        ("NULL", "NULL"),
        ("CAST(i AS boolean)", "CAST(K.i AS boolean)"),
        ("coalesce(b, FALSE)", "coalesce(K.b, FALSE)"),
        ("i BETWEEN 1 AND 5", "K.i >= 1 AND K.i <= 5"),
        ("i NOT BETWEEN 1 AND 5", "K.i < 1 OR K.i > 5"),
        ("i IN (1)", "K.i = 1"),
        ("i IN (1, 2, bi)", "K.i = 1 OR K.i = 2 OR K.i = K.bi"),
        ("i NOT IN (1, 2)", "K.i <> 1 AND K.i <> 2"),
        ("i IS NOT NULL", "K.i IS NOT NULL"),
        ("(i = 1) IS NULL", "(K.i = 1) IS NULL"),
        ("v NOT LIKE 'it''s%'", "K.v NOT LIKE 'it''s%'"),
        ("2 + 3 * 4 < i", "14 < K.i"),
        ("i = -5", "K.i = -5"),
        ("i = -(-5)", "K.i = 5"),
        ("i = 7 / 2", "K.i = 3.5"),
        ("i = -i", "K.i = -K.i"),
        ("dt = '2006-03-01'", "K.dt = DATE '2006-03-01'"),
        ("tm >= '12:30'", "K.tm >= TIME '12:30:00'"),
        ("ts_ < '2006-03-01 12:30'", "K.ts_ < TIMESTAMP '2006-03-01 12:30:00'"),
        ("v = '2006-03-01'", "K.v = '2006-03-01'"),
    ],
)
def test_condition(written: str, shown: str) -> None:
    assert x.show(predicate(written)) == shown


def test_a_comparison_keeps_its_operator() -> None:
    symbols = {"=": "EQ", "<>": "NE", "!=": "NE", "<": "LT", "<=": "LE", ">": "GT", ">=": "GE"}
    for symbol, name in symbols.items():
        compare = predicate(f"i {symbol} si")
        assert isinstance(compare, x.Compare)
        assert compare.condition is Condition[name]


# --- constants ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "read"),
    [
        ("2006-03-01", Kind.DATE, datetime.date(2006, 3, 1)),
        ("2006-02-29", Kind.DATE, None),
        ("1 March", Kind.DATE, None),
        ("12:30", Kind.TIME, datetime.time(12, 30)),
        ("12:30:15.123456", Kind.TIME, datetime.time(12, 30, 15, 123_000)),
        ("12:30+02:00", Kind.TIME, None),
        ("24:00", Kind.TIME, None),
        ("2006-03-01", Kind.TIMESTAMP, datetime.datetime(2006, 3, 1)),
        ("2006-03-01 12:30:15.5", Kind.TIMESTAMP, datetime.datetime(2006, 3, 1, 12, 30, 15, 500000)),
        ("2006-03-01T12:30+02:00", Kind.TIMESTAMP, datetime.datetime(2006, 3, 1, 10, 30)),
        ("0001-01-01 00:00+14:00", Kind.TIMESTAMP, None),
        ("", Kind.TIMESTAMP, None),
    ],
)  # fmt: skip
def test_times_are_read(text: str, kind: Kind, read: object) -> None:
    assert t.read_time(text, kind) == read


@pytest.mark.parametrize(
    ("written", "constant"),
    [
        ("1 + 2 * 3 - 4", 3),
        ("9223372036854775806 + 1", 9223372036854775807),
        ("5 - 8", -3),
        ("7 / 2", 3.5),
        ("1.1 + 2.2", 3.3),
        ("80% * 5", 4.0),
    ],
)
def test_constants_are_computed_exactly(written: str, constant: int) -> None:
    bound = value(written)
    assert isinstance(bound, x.Literal)
    assert bound.value == constant


@pytest.mark.parametrize("written", ["7 DIV 2", "1 / 0", "9223372036854775807 + 1"])
def test_what_may_fault_is_left_to_the_engine(written: str) -> None:
    assert isinstance(value(written), x.Call)


# --- depth --------------------------------------------------------------------

CHAINS: dict[str, Callable[[int], str]] = {
    "negations": lambda depth: "NOT " * depth + "R.a = 1",
    "signs": lambda depth: "- " * depth + "R.a = 1",
    "sums": lambda depth: "R.a" + " + R.a" * depth + " = 1",
    "calls": lambda depth: "abs(" * depth + "R.a" + ")" * depth + " = 1",
    "connectives": lambda depth: (
        "(R.b = 1 AND (R.b = 2 OR " * (depth // 2) + "R.a = 1" + "))" * (depth // 2)
    ),
    "negated connectives": lambda depth: (
        "NOT (R.b = 1 AND " * (depth // 2) + "R.a = 1" + ")" * (depth // 2)
    ),
}


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_as_deep_as_allowed_goes_through_every_pass(chain: Callable[[int], str]) -> None:
    condition = f"R.a = S.d AND {chain(MAX_DEPTH - 4)}"
    compile_text(f"{STREAMS}SELECT R.a FROM R, S WHERE {condition} WINDOW 1")


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
@pytest.mark.parametrize("depth", [MAX_DEPTH + 4, 190])
def test_what_is_too_deep_is_reported_once_where_it_stands(
    chain: Callable[[int], str], depth: int
) -> None:
    text = f"{STREAMS}SELECT a FROM R WHERE\n{chain(depth)}\nWINDOW 0"
    deep, window = reported(text)
    assert (deep.kind, deep.line, deep.hint) == ("too-deep", 4, "write the condition flatter")
    assert window.kind == "row-count"


@pytest.mark.parametrize("name", ["negations", "signs", "sums"])
def test_however_deep(name: str) -> None:
    text = f"{STREAMS}SELECT a FROM R WHERE\n{CHAINS[name](3_000)} WINDOW 1"
    assert [report.kind for report in reported(text)] == ["too-deep"]


# --- derived columns ----------------------------------------------------------


def having(text: str) -> str:
    compiled = compile_text(f"{STREAMS}SELECT {text} WINDOW 1", stop_after="tree")
    found = compiled.written.queries[0].having
    assert found is not None
    return x.show(found)


def test_having_knows_the_columns_of_select_after_those_of_streams() -> None:
    text = "a, sum(b) AS Total, min(b) AS s FROM R GROUP BY a, s HAVING total > 1 AND s = 'x'"
    assert having(text) == "sum(R.b) > 1 AND R.s = 'x'"


def test_where_does_not_know_the_columns_of_select() -> None:
    (report,) = reported(f"{STREAMS}SELECT a AS big FROM R WHERE big > 1 WINDOW 1")
    assert (report.kind, report.text) == ("unknown-column", "big")


def test_a_parameter_is_a_constant_of_its_own_type() -> None:
    options = Options(parameters={"least": 1.5, "who": "x", "share": 40})
    text = f"{STREAMS}SELECT a FROM R WHERE a > :least AND s = :who AND a < :share% WINDOW 1"
    where = compile_text(text, options=options, stop_after="tree").written.queries[0].where
    assert x.show(where) == "R.a > 1.5 AND R.s = 'x' AND R.a < 0.4"


@pytest.mark.parametrize(
    "qualify", ["sum(n) OVER (ORDER BY ts) > 1", "rank() OVER (ORDER BY n) > 1", "lag(n) OVER (ORDER BY ts) > 1"]
)  # fmt: skip
def test_functions_over_frames_do_not_nest_by_name_either(qualify: str) -> None:
    text = f"SELECT sum(a) OVER (ORDER BY ts) AS n FROM R QUALIFY {qualify}"
    (problem,) = reported(STREAMS + text)
    assert (problem.kind, problem.text) == ("over", "n")
