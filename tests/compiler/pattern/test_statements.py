"""The language: what is accepted, what it comes to, how conditions are classified. The number of
a test is that of the acceptance statement in the specification."""

from __future__ import annotations

import datetime

import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.errors import CompileError
from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import DOUBLE, INT, VARCHAR
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Class, Mode, Skip, Strategy
from seustream.compiler.pattern.statements import compile_pattern
from seustream.hdl.isa import Condition

STOCK = Stream("stock", (Column("type", VARCHAR), Column("price", DOUBLE), Column("volume", INT)))
NUMBERS = Stream("s", (Column("type", VARCHAR), Column("x", INT), Column("y", DOUBLE)))


def query(text: str, bounded: bool = False, **parameters: float | str) -> ir.PatternQuery:
    return compile_pattern(text, STOCK, parameters=parameters, bounded=bounded)


SPECIFIED = [
    "PATTERN A; !B; C{2} cs; D WHERE a.price > 1 WITHIN 10 min RETURN A, cs, d.price AS p",
    "PATTERN A;B+;C WITHIN 10 ms RETURN *",
    "PATTERN A;B{2};C WITHIN 10 ms USING ANY SUBSETS RETURN *",
    "PATTERN A;B{2,2};C WITHIN 10 ms USING NEXT RETURN *",
    "PATTERN A;B;C WITHIN 10 ms USING STRICT RETURN *;",
    "PATTERN A;!N;C WITHIN 5 ms RETURN *",
    "PATTERN !N;A;C WITHIN 5 ms RETURN *",
    "PATTERN A;C;!N WITHIN 5 ms RETURN *",
    "PATTERN A;B;C;D WHERE a.price > 1000 AND a.price > (1+38%)*b.price"
    " AND c.price < (1-40%)*d.price WITHIN 10 min RETURN *",
    "PATTERN Stock+ a; Stock b WHERE a[1].volume >= 1000"
    " AND a[i].price > avg(a[..i-1].price) AND b.volume < 80% * last(a).volume"
    " WITHIN 1 h USING NEXT RETURN *",
    "PATTERN A;!B;C WHERE b.price > c.price WITHIN 1 s RETURN *",
    "PATTERN A WITHIN 1 s RETURN *",
    "pattern any x; A^2 as_ from stock type by type partition by volume within 1.5 h"
    " using any group after match skip to next event return count(as_), last(as_).price",
]


@pytest.mark.parametrize("text", SPECIFIED)
def test_01_statements_of_the_specification(text: str) -> None:
    assert query(text).outputs


def test_02_two_semicolons() -> None:
    with pytest.raises(CompileError) as error:
        query("PATTERN A;;B WITHIN 1 s RETURN *")
    (problem,) = error.value.problems
    assert problem.kind == "P001"
    assert error.value.source.position(problem.span.start) == (1, 11)


def test_03_percent_and_signs() -> None:
    found = query("PATTERN A WHERE a.price ≤ 1+38% AND a.price ≠ 2×3 WITHIN 1 s RETURN *")
    first, second = (c.expression for c in found.conjuncts)
    assert isinstance(first, x.Compare)
    assert isinstance(first.right, x.Literal)
    assert first.right.value == 1.38
    assert first.condition is Condition.LE
    assert isinstance(second, x.Compare)
    assert (second.condition, second.right) == (Condition.NE, x.Literal(6, INT))
    with pytest.raises(CompileError, match="P019"):
        query("PATTERN A WHERE a.volume % 2 = 1 WITHIN 1 s RETURN *")


def test_04_parameters() -> None:
    text = "PATTERN A WHERE a.price > :x AND a.price < 1 + :y% WITHIN 1 s RETURN *"
    first, second = (c.expression for c in query(text, x=2, y=38).conjuncts)
    assert isinstance(first, x.Compare)
    assert isinstance(second, x.Compare)
    assert isinstance(first.right, x.Literal)
    assert isinstance(second.right, x.Literal)
    assert (first.right.value, second.right.value) == (2, 1.38)
    with pytest.raises(CompileError, match="P018"):
        query(text, x=2)


def test_06_within_may_be_missing_on_bounded_input() -> None:
    with pytest.raises(CompileError, match="P010"):
        query("PATTERN A; B RETURN *")
    assert query("PATTERN A; B RETURN *", bounded=True).window is None


@pytest.mark.parametrize(
    ("written", "window"),
    [
        ("1.5 min", 90_000),
        ("10 ms", 10),
        ("2 sec", 2_000),
        ("0.5 d", 43_200_000),
        ("1 Hours", 3_600_000),
    ],
)
def test_07_units(written: str, window: int) -> None:
    assert query(f"PATTERN A WITHIN {written} RETURN *").window == window


