"""The parser of `cases.txt`, and the coverage the file must have."""

import datetime
import re
from collections import Counter
from decimal import Decimal

import pytest

from tests.language import casefile
from tests.language.casefile import Case, CaseError, Fault, parse

ONE = """
-- a comment
== Quotients

# integers divide as reals
row: i int = 7, u varchar = 'a, ''b''; c', amt decimal(10,2) = 1.50
expr: i / 2
type: double
value: 3.5
"""


def one(*lines: str) -> Case:
    [case] = parse("\n".join(["== S", "# t", *lines]))
    return case


def test_a_case():
    [case] = parse(ONE)
    assert case.title == "Quotients: integers divide as reals"
    assert case.line == 5
    assert case.columns == (("i", "int"), ("u", "varchar"), ("amt", "decimal(10,2)"))
    assert case.rows == ((7, "a, 'b'; c", Decimal("1.50")),)
    assert (case.expression, case.type, case.value) == ("i / 2", "double", 3.5)
    assert not case.aggregate
    assert not case.nearly
    assert case.languages == ("xsql", "pattern", "apas")


def test_rows_of_an_aggregate():
    case = one(
        "rows: x int, u varchar; 1, 'a;b'; NULL, NULL", "expr: f(x)", "type: int", "value: 1"
    )
    assert case.aggregate
    assert case.rows == ((1, "a;b"), (None, None))


def test_no_rows():
    case = one("rows: x decimal(10,2)", "expr: f(x)", "type: int", "value: NULL")
    assert case.aggregate
    assert case.rows == ()
    assert case.columns == (("x", "decimal(10,2)"),)


def test_a_case_without_columns_has_one_row():
    assert one("expr: 1", "type: int", "value: 1").rows == ((),)


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("boolean", "TRUE", True),
        ("bigint", "-7", -7),
        ("double", "Infinity", float("inf")),
        ("decimal(10,2)", "1.50", Decimal("1.50")),
        ("varchar", "'it''s'", "it's"),
        ("varchar", "'a¶b'", "a\nb"),
        ("date", "2024-02-29", datetime.date(2024, 2, 29)),
        ("time", "13:14:15.678", datetime.time(13, 14, 15, 678000)),
        ("timestamp", "2024-02-29 13:14:15", datetime.datetime(2024, 2, 29, 13, 14, 15)),
        ("interval", "-5 min", datetime.timedelta(minutes=-5)),
        ("interval", "250 ms", datetime.timedelta(milliseconds=250)),
        ("list(varchar)", "['a,b', NULL]", ["a,b", None]),
        ("list(int)", "[]", []),
        ("null", "NULL", None),
        ("list(int)", "NULL", None),
    ],
)
def test_values(type_: str, text: str, value: object):
    found = one("expr: e", f"type: {type_}", f"value: {text}").value
    assert found == value
    assert type(found) is type(value)


def test_nearly():
    case = one("expr: e", "type: double", "value: ~1.41")
    assert (case.value, case.nearly) == (1.41, True)


def test_a_fault_makes_the_value_null():
    case = one("expr: a / b", "type: double", "fault: division by zero @ 1:3")
    assert case.value is None
    assert case.faults == (Fault("division by zero", 1, 3),)


def test_several_faults_beside_a_value():
    case = one("expr: e", "type: int", "value: 7", "fault: overflow @ 2:1 (3)", "fault: cast @ 1:9")
    assert case.value == 7
    assert case.faults == (Fault("overflow", 2, 1, 3), Fault("cast", 1, 9))


def test_parameters():
    case = one("params: y = 38, z = 1.5, t = 'a'", "expr: :y%", "type: double", "value: 0.38")
    assert case.parameters == (("y", 38), ("z", 1.5), ("t", "a"))


def test_an_error_and_its_languages():
    case = one("expr: a % b", "error: mod", "only: xsql pattern")
    assert case.error == "mod"
    assert case.languages == ("xsql", "pattern")


def test_how_duckdb_spells_it():
    assert one("expr: 7 DIV 2", "type: bigint", "value: 3", "duckdb: 7 // 2").duckdb == "7 // 2"
    case = one("expr: hash(1)", "type: bigint", "value: 3", "duckdb: no (another hash)")
    assert (case.duckdb, case.without_duckdb) == (None, "another hash")


