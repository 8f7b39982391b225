"""Text to trees: every form of the language, its spans, and texts that do not parse."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from seustream.compiler.errors import Problems, SourceText
from seustream.compiler.language import syntax
from seustream.compiler.language.parse import MAX_NESTING
from seustream.compiler.xsql import tree
from seustream.compiler.xsql.parse import parse, tokens
from seustream.compiler.xsql.statements import split
from tests.compiler.xsql.problems import Mistake, mistakes, reported
from tests.compiler.xsql.shapes import condition, parsed, select, shape, type_shape

# --- statements ---------------------------------------------------------------


def one(text: str) -> tree.Statement:
    (statement,) = parsed(text)
    return statement


@pytest.mark.parametrize(
    ("written", "columns"),
    [
        ("(a int)", ["a int"]),
        ("(a INT, b SmallInt , c bigint)", ["a int", "b smallint", "c bigint"]),
        ("(x real, y double precision)", ["x real", "y double precision"]),
        ("(y DOUBLE\n PRECISION, z double)", ["y double precision", "z double"]),
        ("(s char(4), v varchar ( 80 ), w varchar)", ["s char[4]", "v varchar[80]", "w varchar"]),
        ("(d date, t time, p timestamp)", ["d date", "t time", "p timestamp"]),
        ("(ok boolean)", ["ok boolean"]),
        ("(a int not null, b int null)", ["a int NOT NULL", "b int"]),
        ('("select" int, "a b" int)', ["select int", "a b int"]),
        ("(date date, rows int, now int)", ["date date", "rows int", "now int"]),
    ],
)
def test_create_stream(written: str, columns: list[str]) -> None:
    created = one(f"CREATE STREAM R {written}")
    assert isinstance(created, tree.CreateStream)
    assert created.name.text == "R"
    got = [
        f"{c.name.text} {type_shape(c.type)}{'' if c.nullable else ' NOT NULL'}"
        for c in created.columns
    ]
    assert got == columns


def test_create_stream_as() -> None:
    created = one("create stream Fast as select a from R where a > 5 window 3")
    assert isinstance(created, tree.CreateStreamAs)
    assert created.name.text == "Fast"
    assert shape(created.query.where) == "(> a 5)"


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("DROP STREAM R", tree.DropStream, "R"),
        ("drop stream R;", tree.DropStream, "R"),
        ('DROP STREAM "a b"', tree.DropStream, "a b"),
        ("DROP QUERY late", tree.DropQuery, "late"),
        ('Drop Query "x""y"', tree.DropQuery, 'x"y'),
    ],
)
def test_drop(text: str, kind: type, name: str) -> None:
    dropped = one(text)
    assert isinstance(dropped, (tree.DropStream, tree.DropQuery))
    assert (type(dropped), dropped.name.text) == (kind, name)


def test_register_query() -> None:
    registered = one('REGISTER QUERY "Late ones" AS SELECT * FROM R WINDOW 1')
    assert isinstance(registered, tree.RegisterQuery)
    assert registered.name.text == "Late ones"
    assert shape(registered.query.items[0].expression) == "*"


@pytest.mark.parametrize(
    ("text", "what"),
    [("SHOW STREAMS", "streams"), ("show Queries", "queries")],
)
def test_show(text: str, what: str) -> None:
    shown = one(text)
    assert isinstance(shown, tree.Show)
    assert shown.what == what


def test_explain_a_query_by_name_or_in_full() -> None:
    by_name = one("EXPLAIN late")
    assert isinstance(by_name, tree.Explain)
    assert isinstance(by_name.target, syntax.Name)
    assert by_name.target.text == "late"
    in_full = one("explain select a from R window now")
    assert isinstance(in_full, tree.Explain)
    assert isinstance(in_full.target, tree.Select)


def test_a_text_is_its_statements() -> None:
    text = """-- two streams; and a comment with a semicolon
    CREATE STREAM R (a int);;  ; CREATE STREAM S (b int) -- the last one needs no semicolon
    """
    assert [type(s).__name__ for s in parsed(text)] == ["CreateStream", "CreateStream"]


@pytest.mark.parametrize("text", ["", "   \n\t ", ";", ";;;", "-- nothing", "-- a\n;\n-- b"])
def test_a_text_may_say_nothing(text: str) -> None:
    assert parsed(text) == []


def test_semicolons_in_strings_names_and_comments_end_nothing() -> None:
    text = "SELECT 'a;b' AS \"c;d\" FROM R -- e;f\nWINDOW 1; DROP QUERY x"
    assert [text[s.start : s.end].split()[0] for s in split(text, Problems())] == ["SELECT", "DROP"]


# --- SELECT -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "items"),
    [
        ("a", ["a -"]),
        ("a, R.b", ["a -", "R.b -"]),
        ("a AS x, R.b as Y", ["a x", "R.b Y"]),
        ("a + 1 AS \"two words\", 'x'", ["(+ a 1) two words", "'x' -"]),
        ("R.*", ["R.* -"]),
        ("R.*, S.d", ["R.* -", "S.d -"]),
        ("count(*), avg(speed) AS pace", ["(count *) -", "(avg speed) pace"]),
        ("a = 1 OR b = 2", ["(OR (= a 1) (= b 2)) -"]),
    ],
)
def test_select_list(written: str, items: list[str]) -> None:
    selected = select(f"SELECT {written} FROM R, S WINDOW 1").items
    assert selected is not None
    assert [f"{shape(item.expression)} {shape(item.alias)}" for item in selected] == items


def test_select_all() -> None:
    assert [shape(item.expression) for item in select("SELECT * FROM R WINDOW 1").items] == ["*"]


def test_a_star_stands_among_other_items() -> None:
    items = select("SELECT *, a + 1 b, R.* FROM R WINDOW 1").items
    assert [shape(item.expression) for item in items] == ["*", "(+ a 1)", "R.*"]
    assert [item.alias and item.alias.text for item in items] == [None, "b", None]


def test_backticks_quote_names() -> None:
    (item,) = select("SELECT `a ``b``; c` FROM `R` WINDOW 1").items
    assert isinstance(item.expression, syntax.Reference)
    assert item.expression.path == ("a `b`; c",)


@pytest.mark.parametrize(
    ("written", "sources"),
    [
        ("R", ["R -"]),
        ("R, S , T,U", ["R -", "S -", "T -", "U -"]),
        ("R AS x, R y", ["R x", "R y"]),
        ('"My stream" AS "m s", R', ["My stream m s", "R -"]),
        ("r R", ["r R"]),
    ],
)
def test_from(written: str, sources: list[str]) -> None:
    items = select(f"SELECT * FROM {written} WINDOW 1").sources
    assert [f"{item.stream.text} {shape(item.alias)}" for item in items] == sources


def test_grouping() -> None:
    s = select(
        "SELECT dir, avg(speed) FROM R WHERE speed > 0 GROUP BY dir, xPos / 100"
        " HAVING avg(speed) < 40 AND count(*) > 2 WINDOW RANGE 5 minutes"
    )
    assert [shape(e) for e in s.group_by] == ["dir", "(/ xPos 100)"]
    assert shape(s.having) == "(AND (< (avg speed) 40) (> (count *) 2))"
    assert shape(s.where) == "(> speed 0)"


def test_options() -> None:
    s = select("SELECT a FROM R WINDOW RANGE 5 m WITH (Strict)")
    assert [option.name.text for option in s.options] == ["Strict"]
    assert select("SELECT a FROM R AS with WINDOW 1").sources[0].alias is not None


def test_clauses_may_be_left_out() -> None:
    s = select("SELECT a FROM R WINDOW 1")
    assert (s.where, s.group_by, s.having) == (None, (), None)
    s = select("SELECT count(*) FROM R HAVING count(*) > 1 WINDOW 1")
    assert s.group_by == ()
    assert s.having is not None


# --- conditions and expressions -----------------------------------------------


@pytest.mark.parametrize(
    ("written", "read"),
    [
        # precedence: OR, XOR, AND, NOT, comparison, + - ||, * / DIV, sign, ::
        ("a = 1 OR b = 2 AND c = 3", "(OR (= a 1) (AND (= b 2) (= c 3)))"),
        ("(a = 1 OR b = 2) AND c = 3", "(AND (OR (= a 1) (= b 2)) (= c 3))"),
        ("NOT a = 1 AND b = 2", "(AND (NOT (= a 1)) (= b 2))"),
        ("NOT (a = 1 AND b = 2)", "(NOT (AND (= a 1) (= b 2)))"),
        ("NOT NOT a = 1", "(NOT (NOT (= a 1)))"),
        ("a = 1 AND b = 2 AND c = 3", "(AND (= a 1) (= b 2) (= c 3))"),
        ("a + b * c = 1", "(= (+ a (* b c)) 1)"),
        ("(a + b) * c = 1", "(= (* (+ a b) c) 1)"),
        ("a - b - c = 1", "(= (- (- a b) c) 1)"),
        ("a / b % c = 1", "(= (% (/ a b) c) 1)"),
        ("a -1 = b", "(= (- a 1) b)"),
        ("a = 1 OR ok XOR b = 2 AND c = 3", "(OR (= a 1) (XOR ok (AND (= b 2) (= c 3))))"),
        ("a div b / c = 1", "(= (/ (DIV a b) c) 1)"),
        ("-a::bigint = 1", "(= (- (CAST a bigint)) 1)"),
        ("a::decimal(10, 2)::varchar = '1'", "(= (CAST (CAST a decimal[10,2]) varchar) '1')"),
        ("a - -1 = b", "(= (- a (- 1)) b)"),
        ("- a * b = 1", "(= (* (- a) b) 1)"),
        ("-(a + b) = 1", "(= (- (+ a b)) 1)"),
        ("+ - a = 1", "(= (+ (- a)) 1)"),
        ("a || b || 'c' = 'd'", "(= (|| (|| a b) 'c') 'd')"),
        # comparisons
        ("a = b", "(= a b)"),
        ("a <> b", "(<> a b)"),
        ("a != b", "(<> a b)"),
        ("a<b", "(< a b)"),
        ("a<=b", "(<= a b)"),
        ("a>b", "(> a b)"),
        ("a>=b", "(>= a b)"),
        # the other conditions
        ("a BETWEEN 1 AND 2 AND b = 3", "(AND (BETWEEN a 1 2) (= b 3))"),
        ("a NOT BETWEEN b + 1 AND 2 OR c = 3", "(OR (NOT BETWEEN a (+ b 1) 2) (= c 3))"),
        ("a IN (1)", "(IN a 1)"),
        ("a IN (1, b, 2 + 3)", "(IN a 1 b (+ 2 3))"),
        ("a NOT IN (1, 2)", "(NOT IN a 1 2)"),
        ("a IS NULL", "(NULL? a)"),
        ("a IS NOT NULL", "(NOT NULL? a)"),
        ("NOT a IS NULL", "(NOT (NULL? a))"),
        ("s LIKE 'a%'", "(LIKE s 'a%')"),
        ("a IS NOT DISTINCT FROM b", "(NOT DISTINCT? a b)"),
        ("s LIKE 'a!%' ESCAPE '!'", "(LIKE s 'a!%' '!')"),
        ("s NOT ILIKE t", "(NOT ILIKE s t)"),
        ("CASE a WHEN 1 THEN 2 END = 3", "(= (CASE a, 1: 2, -) 3)"),
        ("CASE WHEN ok THEN a ELSE b END = 3", "(= (CASE ok: a, b) 3)"),
        ("s NOT LIKE '_b'", "(NOT LIKE s '_b')"),
        ("(a = b) = (c = d)", "(= (= a b) (= c d))"),
        ("ok", "ok"),
        ("NOT ok AND TRUE", "(AND (NOT ok) True)"),
        # constants
        ("a = 007", "(= a 7)"),
        ("a = -2147483648", "(= a (- 2147483648))"),
        ("a = 1.50", "(= a 1.5)"),
        ("a = .5", "(= a 0.5)"),
        ("a = 5.", "(= a 5.0)"),
        ("a = 2e3", "(= a 2000.0)"),
        ("a = 2.5E-1", "(= a 0.25)"),
        ("s = ''", "(= s '')"),
        ("s = 'it''s'", '(= s "it\'s")'),
        ("s = ''''", '(= s "\'")'),
        ("s = 'a\nb -- c'", "(= s 'a\\nb -- c')"),
        ("s = '\"' OR s = \"'\"", "(OR (= s '\"') (= s '))"),
        ("ok = true OR ok = FALSE OR a = NULL", "(OR (= ok True) (= ok False) (= a None))"),
        ("d = DATE '2006-03-01'", "(= d DATE '2006-03-01')"),
        ("t < time '12:30:00'", "(< t time '12:30:00')"),
        ("p > TIMESTAMP '2006-03-01 12:00:00'", "(> p TIMESTAMP '2006-03-01 12:00:00')"),
        ("a > 5 min OR a > INTERVAL '5' MINUTE", "(OR (> a 5 min) (> a INTERVAL '5' MINUTE))"),
        ("a > 38% AND a < :most%", "(AND (> a 0.38) (< a :most%))"),
        # names
        ("R.a = s.B", "(= R.a s.B)"),
        ('"R"."a b" = "x""y"', '(= R.a b x"y)'),
        ("select = 1", "(= select 1)"),
        ("_x1 = y_", "(= _x1 y_)"),
        # functions and casts
        ("abs(a) = 1", "(= (abs a) 1)"),
        ("Power(a, 2) = substr(s, 1, 3)", "(= (Power a 2) (substr s 1 3))"),
        ("now() = 1", "(= (now) 1)"),
        ("count( * ) > 1", "(> (count *) 1)"),
        ("CAST(a AS varchar(10)) = 'x'", "(= (CAST a varchar[10]) 'x')"),
        ("cast(a + 1 as double precision) = 1", "(= (CAST (+ a 1) double precision) 1)"),
        ("TRY_CAST(s AS date) = d", "(= (TRY_CAST s date) d)"),
        ("count(DISTINCT a) FILTER (WHERE b > 1) > 1", "(> (count DISTINCT a FILTER (> b 1)) 1)"),
        ("extract(YEAR FROM p) = 2006", "(= (extract 'year' p) 2006)"),
        ("coalesce(a = 1, ok)", "(coalesce (= a 1) ok)"),
        # space and comments
        ("a=1AND b=2", "(AND (= a 1) (= b 2))"),
        ("a -- first\n = -- then\n\t1", "(= a 1)"),
        ("a--b\n=1", "(= a 1)"),
    ],
)
def test_condition(written: str, read: str) -> None:
    assert condition(written) == read


def test_keywords_are_case_insensitive() -> None:
    plain = "SELECT DISTINCTION FROM R WHERE a BETWEEN 1 AND 2 OR NOT b IN (3) WINDOW RANGE 5 MIN"
    mixed = "sElEcT DISTINCTION fRoM R wHeRe a bEtWeEn 1 aNd 2 oR nOt b In (3) wInDoW rAnGe 5 MIN"
    assert parsed(mixed) == parsed(plain)


def test_all_white_space_is_alike() -> None:
    spaced = "SELECT\r\n\t*\f FROM\n\n R \v WINDOW\u00a01"
    assert select(spaced).sources[0].stream.text == "R"


# --- spans --------------------------------------------------------------------


def nodes(value: object) -> Iterator[object]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield value
        for field in dataclasses.fields(value):
            yield from nodes(getattr(value, field.name))
    elif isinstance(value, tuple):
        for part in value:
            yield from nodes(part)


def test_every_node_knows_its_place() -> None:
    text = (
        "CREATE STREAM R (a int, s varchar(5));\n"
        "SELECT R.a AS x, abs(a) + 1, count(*)\n"
        "FROM R, S AS t  -- the streams\n"
        "WHERE R.a = t.b AND s LIKE 'x%' AND NOT a IN (1, -2) AND CAST(a AS real) IS NULL\n"
        "GROUP BY R.a HAVING max(a) BETWEEN 1 AND 2\n"
        "WINDOW RANGE 5 minutes, ROWS 3 ;"
    )
    written = {
        text[node.span.start : node.span.end]  # type: ignore[attr-defined]
        for statement in parsed(text)
        for node in nodes(statement)
        if hasattr(node, "span")
    }
    assert written >= {
        "CREATE STREAM R (a int, s varchar(5))",
        "s varchar(5)",
        "varchar(5)",
        "R.a AS x",
        "abs(a) + 1",
        "count(*)",
        "S AS t",
        "R.a = t.b",
        "s LIKE 'x%'",
        "NOT a IN (1, -2)",
        "-2",
        "CAST(a AS real)",
        "real",
        "max(a) BETWEEN 1 AND 2",
        "RANGE 5 minutes",
        "minutes",
        "ROWS 3",
    }


def test_positions_are_those_of_the_file() -> None:
    text = "DROP QUERY a;\n\n  DROP\tQUERY second;"
    second = parsed(text)[1]
    assert isinstance(second, tree.DropQuery)
    assert SourceText(text).position(second.name.span.start) == (3, 14)


# --- tokens -------------------------------------------------------------------


def test_tokens_are_listed_with_their_places() -> None:
    text = 'SELECT a -- why\nFROM R\n  WINDOW 1.5 s;\nDROP QUERY "x"'
    assert [
        (kind, written, line, column) for kind, written, line, column in tokens(SourceText(text))
    ] == [
        ("SELECT", "SELECT", 1, 1),
        ("NAME", "a", 1, 8),
        ("FROM", "FROM", 2, 1),
        ("NAME", "R", 2, 6),
        ("WINDOW", "WINDOW", 3, 3),
        ("DECIMAL", "1.5", 3, 10),
        ("UNIT", "s", 3, 14),
        ("DROP", "DROP", 4, 1),
        ("QUERY", "QUERY", 4, 6),
        ("QUOTED_NAME", '"x"', 4, 12),
    ]


def test_tokens_end_at_what_is_none() -> None:
    assert [token[1] for token in tokens(SourceText("a ? b; c"))] == ["a", "c"]


# --- mistakes -----------------------------------------------------------------


@pytest.mark.parametrize("mistake", mistakes("parse"), ids=str)
def test_mistake(mistake: Mistake) -> None:
    assert reported(mistake.text) == [mistake.report()]


def test_half_of_a_character_is_reported() -> None:
    text = "SHOW STREAMS;\nSHOW STREAMS -- \ud800"
    assert reported(text) == [
        ("not-text", 2, 17, "\ud800", "half of a character", "files are UTF-8")
    ]


def problems_of(text: str) -> list[tuple[str, int, int]]:
    source, problems = SourceText(text), Problems()
    parse(source, problems)
    return [(p.kind, *source.position(p.span.start)) for p in problems.found]


def test_a_mistake_in_one_statement_does_not_hide_the_next() -> None:
    text = "SELEC 1;\nDROP STREAM;\nDROP QUERY q;\nSHOW ME;\nSELECT 'x"
    assert problems_of(text) == [
        ("syntax", 1, 1),
        ("syntax", 2, 11),
        ("syntax", 4, 6),
        ("unterminated", 5, 8),
    ]


@pytest.mark.parametrize("text", ["/* SELECT a FROM R", "SELECT a FROM R /* ; SELECT b FROM R"])
def test_a_comment_ends(text: str) -> None:
    problems = Problems()
    parse(SourceText(text), problems)
    assert [(p.message, p.hint) for p in problems.found] == [
        ("this comment does not end", "close it with */")
    ]


def test_statements_before_an_unterminated_string_are_read() -> None:
    problems = Problems()
    statements = parse(SourceText("SHOW STREAMS; SELECT 'x; SHOW QUERIES"), problems)
    assert [type(statement) for statement in statements] == [tree.Show]
    assert [problem.kind for problem in problems.found] == ["unterminated"]


def nested(depth: int) -> str:
    return f"SELECT * FROM R WHERE {'(' * depth}a = 1{')' * depth} WINDOW 1"


def test_parentheses_may_nest_so_deep_and_no_deeper() -> None:
    assert condition(f"{'(' * MAX_NESTING}a = 1{')' * MAX_NESTING}") == "(= a 1)"
    assert problems_of(nested(MAX_NESTING + 1)) == [("too-deep", 1, 23 + MAX_NESTING)]


def test_a_statement_that_is_too_deep_is_reported_once_and_the_next_is_read() -> None:
    text = f"{nested(100_000)};\nSELECT «"
    assert problems_of(text) == [("too-deep", 1, 23 + MAX_NESTING), ("syntax", 2, 8)]


def test_each_statement_counts_its_own_parentheses() -> None:
    half = "(" * 150 + "a" + ")" * 150
    text = f"SELECT {half} FROM R WINDOW 1; SELECT {half} + {half} FROM R WINDOW 1"
    assert problems_of(text) == []
    unclosed = "SELECT " + "(" * 150 + "a FROM R WINDOW 1"
    assert problems_of(f"{unclosed};\n{unclosed}") == [("syntax", 1, 160), ("syntax", 2, 160)]


def test_many_conditions_are_one_conjunction() -> None:
    text = " AND ".join(f"a = {number}" for number in range(3_000))
    where = select(f"SELECT * FROM R WHERE {text} WINDOW 1").where
    assert isinstance(where, syntax.Connective)
    assert len(where.operands) == 3_000


@pytest.mark.parametrize("repeated", ["NOT ", "- ", "a + ", "a * ", "a AND NOT ", "('x' || "])
def test_long_chains_are_read_or_reported(repeated: str) -> None:
    """The tree builder does not recurse."""
    problems = Problems()
    parse(SourceText(f"SELECT * FROM R WHERE {repeated * 3_000}a WINDOW 1"), problems)
    assert {p.kind for p in problems.found} <= {"syntax", "too-deep"}
