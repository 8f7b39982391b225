"""The five aggregates of the source in the form of the registry."""

from __future__ import annotations

from seustream.compiler.apas.functions import Registered
from seustream.compiler.apas.types import DOUBLE, INTEGER
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.types import Type


def of(name: str, type: Type = INTEGER) -> Registered:
    return Registered(AGGREGATES[name], DOUBLE if name == "avg" else type)


def five(type: Type = INTEGER) -> list[Registered]:
    return [of(name, type) for name in ("count", "sum", "avg", "min", "max")]