@pytest.mark.parametrize(
    ("lines", "line", "reason"),
    [
        (["type: int", "value: 1"], 2, "a case needs expr"),
        (["expr: 1"], 2, "a type or an error"),
        (["expr: 1", "type: int", "value: 1", "error: e"], 2, "a type or an error"),
        (["expr: 1", "type: int"], 2, "a value or a fault"),
        (["expr: 1", "error: e", "fault: f @ 1:1"], 2, "has no value"),
        (["expr: 1", "expr: 1"], 4, "expr stands twice"),
        (["exp: 1"], 3, "expected one of row"),
        (["nonsense"], 3, "expected one of row"),
        (["expr: 1", "type: int", "value: one"], 5, "'one' is no int"),
        (["expr: 1", "type: integer", "value: 1"], 5, "no type 'integer'"),
        (["expr: 1", "type: varchar", "value: 'a'b'"], 5, "is no varchar"),
        (["expr: 1", "type: list(int)", "value: 1"], 5, "in brackets"),
        (["row: a int", "expr: 1", "error: e"], 3, "a name, a type, = and a value"),
        (["row: int = 1", "expr: 1", "error: e"], 3, "a name and a type"),
        (["rows: a int; 1, 2", "expr: 1", "error: e"], 3, "a row has 1 values"),
        (["row: a int = 1", "rows: a int; 1", "expr: 1", "error: e"], 2, "row or rows"),
        (["params: y", "expr: 1", "error: e"], 3, "a parameter is"),
        (["expr: 1", "type: int", "fault: overflow"], 5, "a fault is"),
        (["expr: 1", "error: e", "only: cobol"], 5, "languages are"),
        (["expr: 1", "type: int", "value: 1", "duckdb: no"], 6, "needs its reason"),
    ],
)
def test_mistakes_have_a_line(lines: list[str], line: int, reason: str):
    with pytest.raises(CaseError, match=re.escape(reason)) as found:
        one(*lines)
    assert found.value.line == line


def test_a_title_stands_once():
    with pytest.raises(CaseError, match="line 5: the title stands in line 2 already"):
        parse("== S\n# t\nexpr: 1\nerror: e\n# t\nexpr: 1\nerror: e")


def test_keys_and_cases_stand_in_their_place():
    with pytest.raises(CaseError, match="line 1: a case stands before the first section"):
        parse("# t\nexpr: 1\nerror: e")
    with pytest.raises(CaseError, match="line 2: expr stands outside a case"):
        parse("== S\nexpr: 1")


def test_columns_are_spelled_and_places_move():
    case = one(
        "row: a int = 1, b int = 0, u varchar = 'x'",
        "expr: length('a b') + a¶ + abs(a) / b",
        "type: double",
        "fault: division by zero @ 2:11",
    )
    spelled = case.spelled(lambda name: f"event.{name}")
    assert spelled.expression == "length('a b') + event.a\n + abs(event.a) / event.b"
    assert spelled.faults == (Fault("division by zero", 2, 17),)
    assert spelled.expression.split("\n")[1][17 - 1] == "/"


def test_functions_parameters_and_qualified_names_are_not_columns():
    case = one("row: a int = 1", "expr: a(a) + :a + x.a + a_b", "type: int", "value: 1")
    assert case.spelled(str.upper).expression == "a(A) + :a + x.a + a_b"


# --- the file -----------------------------------------------------------------

FUNCTIONS = re.findall(
    r"\w+",
    """
    abs ceil floor round trunc sign sqrt cbrt exp ln log10 log2 power mod div pi sin cos tan asin acos
    atan atan2 degrees radians width_bucket hash
    lower upper length substr trim ltrim rtrim lpad rpad replace position concat concat_ws left right
    starts_with ends_with contains split_part reverse repeat regexp_matches regexp_extract md5
    extract date_trunc date_part to_timestamp epoch_ms
    coalesce nullif greatest least if cast try_cast
    count sum avg min max var_samp var_pop stddev_samp stddev_pop bool_and bool_or first last min_by
    max_by string_agg array_agg median approx_count_distinct
""",
)
"""The functions that the specification lists."""


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return casefile.read()


def test_there_are_enough_cases(cases: list[Case]):
    assert len(cases) >= 1500


def test_no_case_stands_twice(cases: list[Case]):
    found = Counter(
        (
            case.expression, case.columns, repr(case.rows), case.parameters, case.languages,
        )
        for case in cases
    )  # fmt: skip
    assert [key for key, count in found.items() if count > 1] == []


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_has_values_and_null(cases: list[Case], function: str):
    called = re.compile(rf"(?i)\b{function}\s*\(")
    mine = [case for case in cases if called.search(case.expression)]
    assert any(case.value is not None for case in mine)
    if function not in ("pi", "hash"):  # the two have no NULL
        assert any(
            case.error is None and not case.faults and None in _leaves(case) for case in mine
        )


def _leaves(case: Case) -> list[object]:
    return [value for row in case.rows for value in row] + (
        [None] if re.search(r"\bNULL\b", case.expression) or not case.rows else []
    )


def test_places_of_faults_are_tokens(cases: list[Case]):
    """A fault's place is the beginning of a word or an operator."""
    for case in cases:
        for fault in case.faults:
            line = case.expression.split("\n")[fault.line - 1]
            token = line[fault.column - 1 :]
            assert re.match(r"[A-Za-z_]\w*|::|[-+*/]", token), case
            assert fault.column == 1 or not re.match(r"\w\w", line[fault.column - 2 :]), case


def test_columns_are_read(cases: list[Case]):
    """A case has exactly the columns that its expression reads; others only to count rows."""
    for case in cases:
        spelled = case.spelled(lambda name: f"«{name}»")
        if spelled.expression == case.expression and case.aggregate:
            continue  # count(*)
        assert set(re.findall("«(.*?)»", spelled.expression)) == {n for n, _ in case.columns}, case
