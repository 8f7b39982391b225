"""Signatures of functions: their parameters by overload, and hints if none fits."""

from __future__ import annotations

from collections.abc import Sequence

from seustream.compiler.language.functions.times import TIMES
from seustream.compiler.language.registry import ArgumentKind, Result, ScalarFunction
from seustream.compiler.language.types import Kind, Type

CONVERT = "convert with CAST(... AS ...)"
LISTS = "of what array_agg collects, string_agg(CAST(x AS varchar), ',') makes one text"
"""The hint for an operation that takes no list."""


def instead(name: str, types: Sequence[Type]) -> str:
    """Returns what to write instead of an operator that does not take these operands."""
    if name == "||" and any(of.kind is Kind.BOOLEAN for of in types):
        return "|| makes one text of two; of conditions write OR"
    if name == "+" and all(of.is_text for of in types):
        return "texts are joined by ||"
    moment = any(of.kind in (Kind.DATE, Kind.TIMESTAMP) for of in types)
    if name in ("+", "-") and moment and any(of.is_numeric for of in types):
        return "write how long it is, such as INTERVAL '1' DAY"
    if name in _OF_TIMES and types[-1:] and types[-1].is_integer:
        return "ts counts milliseconds: timestamp_millis(ts)"
    return CONVERT


_OF_TIMES = {entry.name for entry in TIMES}


def signatures(entry: ScalarFunction) -> list[tuple[tuple[ArgumentKind, ...], Result]]:
    """Returns the parameters and the result of a function, then those of its overloads."""
    return [
        (entry.parameters, entry.result),
        *((overload.parameters, overload.result) for overload in entry.overloads),
    ]


def expanded_parameters(
    entry: ScalarFunction, parameters: tuple[ArgumentKind, ...], count: int
) -> tuple[ArgumentKind, ...] | None:
    """Returns one parameter per argument, None if their number does not fit."""
    own = parameters is entry.parameters
    fewest = len(parameters) - (entry.optional if own else 0)
    if count < fewest:
        return None
    if count <= len(parameters):
        return parameters[:count]
    more = count - len(parameters)
    return (*parameters, *[parameters[-1]] * more) if entry.variadic else None
