"""Keys and aggregates of groups, and expressions over them, worked out by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.language.types import BIGINT
from seustream.compiler.pipeline import compile_text
from seustream.engine.host.aggregates import spanned
from seustream.engine.host.rows import leaves
from seustream.engine.relational.measures import Measures
from seustream.engine.stream.evaluate import evaluate
from seustream.engine.stream.schema import arrow_type

QUERY = compile_text(
    "CREATE STREAM R (a int, b int, t varchar);"
    "SELECT a + 1 AS k, t, 2 * sum(b) + count(*) AS s, sum(b) AS again, max(b) AS m FROM R"
    " GROUP BY a + 1, t WINDOW RANGE 9;"
).program.queries[0]
PARTS = [item.expression for item in QUERY.items]


def test_what_is_read_is_keys_then_arguments_once_each() -> None:
    measures = Measures(QUERY.group_by, PARTS)
    assert [x.show(e) for e in measures.read] == ["R.a + 1", "R.t", "R.b"]
    assert sorted(x.show(e) for e in measures.aggregates) == ["count(*)", "max(R.b)", "sum(R.b)"]
    assert measures.fields == [("c0", pa.int64()), ("c1", pa.string()), ("c2", pa.int32())]


def test_expressions_are_over_keys_and_aggregates() -> None:
    measures = Measures(QUERY.group_by, PARTS)
    assert {c.name for e in PARTS for c in x.columns(measures.over(e))} == {
        "g0",
        "g1",
        "a0",
        "a1",
        "a2",
    }
    key = measures.over(PARTS[1])
    assert isinstance(key, x.GroupValue)
    assert (key.name, key.type, key.holds, x.show(key)) == ("g1", PARTS[1].type, PARTS[1], "R.t")
    assert Measures((), [x.Literal(1, BIGINT)]).over(x.Literal(1, BIGINT)) == x.Literal(1, BIGINT)


def test_null_is_a_key_like_others() -> None:
    measures = Measures(QUERY.group_by, PARTS)
    keys = [pa.array([1, None, 1, None, 2]), pa.array(["x", None, "x", None, None])]
    found = measures.groups([*keys, pa.array([0] * 5)], 5).tolist()
    assert (found[0], found[1]) == (found[2], found[3])
    assert len(set(found)) == 3
    assert len(set(Measures((), PARTS[2:3]).groups([], 5).tolist())) == 1, "one group of all"


def test_values_at_points_are_those_of_the_rows_there() -> None:
    """Two groups side by side, of three rows and of one; a point for each row covers the rows up to
    it."""
    measures = Measures(QUERY.group_by, PARTS)
    values = [
        pa.array([5, 5, 5, None], arrow_type(QUERY.group_by[0].type)),
        pa.array(["x", "x", "x", "y"]),
        pa.array([3, None, 4, None], pa.int32()),
    ]
    group = np.array([0, 0, 0, 1])
    first = np.array([0, 0, 0, 3])
    turns = spanned(np.arange(4), np.array([3, 3, 3, 4]), group)
    rows = measures.of_points(values, first, group, turns, Faults())
    found = [evaluate(measures.over(e), leaves(rows), 4).to_pylist() for e in PARTS]
    assert found == [
        [5, 5, 5, None], ["x", "x", "x", "y"], [7, 8, 17, None], [3, 3, 7, None], [3, 3, 4, None]
    ]  # fmt: skip
