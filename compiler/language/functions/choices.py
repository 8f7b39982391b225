"""Choices among values of one type: `coalesce`, `nullif`, `greatest`, `least`.

`coalesce` evaluates its arguments up to the first one that has a value; the others evaluate all of
theirs. CASE and `if` are not functions: they evaluate only what they choose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from seustream.compiler.language.registry import ANY, ScalarFunction
from seustream.compiler.language.types import Type


def _met(types: Sequence[Type]) -> Type:
    return types[0]


def _coalesce(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _null_if(a: Any, b: Any) -> Any:
    return None if a == b else a


def _extreme(pick: Callable[..., Any]) -> Callable[..., Any]:
    def row(*values: Any) -> Any:
        best = pick((value for value in values if value is not None), default=None)
        return best + 0.0 if isinstance(best, float) else best  # the result of 0 and -0 is 0

    return row


def _null_if_columns(pc: Any, a: Any, b: Any) -> Any:
    return pc.if_else(pc.fill_null(pc.equal(a, b), False), None, a)


def _extreme_columns(name: str) -> Callable[..., Any]:
    def columns(pc: Any, *values: Any) -> Any:
        pick = getattr(pc, name)
        if str(values[0].type) == "bool":  # Arrow cannot order booleans here
            return pc.cast(pick(*(pc.cast(value, "int8") for value in values)), "bool")
        best = pick(*values)
        return pc.add(best, 0.0) if str(best.type) in ("float", "double") else best

    return columns


CHOICES: tuple[ScalarFunction, ...] = (
    ScalarFunction(
        "coalesce", (ANY,), _met, row=_coalesce, variadic=True, strict=False, quiet=True,
        lazy=True, columns=lambda pc, *values: pc.coalesce(*values),
        doc="The first value that is not NULL; those behind it are not evaluated.", example="coalesce(NULL, 2, 3)",
        aliases=("ifnull", "nvl"),
    ),
    ScalarFunction(
        "nullif", (ANY, ANY), _met, row=_null_if, strict=False, quiet=True,
        columns=_null_if_columns,
        doc="The first value, or NULL where both are equal.", example="nullif(3, 0)",
    ),
    ScalarFunction(
        "greatest", (ANY,), _met, row=_extreme(max), variadic=True, strict=False, quiet=True,
        columns=_extreme_columns("max_element_wise"),
        doc="The greatest of the values that are not NULL.", example="greatest(1, NULL, 3)",
    ),
    ScalarFunction(
        "least", (ANY,), _met, row=_extreme(min), variadic=True, strict=False, quiet=True,
        columns=_extreme_columns("min_element_wise"),
        doc="The least of the values that are not NULL.", example="least(1, NULL, 3)",
    ),
)  # fmt: skip
