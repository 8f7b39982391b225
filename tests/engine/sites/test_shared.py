"""Different queries over the same sites: each gets the results of a run of its own, and together
they send less than separate runs would."""

from __future__ import annotations

import random

import pytest

from seustream.engine.sites.costs import UnitCosts
from seustream.engine.sites.errors import BadQuery
from seustream.engine.sites.model import BlockRows, EquiJoin, SiteRow, SiteStream, Tid
from seustream.engine.sites.shared import SharedLayout, SharedNode, groups
from tests.engine.sites.network import NO_FAULTS, LineFaults, SiteNetwork
from tests.engine.sites.oracle import answer
from tests.engine.sites.running import INF, costs

NAMES = ("R", "S", "T", "U")
SITES = tuple(SiteStream(name, ("a", "b")) for name in NAMES)
Equal = tuple[tuple[tuple[int, str], tuple[int, str]], ...]


def query(names: str, windows: list[float], equal: str) -> EquiJoin:
    """query("RST", [3, 1, 2], "R.a=S.a S.b=T.a")"""
    pairs: list[tuple[tuple[int, str], tuple[int, str]]] = []
    for pair in equal.split():
        (x, c), (y, d) = (side.split(".") for side in pair.split("="))
        pairs.append(((names.index(x), c), (names.index(y), d)))
    used = [
        tuple(c for c in "ab" if any((k, c) in pair for pair in pairs)) for k in range(len(names))
    ]
    streams = tuple(
        SiteStream(name, columns, window)
        for name, columns, window in zip(names, used, windows, strict=True)
    )
    return EquiJoin(streams, tuple(pairs))


SHAPES = [
    ("RS", "R.a=S.a"),
    ("SR", "S.a=R.a"),
    ("RT", "R.a=T.a"),
    ("RST", "R.a=S.a S.a=T.a"),
    ("TRS", "T.a=R.a R.a=S.a"),
    ("RSU", "R.a=S.a S.b=U.b"),
    ("TU", "T.b=U.b"),
]


def several(chance: random.Random) -> list[EquiJoin]:
    return [
        query(names, [chance.choice([0, 1, 3, INF]) for _ in names], equal)
        for names, equal in (chance.choice(SHAPES) for _ in range(chance.randint(2, 4)))
    ]


def blocks(chance: random.Random, units: int = 5) -> list[BlockRows]:
    return [
        BlockRows(
            k,
            t,
            tuple(
                SiteRow((chance.randint(1, 3), chance.choice([1, 2, None])), t)
                for _ in range(chance.randint(0, 2))
            ),
        )
        for t in range(units)
        for k in range(len(SITES))
    ]


def expected(join: EquiJoin, given: list[BlockRows]) -> list[tuple[Tid, ...]]:
    """Returns the answer by definition, over the query's own streams."""
    at = [NAMES.index(stream.name) for stream in join.streams]
    mine = []
    for block in given:
        if block.stream in at:
            k = at.index(block.stream)
            mine.append(BlockRows(k, block.tau, block.rows))
    places = {"a": 0, "b": 1}
    equal = [tuple((k, places[c]) for k, c in pair) for pair in join.equal]
    found = answer(join.windows[0], mine, equal)  # type: ignore[arg-type]
    return sorted(tuple((at[k], no, i) for k, no, i in tids) for tids in found)


def run(
    queries: list[EquiJoin],
    given: list[BlockRows],
    seed: int,
    faults: LineFaults = NO_FAULTS,
    crash: float = 0.0,
) -> SiteNetwork:
    layout = SharedLayout(SITES, tuple(queries), costs(random.Random(seed), 5), 4)
    net = SiteNetwork(layout, faults, seed)
    for block in given:
        net.submit(block)
        if faults == NO_FAULTS:
            net.run()
        else:
            for _ in range(net.mail.chance.randint(0, 12)):
                net.step()
        if net.mail.chance.random() < crash:
            net.crash_centre(layout.centre, net.now + net.mail.chance.choice([0, 50, 400]))
    net.run()
    return net


def found(net: SiteNetwork, q: int) -> list[tuple[Tid, ...]]:
    return sorted(result.tids for number, result in net.results if number == q)


