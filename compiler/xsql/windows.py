"""Windows of a WINDOW clause: from what was written to milliseconds and rows."""

from __future__ import annotations

from fractions import Fraction

from seustream.compiler.errors import Problems, suggest
from seustream.compiler.language.types import MILLISECONDS
from seustream.compiler.xsql import tree
from seustream.hdl.device import Window, WindowKind

_LARGEST = (1 << 63) - 1


def window(clause: tree.WindowClause, problems: Problems) -> Window:
    """The window a clause asks for; what is wrong with it is reported."""
    if clause.kind == "now":
        return Window(WindowKind.RANGE, 0)
    if clause.kind == "unbounded":
        return Window(WindowKind.UNBOUNDED)
    size = clause.size if clause.size is not None else 0
    if clause.kind == "rows":
        if size < 1 or not isinstance(size, int) or size > _LARGEST:
            problems.add(
                "row-count",
                f"a window holds a whole number of rows, 1 or more, not {size}",
                clause.span,
                "for a time, name a unit: RANGE 5 seconds",
            )
            return Window(WindowKind.ROWS, 1)
        return Window(WindowKind.ROWS, size)
    factor = 1
    if clause.unit is not None:
        factor = MILLISECONDS.get(clause.unit.text.lower(), 0)
        if factor == 0:
            problems.add(
                "unknown-unit",
                f"{clause.unit.text} is no unit of time",
                clause.unit.span,
                suggest(clause.unit.text, MILLISECONDS, "units"),
            )
            return Window(WindowKind.RANGE, 0)
    if size < 0:
        problems.add(
            "negative-range",
            f"a range of {size} reaches into the future",
            clause.span,
            "ranges reach back from now, 0 is NOW",
        )
        return Window(WindowKind.RANGE, 0)
    if size * factor > _LARGEST:
        problems.add(
            "range-size",
            "a range is at most 2^63 - 1 milliseconds",
            clause.span,
            "write UNBOUNDED",
        )
        return Window(WindowKind.RANGE, 0)
    ticks = Fraction(repr(size)) * factor  # exactly: 1.001 minutes are 60060 ms
    if ticks.denominator > 1:
        problems.add(
            "range-size",
            f"a range is a whole number of milliseconds, not {float(ticks):g}",
            clause.span,
            "use a smaller unit",
        )
        return Window(WindowKind.RANGE, 0)
    return Window(WindowKind.RANGE, int(ticks))
