"""Values, faults and problems of expressions without columns."""

from __future__ import annotations

from typing import Any

from seustream.compiler.errors import Problems
from seustream.compiler.language.evaluate import compile_row
from seustream.compiler.language.expressions import Leaf
from seustream.compiler.language.faults import Faults
from tests.compiler.language.plain import bind


def no_leaf(leaf: Leaf) -> Any:
    raise AssertionError(leaf)


def value(text: str) -> Any:
    """Returns the value of an expression without columns, which must have no fault."""
    bound = bind(text)
    assert not isinstance(bound, Problems), [problem.message for problem in bound.found]
    faults = Faults()
    found = compile_row(bound, no_leaf, faults)(None)
    assert not faults.total, text
    return found


def fault(text: str) -> str:
    """Returns the reason of the only fault of an expression."""
    bound = bind(text)
    assert not isinstance(bound, Problems), [problem.message for problem in bound.found]
    faults = Faults()
    assert compile_row(bound, no_leaf, faults)(None) is None
    (place,) = faults.count
    assert place.at is not None
    return place.reason


def refused(text: str) -> str:
    """Returns the message of the first problem of an expression."""
    bound = bind(text)
    assert isinstance(bound, Problems)
    return bound.found[0].message