def test_07_half_a_millisecond() -> None:
    with pytest.raises(CompileError, match="P011"):
        query("PATTERN A WITHIN 0.5 ms RETURN *")


def test_08_at_least_three_ways() -> None:
    forms = [query(f"PATTERN A{q}; B WITHIN 1 s RETURN *").elements for q in ("^3", "{3}", "{3,}")]
    assert forms[0] == forms[1] == forms[2]
    assert (forms[0][0].least, forms[0][0].most) == (3, None)


CLASSES = [
    ("a.x > 1", Class.CONSTANT),
    ("k.x > 1", Class.CONSTANT),
    ("n.x > 1", Class.CONSTANT),
    ("a.x > b.x", Class.PAIR),
    ("k[i].x > a.x", Class.MEMBER),
    ("k.x + a.x > b.x", Class.MEMBER),
    ("k[1].x > 1", Class.FIRST),
    ("k[1].x > b.x", Class.FIRST),
    ("k[i].x > k[i-1].x", Class.STEP),
    ("avg(k[..i-1].x) < a.x", Class.STEP),
    ("last(k).x > 1", Class.GROUP),
    ("count(k) > 2", Class.GROUP),
    ("k.x > sum(k.x)", Class.GROUP),
    ("k.x > m.x", Class.GROUP),
    ("k[1].x = k.x", Class.GROUP),
    ("n.x > a.x", Class.NEGATED),
    ("n.x > b.x + sum(k.x)", Class.NEGATED),
    ("n.x > k.x", Class.NEGATED),
]


@pytest.mark.parametrize(("condition", "cls"), CLASSES)
def test_09_classes(condition: str, cls: Class) -> None:
    text = f"PATTERN A; A+ k; !N; B; B+ m; A z WHERE {condition} WITHIN 1 s RETURN *"
    text = text.replace("A;", "A a;", 1).replace("B;", "B b;", 1)
    (conjunct,) = compile_pattern(text, NUMBERS).conjuncts
    assert conjunct.cls is cls


def test_conditions_without_variables_are_folded() -> None:
    assert query("PATTERN A WHERE 1 < 2 WITHIN 1 s RETURN *").conjuncts == ()
    assert query("PATTERN A WHERE 1 < 2 WITHIN 1 s RETURN *").empty == ""
    for never in ("mod(3, 2) = 2", "NULL = 1", "1 / 0 > 0"):
        assert query(f"PATTERN A WHERE a.price > 1 AND {never} WITHIN 1 s RETURN *").empty == never


def test_names_of_columns() -> None:
    text = (
        "PATTERN A x; B+ k; A y WITHIN 1 s"
        " RETURN x, k.price, x.price, last(k).price, count(k), y.volume AS v, y.ts"
    )
    names = [output.name for output in query(text).outputs]
    assert names == ["x", "price", "price_2", "price_3", "c5", "v", "ts"]
    each = [output.each for output in query(text).outputs]
    assert each == [None, 1, None, None, None, None, None]


def test_a_name_is_an_alias_first() -> None:
    found = query("PATTERN A b; B c WHERE b.price > 1 WITHIN 1 s RETURN c.price")
    assert found.conjuncts[0].refs == (0,)
    again = query("PATTERN A; B WHERE B.price > 1 WITHIN 1 s RETURN A")
    assert again.conjuncts[0].refs == (1,)


def test_absences_of_one_type_need_no_names() -> None:
    found = query("PATTERN A; !N; B; !N; C WITHIN 1 s RETURN *")
    assert [e.negated for e in found.elements] == [False, True, False, True, False]


def test_defaults() -> None:
    found = query("PATTERN A; B WITHIN 1 s RETURN *")
    assert (found.strategy, found.mode, found.skip) == (Strategy.ANY, Mode.GROUP, Skip.NONE)
    assert (found.stream.name, found.type_column) == ("stock", "type")


def test_a_text_is_read_as_a_date() -> None:
    from seustream.compiler.language.types import DATE, TIME, TIMESTAMP

    days = Stream(
        "d",
        (Column("type", VARCHAR), Column("d", DATE), Column("t", TIME), Column("m", TIMESTAMP)),
    )
    text = (
        "PATTERN A WHERE a.d > '1970-01-03' AND a.t < '00:00:01.5' AND a.m = '1970-01-01 00:00:01'"
        " WITHIN 1 s RETURN *"
    )
    values = [
        c.expression.right.value  # type: ignore[union-attr]
        for c in compile_pattern(text, days).conjuncts
    ]
    assert values == [
        datetime.date(1970, 1, 3),
        datetime.time(0, 0, 1, 500_000),
        datetime.datetime(1970, 1, 1, 0, 0, 1),
    ]