def told(net: SiteNetwork) -> float:
    return sum(c.cost for c in net.ledger.charges if c.kind in ("delta", "plan", "expire"))


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_statement_43_shared_results_equal_separate_runs_and_tell_less(first: int) -> None:
    less = 0
    for seed in range(first, first + 20):
        chance = random.Random(seed)
        queries, given = several(chance), blocks(chance)
        net = run(queries, given, seed)
        alone = [run([one], given, seed) for one in queries]
        for q, join in enumerate(queries):
            assert found(net, q) == found(alone[q], 0) == expected(join, given), (seed, q)
        assert told(net) <= sum(map(told, alone)) + 1e-9, seed
        less += told(net) < sum(map(told, alone))
    assert less > 10


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_statement_43_in_bad_weather_with_crashes(first: int) -> None:
    for seed in range(first, first + 20):
        chance = random.Random(seed)
        queries, given = several(chance), blocks(chance)
        net = run(queries, given, seed, LineFaults(30, 0.1, 0.1), crash=0.05)
        for q, join in enumerate(queries):
            assert found(net, q) == expected(join, given), (seed, q)


def test_queries_of_one_shape_are_members_of_one_join() -> None:
    queries = [
        query("RST", [1, 2, 3], "R.a=S.a S.a=T.a"),
        query("TRS", [7, 8, 9], "T.a=S.a R.a=T.a"),
        query("RS", [5, 5], "R.a=S.a"),
        query("RS", [5, 5], "R.a=S.b"),
    ]
    first, second, third = groups(SITES, queries)
    assert (first.sites, first.members) == ((0, 1, 2), ((0, (0, 1, 2)), (1, (2, 0, 1))))
    assert first.join.windows == ((1, 2, 3), (8, 9, 7))
    assert (second.members, third.members) == (((2, (0, 1)),), ((3, (0, 1)),))
    # All of them join R by a; two join S by a.
    assert first.join.horizons == (8, 9, 7)
    assert second.join.horizons == (8, 9)
    assert third.join.horizons == (8, 5)


def test_plans_to_one_site_are_one_message_and_deletions_too() -> None:
    """Two queries differ in the partner of R: R's keys are sent, planned and deleted once."""
    queries = [query("RS", [1, 1], "R.a=S.a"), query("RT", [4, 1], "R.a=T.a")]
    near_s = [[0 if a == b else 1 if 1 in (a, b) else 3 for b in range(5)] for a in range(5)]
    net = SiteNetwork(SharedLayout(SITES, tuple(queries), UnitCosts.of(near_s), 4))
    seen: list[tuple[str, int]] = []
    receive = SharedNode.receive

    def watch(node: SharedNode, sender: int, bundle: object, now: float) -> None:
        kinds = [type(message) for _, message in bundle.parts]  # type: ignore[attr-defined]
        seen.extend((kind.__name__, kinds.count(kind)) for kind in set(kinds))
        receive(node, sender, bundle, now)  # type: ignore[arg-type]

    for node in net.nodes.values():
        node.receive = watch.__get__(node)  # type: ignore[method-assign]
    for t in (0, 9, 18):
        for k in range(3):
            net.submit(BlockRows(k, t, (SiteRow((7, None), t),)))
            net.run()
    assert ("Delta", 2) in seen
    assert ("Plan", 2) in seen
    assert ("Expire", 2) in seen
    assert ("Plan", 1) in seen  # S and T are in one query each
    # R's key at each time and its deletion are sent for both queries, at the cost of one.
    w, centre = net.layout.costs.w, net.layout.centre
    of_r = [
        c for c in net.ledger.charges if c.kind in ("delta", "expire") and c.sender == 0 and c.cost
    ]
    assert centre == 1
    assert len(of_r) == 3 + 1
    assert all(c.cost == w[0][centre] / 4 for c in of_r)


def test_what_is_no_query_of_these_sites() -> None:
    with pytest.raises(BadQuery, match="there is no site X"):
        groups(SITES, [query("RX", [1, 1], "R.a=X.a")])
    with pytest.raises(BadQuery, match="with itself"):
        groups(SITES, [EquiJoin((SITES[0], SITES[0]), (((0, "a"), (1, "a")),))])
