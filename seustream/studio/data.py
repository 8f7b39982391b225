"""Generates rows for the streams of a text from a seed, with few values per column so that they
match."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import ROUND_DOWN, Decimal
from types import MappingProxyType
from typing import Any

from seustream.compiler.catalogue import Stream
from seustream.compiler.language.types import Kind, Type, digits
from seustream.compiler.xsql.intervals import END

_WORDS = ("Ada", "Grace", "Edsger", "Barbara", "Donald", "Margaret")
_START = datetime(2026, 1, 1, tzinfo=UTC)
_NO_WORDS: Mapping[tuple[str, str], Sequence[str]] = MappingProxyType({})
MOST_ROWS = 2_000
"""The most rows of a stream that the page steps through; a longer run is for the command line."""


def rows(
    streams: Iterable[Stream],
    seed: int,
    count: int,
    words: Mapping[tuple[str, str], Sequence[str]] = _NO_WORDS,
) -> dict[str, list[dict[str, Any]]]:
    """Returns `count` rows in all, spread over the streams, in the order of `ts`; an integer column `te` is
    the end of an interval.

    words   the values of a stream's column in lower case, if only some are useful: types of events;
            shortened to what the column holds
    """
    chance = random.Random(seed)
    every = list(streams)
    found: dict[str, list[dict[str, Any]]] = {stream.name: [] for stream in every}
    ts = 0
    for _ in range(count if every else 0):
        ts += chance.choice((0, 1, 1, 2, 5, 20))
        stream = chance.choice(every)
        row = {
            column.name: ts + chance.randint(1, 40)
            if column.name == END and column.type.is_integer
            else chance.choice(words[at])[: column.type.length]
            if (at := (stream.name, column.name.lower())) in words
            else _value(column.type, chance)
            for column in stream.columns
        }
        found[stream.name].append({"ts": ts, **row})
    return found


def _value(of: Type, chance: random.Random) -> Any:
    value = _MAKE[of.kind](chance)
    match of.kind:
        case Kind.CHAR | Kind.VARCHAR:
            return value[: of.length]
        case Kind.DECIMAL:
            return _fitting(value, *digits(of))
        case _:
            return value


def _fitting(value: Decimal, precision: int, scale: int) -> Decimal:
    """Leaves out the digits that a decimal of this precision and scale does not have."""
    within = value % Decimal(1).scaleb(precision - scale)
    return within.quantize(Decimal(1).scaleb(-min(scale, 2)), ROUND_DOWN)


_MAKE: dict[Kind, Callable[[random.Random], Any]] = {
    Kind.SMALLINT: lambda chance: chance.randrange(12),
    Kind.INT: lambda chance: chance.randrange(12),
    Kind.BIGINT: lambda chance: chance.randrange(12),
    Kind.REAL: lambda chance: chance.randrange(48) / 4,
    Kind.DOUBLE: lambda chance: chance.randrange(48) / 4,
    Kind.DECIMAL: lambda chance: Decimal(chance.randrange(48)) / 4,
    Kind.CHAR: lambda chance: chance.choice(_WORDS),
    Kind.VARCHAR: lambda chance: chance.choice(_WORDS),
    Kind.BOOLEAN: lambda chance: chance.random() < 0.5,
    Kind.TIMESTAMP: lambda chance: _START + timedelta(minutes=chance.randrange(60)),
    Kind.DATE: lambda chance: (_START + timedelta(days=chance.randrange(5))).date(),
    Kind.TIME: lambda chance: (_START + timedelta(minutes=chance.randrange(60))).time(),
    Kind.INTERVAL: lambda chance: timedelta(seconds=chance.randrange(60)),
}
