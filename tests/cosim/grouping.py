"""Groups that a device forms, beside those of a fold of one result after the other."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

from seustream.hdl.device import Grouped, Results, Tables
from tests.cosim.queries import Query, Raw, Row, rows_of

Folded = tuple[dict[tuple[int, ...], tuple[int, ...]], list[Row]]
"""Groups by query, key and period; results of queries that are not grouped."""


def grouped_at_random(
    chance: random.Random, tables: Tables, queries: Sequence[Query], attributes: int = 4
) -> Tables:
    """Groups some route tags at random, all of one query in the same way."""
    of_query = {}
    for number, query in enumerate(queries):

        def place(query: Query = query) -> tuple[int, int] | None:
            streams = sorted(query.windows)
            if chance.random() < 0.2:
                return None
            return chance.choice(streams), chance.randrange(attributes)

        period = chance.choice([1, 7, 50, 1 << 40])
        of_query[number] = Grouped(number, place(), place(), period, chance.randrange(period))
    grouped = {
        tag: of_query[chance.choice(sorted(route.queries))]
        for tag, route in tables.routes.items()
        if route.queries and chance.random() < 0.8
    }
    return dataclasses.replace(tables, grouped=grouped)


def _added(*groups: tuple[int, ...]) -> tuple[int, ...]:
    count, total, least, greatest, oldest, first = zip(*groups, strict=True)
    return sum(count), sum(total), min(least), max(greatest), min(oldest), min(first)


def fold(tables: Tables, raws: Sequence[Raw], rows: Sequence[Row]) -> Folded:
    """Folds results into groups, each result by itself; returns the groups, and the results that
    are in none."""
    of = {one.query: one for one in tables.grouped.values()}
    attributes = {(raw.stream, raw.sequence): raw.attributes for raw in raws}
    groups: dict[tuple[int, ...], tuple[int, ...]] = {}
    rest = []
    for row in rows:
        query, newest, oldest, sequences = row
        if query not in of:
            rest.append(row)
            continue
        key, value = (
            0 if place is None else attributes[place[0], sequences[place[0]]][place[1]]
            for place in (of[query].key, of[query].value)
        )
        name = query, key, (newest - of[query].offset) // of[query].period
        one = (1, value, value, value, oldest, newest)
        groups[name] = _added(groups[name], one) if name in groups else one
    return groups, sorted(rest)


def folded(tables: Tables, raws: Sequence[Raw], results: Results) -> Folded:
    """Does the same with the output of a device: its groups, and what it delivers of their
    queries."""
    groups, rest = fold(tables, raws, rows_of(results))
    of, them = {one.query: one for one in tables.grouped.values()}, results.grouped
    names = ("query", "key", "count", "total", "least", "greatest", "oldest", "first")
    for query, key, *group in zip(*(getattr(them, name).tolist() for name in names), strict=True):
        name = query, key, (group[-1] - of[query].offset) // of[query].period
        groups[name] = _added(groups[name], group) if name in groups else tuple(group)
    return groups, rest
