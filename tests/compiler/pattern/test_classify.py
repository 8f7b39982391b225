"""The seven classes of conjuncts, by what a conjunct mentions."""

from __future__ import annotations

import pytest

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.language.types import DOUBLE, INT, VARCHAR
from seustream.compiler.pattern.ir import Class
from seustream.compiler.pattern.statements import compile_pattern
from tests.compiler.pattern.queries import query

NUMBERS = Stream("s", (Column("type", VARCHAR), Column("x", INT), Column("y", DOUBLE)))
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
