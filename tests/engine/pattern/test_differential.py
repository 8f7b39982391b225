"""Compares every matcher with the definition, on random queries and streams with ties, NULL and
missing attributes, under random epochs. The campaign (`nox -s patterns`) runs many more. The number
in a test's name is that of the acceptance statement."""

from __future__ import annotations

import itertools
import random

import pytest

from seustream.engine.pattern.planner import supports
from tests.chances import random_cases
from tests.engine.pattern.differential import check
from tests.engine.pattern.generate import Generator, query_of
from tests.engine.pattern.oracle import Oracle
from tests.engine.pattern.running import with_columns, with_optiseq


def test_18_19_22_23_24_every_matcher_equals_the_oracle() -> None:
    """Also under random epoch cuts (19), by columns as one by one (22), and by the laws (23,
    24)."""
    matches = list[int]()

    @random_cases(600)
    def agree(chance: random.Random) -> None:
        matches.append(check(chance))

    agree()
    assert len(matches) >= 600
    assert sum(matches) > 100


def orders(anchors: int) -> list[tuple[int, ...]]:
    """Returns every order that grows a contiguous block."""
    return [
        order
        for order in itertools.permutations(range(anchors))
        if all(order[i] in (min(order[:i]) - 1, max(order[:i]) + 1) for i in range(1, anchors))
    ]


@pytest.mark.parametrize("seed", range(40))
def test_20_21_every_order_with_and_without_tightening(seed: int) -> None:
    generator = Generator(random.Random(seed))
    query = generator.query("ANY GROUP")
    while supports(query)["columns"] is not None:
        query = generator.query("ANY GROUP")
    events = generator.events()
    want = set(Oracle(query).matches(events))
    for order in ["paper", "cost", *orders(len(query.anchors))]:
        for tighten in (True, False):
            for run in (with_optiseq, with_columns):
                found = {match.ids for match in run(query, events, (), order, tighten)}
                assert found == want, f"seed {seed}: {query.text}, {order}"


@pytest.mark.parametrize("seed", range(20))
def test_47_a_partition_is_the_union_of_its_keys(seed: int) -> None:
    """NULL is a key like others; the oracle takes the union."""
    generator = Generator(random.Random(seed))
    query = query_of("PATTERN A a; B+ k; ANY c PARTITION BY k WITHIN 6 ms RETURN *")
    from tests.engine.pattern.running import operate

    events = generator.events(20, keys=True)
    want = set(Oracle(query).matches(events))
    for engine in ("columns", "optiseq"):
        assert {m.ids for m in operate(query, events, engine, (3, 9))} == want
    query = query_of("PATTERN A a; B+ k; ANY c PARTITION BY k WITHIN 6 ms USING NEXT RETURN *")
    want = set(Oracle(query).matches(events))
    assert {m.ids for m in operate(query, events, "nfa", (3, 9))} == want
