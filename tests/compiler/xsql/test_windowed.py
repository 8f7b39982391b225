"""Windows as columns of rows: the time bounds of joins on them."""

from __future__ import annotations

import pytest

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
