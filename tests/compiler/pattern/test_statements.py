"""The PATTERN language: accepted statements, their compiled form, the classes of conditions. The
number in a test's name is that of the acceptance statement in the specification."""

from __future__ import annotations

import pytest

from seustream.compiler.errors import CompileError
from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import INT
from seustream.hdl.isa import Condition
from tests.compiler.pattern.queries import query

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
