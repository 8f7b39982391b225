"""Tests widths on a terminal: tables and carets of texts with wide characters."""

from __future__ import annotations

import pytest

from seustream.commands.common import table
from seustream.compiler.cells import width_of
from seustream.compiler.errors import CompileError
from seustream.compiler.explain import marks
from seustream.compiler.pipeline import compile_text


@pytest.mark.parametrize("made", [table, lambda rows, head: "\n".join(marks.table(head, rows))])
def test_columns_begin_at_the_same_cell(made) -> None:  # type: ignore[no-untyped-def]
    rows = [("温度", "°C", 5), ("cafe\u0301", "b", 17), ("x", "センサー", 1)]
    lines = made(rows, ("stream", "column", "rows")).splitlines()
    ends = {width_of(line) for line in lines}
    assert len(ends) == 1  # the last column is of numbers, to the right
    begins = {
        width_of(line[: line.index(mark)])
        for line, mark in zip(lines[2:], ("°C", "b", "セ"), strict=True)
    }
    assert len(begins) == 1


def test_a_caret_stands_under_its_text() -> None:
    text = "CREATE STREAM r (b varchar); SELECT b FROM r WHERE b = '東京東京' AND c > 1"
    with pytest.raises(CompileError) as caught:
        compile_text(text)
    _, shown, caret, _ = caught.value.source.render(caught.value.problems[0]).splitlines()
    assert width_of(shown[: shown.index("c > 1")]) == caret.index("^")
    with pytest.raises(CompileError) as caught:
        compile_text('CREATE STREAM r (b varchar); SELECT "東京" FROM r')
    assert caught.value.source.render(caught.value.problems[0]).splitlines()[2].count("^") == 6
