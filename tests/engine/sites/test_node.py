"""Whole nodes with real rows, in order and without faults: answers, messages and costs."""

from __future__ import annotations

import random

import pytest

from seustream.engine.sites.costs import UnitCosts
from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.messages import Expire, Plan
from seustream.engine.sites.model import BlockRows, EquiJoin, SiteRow
from seustream.engine.sites.planner import PLANNERS
from tests.engine.sites import animals
from tests.engine.sites.lockstep import Terms, run_smj, setting
from tests.engine.sites.network import SiteNetwork
from tests.engine.sites.oracle import answer, random_blocks, random_windows
from tests.engine.sites.running import (
    INF,
    block,
    centres,
    feed,
    found,
    leader,
    network,
    sites,
)


@pytest.mark.parametrize("window", [INF, 2])
def test_animals_results(window: float) -> None:
    join = animals.join(window)
    net = SiteNetwork(SiteLayout(join, animals.COSTS, 1))
    feed(net, animals.blocks(), lockstep=True)
    assert found(net) == answer(join.windows[0], animals.blocks())
    assert net.layout.first_epoch == (1, 1)


def test_statement_05_window_vectors() -> None:
    net = SiteNetwork(SiteLayout(animals.join(2), animals.COSTS, 1))
    *before, second = animals.blocks()
    feed(net, before, lockstep=True)

    def vector() -> list[int]:
        known = leader(net).synopses.sites[1].by_class[0]
        return [known.count(key) for key in range(1, 11)]

    assert vector() == [0, 1, 2, 1, 1, 0, 0, 1, 0, 2]
    sites(net)[1].advance(3)
    (expire,) = (m for _, m in net.nodes[1].outbox.out if isinstance(m, Expire))
    assert animals.vector(dict(expire.counts)) == [0, 1, 0, 0, 1, 0, 0, 0, 0, 0]
    net._post(1)
    net.run()
    assert vector() == [0, 0, 2, 1, 0, 0, 0, 1, 0, 2]
    feed(net, [second], lockstep=True)
    assert vector() == [0, 0, 3, 1, 1, 0, 0, 2, 0, 2]


@pytest.mark.parametrize("planner", ["smje", "smjh", "two_pass", "auto"])
@pytest.mark.parametrize("seed", range(6))
def test_statement_17_ledger_equals_prediction(planner: str, seed: int) -> None:
    chance = random.Random(seed)
    n = chance.randint(2, 5)
    join = EquiJoin.on_one_key(random_windows(chance, n))
    net = network(join, seed, planner=planner)
    predicted: dict[tuple[int, int], float] = {}
    for centre in centres(net):
        centre.on_accept = lambda delta, plan: predicted.update(
            {(plan.stream, plan.no): plan.predicted}
        )
    blocks = []
    for unblocked in random_blocks(chance, n, rows=4):
        # Rows no older than their block: otherwise some rows in a store would no longer count.
        rows = tuple(SiteRow(row.keys, unblocked.tau) for row in unblocked.rows)
        blocks.append(BlockRows(unblocked.stream, unblocked.tau, rows))
    for one in blocks:
        for site in sites(net):
            site.advance(one.tau)
            net._post(site.stream)
        net.run()
        feed(net, [one], lockstep=True)
    assert net.ledger is not None
    for (stream, no), cost in predicted.items():
        assert net.ledger.of_block(stream, no) == cost, (seed, stream, no)
    assert found(net) == answer(join.windows[0], blocks)


