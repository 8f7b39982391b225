"""The meaning of conditions, row by row: TRUE, FALSE or NULL. Shares no code with
simplification."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence

from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import DOUBLE
from seustream.hdl.isa import Condition

Row = Mapping[tuple[int, str], object]
"""A value for each column, by the stream's position in FROM and the column's name."""

OPERATORS: dict[Condition, Callable[[object, object], bool]] = {
    Condition.LT: operator.lt,  # type: ignore[dict-item]
    Condition.LE: operator.le,  # type: ignore[dict-item]
    Condition.GT: operator.gt,  # type: ignore[dict-item]
    Condition.GE: operator.ge,  # type: ignore[dict-item]
    Condition.EQ: operator.eq,
    Condition.NE: operator.ne,
}


def truth(e: x.Expression, row: Row) -> object:
    """Returns the value of an expression; for a condition True, False or None."""
    match e:
        case x.Literal():
            return e.value
        case x.ColumnReference():
            return row[e.source, e.name]
        case x.And():
            outcomes = [truth(term, row) for term in e.terms]
            return False if False in outcomes else None if None in outcomes else True
        case x.Or():
            outcomes = [truth(term, row) for term in e.terms]
            return True if True in outcomes else None if None in outcomes else False
        case x.Not():
            outcome = truth(e.term, row)
            return None if outcome is None else not outcome
        case x.Compare():
            left, right = truth(e.left, row), truth(e.right, row)
            if left is None or right is None:
                return None
            if e.of == DOUBLE:
                left, right = float(left), float(right)  # type: ignore[arg-type]
            return OPERATORS[e.condition](left, right)
        case x.IsNull():
            return (truth(e.term, row) is None) != e.negated
        case x.Call("like", (term, x.Literal(value=written))):
            text = truth(term, row)
            if text is None:
                return None
            parts = ({"%": ".*", "_": "."}.get(c, re.escape(c)) for c in str(written))
            return bool(re.fullmatch("".join(parts), str(text), re.DOTALL))
        case x.Call("is_distinct", (first, second)):
            return truth(first, row) != truth(second, row)
        case x.Call("coalesce", arguments):
            return next((v for one in arguments if (v := truth(one, row)) is not None), None)
        case x.Call("+" | "-", (first, second)):
            left, right = truth(first, row), truth(second, row)
            if left is None or right is None:
                return None
            return left + right if e.function == "+" else left - right  # type: ignore[operator]
        case x.Call("abs" | "negate", (first,)):
            of = truth(first, row)
            return None if of is None else abs(of) if e.function == "abs" else -of  # type: ignore[arg-type,operator]
        case _:
            raise NotImplementedError(e)


class Table:
    """Rows to judge conditions on, all at once: a condition becomes two sets of row numbers (as
    bits), those where it is true and those where it is false."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.every = (1 << len(rows)) - 1
        self.known: dict[x.Expression, tuple[int, int]] = {}

    def selected(self, e: x.Expression) -> int:
        return self.sets(e)[0]

    def sets(self, e: x.Expression) -> tuple[int, int]:
        match e:
            case x.And():
                true, false = self.every, 0
                for term in e.terms:
                    t, f = self.sets(term)
                    true, false = true & t, false | f
                return true, false
            case x.Or():
                true, false = 0, self.every
                for term in e.terms:
                    t, f = self.sets(term)
                    true, false = true | t, false & f
                return true, false
            case x.Not():
                true, false = self.sets(e.term)
                return false, true
        if e not in self.known:
            outcomes = [truth(e, row) for row in self.rows]
            self.known[e] = (
                sum(1 << i for i, outcome in enumerate(outcomes) if outcome is True),
                sum(1 << i for i, outcome in enumerate(outcomes) if outcome is False),
            )
        return self.known[e]
