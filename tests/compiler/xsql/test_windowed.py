"""Windows as columns of rows: the time bounds of joins on them."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

import seustream as ss
from seustream.compiler.errors import CompileError
from seustream.compiler.logical.program import Query
from seustream.compiler.pipeline import compile_text

STREAMS = "CREATE STREAM R (a int, b int); CREATE STREAM S (a int, d int);\n"
ROWS = "(SELECT * FROM TABLE(TUMBLE(TABLE {}, DESCRIPTOR(ts), INTERVAL '{}' SECOND))) {}"
GROUPS = """(SELECT max(b) AS top, window_start, window_end
FROM TUMBLE(TABLE R, DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start, window_end) X"""


@pytest.mark.parametrize(
    ("left", "right", "sizes"),
    [
        (ROWS.format("R", 10, "L"), ROWS.format("S", 10, "X"), (9_999, 9_999)),
        (ROWS.format("R", 10, "L"), GROUPS, (9_999, 0)),
        (GROUPS.replace(") X", ") L"), GROUPS, (0, 0)),
    ],
)
def test_rows_of_one_window_are_near_each_other(
    left: str, right: str, sizes: tuple[int, int]
) -> None:
    text = f"{STREAMS}SELECT L.window_start AS s FROM {left} JOIN {right} ON L.window_end = X.window_end"
    (query,) = compile_text(text).program.asked
    assert isinstance(query, Query)
    assert tuple(source.window.size for source in query.sources) == sizes


@pytest.mark.parametrize("seed", range(12))
def test_windows_in_subqueries_are_those_of_queries_in_from(seed: int) -> None:
    """TUMBLE and HOP in the FROM of EXISTS and IN, also of nested ones."""
    chance = random.Random(seed)
    print(f"seed {seed}")
    rows = {
        name: pa.table(
            {
                "ts": sorted(chance.choices(range(40), k=25)),
                "a": pa.array(chance.choices(range(5), k=25), pa.int32()),
                "b": pa.array(chance.choices(range(5), k=25), pa.int32()),
            }
        )
        for name in "RST"
    }
    size, slide = chance.randint(3, 8), chance.randint(2, 9)
    hop = f"HOP(TABLE S, DESCRIPTOR(ts), {slide}, {size})"
    nested = f"EXISTS (SELECT * FROM TUMBLE(TABLE T, DESCRIPTOR(ts), {size}) AS z WHERE z.b = y.b AND z.window_end > y.ts)"
    texts = [
        "SELECT x.a, x.b FROM R AS x WHERE EXISTS (SELECT * FROM {} AS y WHERE y.a = x.a AND y.window_end > x.ts)",
        "SELECT x.a, x.b FROM R AS x WHERE NOT EXISTS (SELECT * FROM {} AS y WHERE y.a = x.a AND y.window_start = 6)",
        "SELECT x.a, x.b FROM R AS x WHERE x.a IN (SELECT y.b FROM {} AS y WHERE y.window_start > 5)",
        f"SELECT x.a, x.b FROM R AS x WHERE EXISTS (SELECT * FROM {{}} AS y WHERE y.a = x.a AND {nested})",
    ]
    for text in texts:
        found = [
            Counter(ss.run(DEFINED + text.format(form) + " WINDOW UNBOUNDED", **rows)["q0"].rows())
            for form in (hop, f"(SELECT * FROM {hop})")
        ]
        assert found[0] == found[1]


@pytest.mark.parametrize(
    ("of", "said"),
    [
        ("HOP(TABLE S, DESCRIPTOR(nosuch), 0, -3)", "windows go by the stream's time"),
        ("CUMULATE(TABLE S, DESCRIPTOR(ts), 3, 9)", "windows that grow are those of groups"),
        ("SESSION(TABLE S, DESCRIPTOR(ts), 3)", "the windows of SESSION are those of groups"),
    ],
)
def test_windows_that_no_subquery_has(of: str, said: str) -> None:
    text = f"SELECT a FROM R WHERE a IN (SELECT a FROM {of}) WINDOW UNBOUNDED"
    with pytest.raises(CompileError, match=said):
        compile_text(DEFINED + text)


DEFINED = "CREATE STREAM R (a int, b int); CREATE STREAM S (a int, b int); CREATE STREAM T (a int, b int); "