@pytest.mark.parametrize(("seed", "window"), [(3000, INF), (3000, 3), (5000, 3), (8000, 3)])
def test_protocol_costs_what_the_experiment_says(seed: int, window: float) -> None:
    """Compares the messages of whole nodes with real rows, charge by charge, with the lockstep
    counts."""
    of = setting(seed, seed // 1000)
    net = SiteNetwork(SiteLayout(EquiJoin.on_one_key([window] * of.n), of.costs, of.query_node))
    for t, unit in enumerate(of.keys):
        for site in sites(net):
            site.tau = t if t else site.tau
            site.advance(t)
            net._post(site.stream)
        net.run()
        for i, keys in enumerate(unit):
            net.submit(block(i, t, *keys))
            net.run()
    want = run_smj(of, PLANNERS["auto"], Terms(window))
    assert net.ledger is not None
    assert net.ledger.by_unit() == {t: cost for t, cost in enumerate(want.costs) if cost}
    assert len(net.results) == sum(want.results)


def test_statement_19_rows_of_one_period_join_once() -> None:
    net = network(EquiJoin.on_one_key([0, 0, 0]))
    feed(net, [block(k, 5, 1, 1) for k in range(3)])
    assert len(found(net)) == len(set(found(net))) == 8


def test_statement_20_exactly_as_old_as_the_window() -> None:
    for age, results in ((3, 1), (4, 0)):
        net = network(EquiJoin.on_one_key([3, 3]))
        feed(net, [block(0, 10, "k"), block(1, 10 + age, "k")])
        assert len(net.results) == results


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_statement_21_windows_of_any_length(first: int) -> None:
    for seed in range(first, first + 20):
        chance = random.Random(seed)
        for windows in ([0, 0, 0], [0, INF, 2], random_windows(chance, 3)):
            blocks = random_blocks(chance, 3)
            net = network(EquiJoin.on_one_key(windows), seed)
            feed(net, blocks)
            assert found(net) == answer(windows, blocks), (seed, windows)


def test_statement_22_one_site_and_two() -> None:
    alone = network(EquiJoin.on_one_key([4]))
    feed(alone, [block(0, 1, 5, 6, None), block(0, 2)])
    assert found(alone) == [((0, 0, index),) for index in range(3)]
    assert {c.kind for c in alone.ledger.charges} == {"deliver"}  # type: ignore[union-attr]
    two = network(EquiJoin.on_one_key([INF, INF]))
    plans: list[Plan] = []
    for site in sites(two):
        site.on_plan = plans.append
    feed(two, [block(0, 1, 5), block(1, 1, 5)], lockstep=True)
    assert [plan.order for plan in plans] == [(), (0,)]
    assert found(two) == [((0, 0, 0), (1, 0, 0))]


def kinds(net: SiteNetwork) -> list[str]:
    assert net.ledger is not None
    return [charge.kind for charge in net.ledger.charges]


def test_statement_23_an_empty_block_moves_the_watermark() -> None:
    net = network(EquiJoin.on_one_key([1, 1]))
    feed(net, [block(0, 0, 7), block(1, 0), block(1, 9), block(0, 9), block(0, 9)], lockstep=True)
    assert "probe" not in kinds(net)
    assert sites(net)[0].watermark == 9
    assert not list(sites(net)[0].store.rows())


def test_statement_24_what_the_filter_drops_stays_matchable() -> None:
    net = network(EquiJoin.on_one_key([INF, INF]))
    feed(net, [block(0, 0, 7)], lockstep=True)
    assert "probe" not in kinds(net)
    assert not sites(net)[0].open
    feed(net, [block(1, 1, 7)], lockstep=True)
    assert len(net.results) == 1


def test_statement_25_what_ends_on_the_way_is_reported() -> None:
    """The first site's row has the key, but is too old; nothing goes on to the third site."""
    net = network(EquiJoin.on_one_key([0, INF, INF]), planner="auto")
    net.set_costs(UnitCosts.of([[0, 1, 50, 1], [1, 0, 50, 1], [50, 50, 0, 1], [1, 1, 1, 0]]))
    feed(net, [block(0, 0, 7), block(1, 0, 7)], lockstep=True)
    # Stream 0 does not learn of the time that passed: its old row still counts in the synopsis.
    net.nodes[2].submit(block(2, 5, 7), net.now)
    net._post(2)
    net.run()
    assert found(net) == []
    probes = [c for c in net.ledger.charges if c.kind == "probe" and c.stream == 2]  # type: ignore[union-attr]
    assert len(probes) in (1, 2)
    assert "deliver" not in kinds(net)
    assert not sites(net)[2].open


@pytest.mark.parametrize("kind", ["delta", "plan", "probe", "deliver", "expire"])
def test_statement_26_repeated_messages_change_nothing(kind: str) -> None:
    chance = random.Random(26)
    windows = [1, 3, INF]
    blocks = random_blocks(chance, 3, units=8)
    once, again = (network(EquiJoin.on_one_key(windows), 26) for _ in range(2))
    feed(once, blocks, lockstep=True)
    post, repeated = again._post, 0

    def twice(sender: int) -> None:
        nonlocal repeated
        out = again.nodes[sender].outbox.out
        more = [m for m in out if type(m[1]).__name__.lower() == kind]
        repeated += len(more)
        out.extend(more)
        post(sender)

    again._post = twice  # type: ignore[method-assign]
    feed(again, blocks, lockstep=True)
    assert repeated
    assert again.results == once.results
    assert found(again) == answer(windows, blocks)
    for a, b in zip(leader(again).synopses.sites, leader(once).synopses.sites, strict=True):
        assert a.by_class[0].__dict__ == b.by_class[0].__dict__
    assert again.ledger.text() == once.ledger.text()  # type: ignore[union-attr]


def test_a_centre_that_crashes_keeps_what_its_node_was_told() -> None:
    streams, equal = EquiJoin.on_one_key([INF] * 2).streams, EquiJoin.on_one_key([INF] * 2).equal
    net = network(EquiJoin(streams, equal, ((INF, INF), (INF, INF))))
    cheap = UnitCosts.of([[0 if a == b else 1 for b in range(3)] for a in range(3)])
    first = leader(net).node
    for node in net.nodes.values():
        node.set_members((True, False))
    net.set_costs(cheap)
    net.crash_centre(first, net.now)
    feed(net, [block(0, 0, 1), block(1, 0, 1)])
    assert leader(net).costs is cheap
    assert len(found(net, 0)) == 1
    assert found(net, 1) == []
