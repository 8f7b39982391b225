"""The five aggregates of the source as the registry has them."""

from __future__ import annotations

from compiler.apas.functions import Registered
from compiler.apas.types import DOUBLE, INTEGER
from compiler.language.aggregates import AGGREGATES
from compiler.language.types import Type


def of(name: str, type: Type = INTEGER) -> Registered:
    return Registered(AGGREGATES[name], DOUBLE if name == "avg" else type)


def five(type: Type = INTEGER) -> list[Registered]:
    return [of(name, type) for name in ("count", "sum", "avg", "min", "max")]
