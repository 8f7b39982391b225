"""The answers of a centre, and when it holds back, leads, or gives way."""

from __future__ import annotations

import math

import pytest

from seustream.engine.sites.centre import Centre
from seustream.engine.sites.costs import UnitCosts
from seustream.engine.sites.errors import PlannerLimit
from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.messages import (
    Ack,
    Delta,
    Expire,
    Plan,
    Rebuild,
    SiteMessage,
    Stale,
    Standing,
    Takeover,
    Wait,
)
from seustream.engine.sites.model import EquiJoin
from seustream.engine.sites.outbox import Outbox
from tests.engine.sites.running import block, centres, feed, found, leader, network


def flat(nodes: int) -> UnitCosts:
    return UnitCosts.of([[float(a != b) for b in range(nodes)] for a in range(nodes)])


def centre(node: int = 0, attempt: int = 0) -> Centre:
    layout = SiteLayout(EquiJoin.on_one_key([math.inf, math.inf]), flat(3), 2)
    return Centre(layout, node, Outbox(10), attempt=attempt)


def delta(no: int, stream: int = 0, epoch: tuple[int, int] = (1, 0), first: int = 0) -> Delta:
    return Delta(epoch, stream, no, no, {(7,): 1}, 0, first)


def said(of: Centre) -> list[SiteMessage]:
    return [message for _, message in of.outbox.drain()]


def test_blocks_wait_for_those_before_them() -> None:
    one = centre()
    one.on_delta(0, delta(1))
    assert [type(m) for m in said(one)] == [Wait]
    one.on_delta(0, delta(0))
    plans = said(one)
    assert [m.no for m in plans if isinstance(m, Plan)] == [0, 1]
    assert [m.visible for m in plans if isinstance(m, Plan)] == [(-1, -1), (0, -1)]
    one.on_delta(0, delta(1))
    assert said(one) == [plans[1]]
    assert one.synopses.sites[0].rows == 2


def test_finished_blocks_are_forgotten() -> None:
    one = centre()
    one.on_delta(0, delta(0))
    one.on_delta(0, delta(1, first=1))
    assert list(one.replies) == [(0, 1)]
    said(one)
    one.on_delta(0, delta(0, first=1))
    assert said(one) == []


def test_a_rebuild_waits_for_everybody() -> None:
    one = centre()
    one.lead((4, 1))
    assert one.epoch == (5, 0)
    assert [m for m in said(one) if isinstance(m, Rebuild)] == [Rebuild((5, 0), 0)] * 2
    one.on_delta(0, delta(3, epoch=(5, 0)))
    assert [type(m) for m in said(one)] == [Wait]
    one.on_standing(0, Standing((5, 0), 0, 0, {(7,): 2}, (3,), 4, 2, 0, 3, 0))
    assert one.rebuilding
    one.on_standing(1, Standing((5, 0), 0, 1, {(7,): 1}, (), 9, 8, 0, 9, 0))
    (plan,) = (m for m in said(one) if isinstance(m, Plan))
    assert (plan.no, plan.visible, plan.keep) == (3, (2, 8), {(7,): 1})


def test_expires_are_applied_once_and_in_order() -> None:
    one = centre()
    for no in range(3):
        one.on_delta(0, delta(no))
    said(one)
    gone = [Expire((1, 0), 0, number, 0, {(7,): 1}) for number in range(2)]
    one.on_expire(0, gone[1])
    assert one.synopses.sites[0].rows == 3
    one.on_expire(0, gone[0])
    one.on_expire(0, gone[1])
    one.on_expire(0, gone[0])
    assert one.synopses.sites[0].rows == 1
    assert [type(m) for m in said(one)] == [Ack] * 4


def test_a_centre_that_forgot_its_epoch_goes_one_further() -> None:
    again = centre(attempt=1)
    assert not again.active
    again.on_delta(0, delta(5))
    assert again.epoch == (2, 0)
    again.on_stale(1, Stale((2, 0)))
    assert again.epoch == (3, 0)
    again.on_stale(1, Stale((2, 0)))
    assert again.epoch == (3, 0)
    again.on_stale(1, Stale((7, 1)))
    assert (again.active, again.epoch) == (False, (7, 1))


def test_takeovers() -> None:
    other = centre(node=1)
    other.on_takeover(0, Takeover((1, 0)))
    assert (other.active, other.epoch) == (True, (2, 1))
    said(other)
    # A site that has not answered the rebuild yet is being asked already; no second rebuild starts.
    other.on_takeover(0, Takeover((1, 0)))
    other.on_takeover(0, Takeover((2, 1)))
    assert other.epoch == (2, 1)
    assert said(other) == []
    other.on_standing(0, Standing((2, 1), 0, 0, {}, (), 0, -1, 0, 0, 0))
    other.on_takeover(0, Takeover((1, 0)))
    assert said(other) == [Stale((2, 1))]


def test_the_enumerating_planner_is_refused_at_once() -> None:
    layout = SiteLayout(EquiJoin.on_one_key([1] * 10), flat(11), 10, planner="smje")
    with pytest.raises(PlannerLimit):
        Centre(layout, 0, Outbox(1))


def test_the_centre_moves_where_it_costs_less() -> None:
    net = network(EquiJoin.on_one_key([math.inf] * 3))
    first = leader(net).node
    feed(net, [block(k, 0, 1) for k in range(3)], lockstep=True)
    to = (first + 1) % 3
    w = [[0 if a == b else 1 if to in (a, b) else 20 for b in range(4)] for a in range(4)]
    net.set_costs(UnitCosts.of(w))
    net.run()
    assert leader(net).node == to
    assert sum(one.active for one in centres(net)) == 1
    feed(net, [block(0, 1, 1)])
    assert len(found(net)) == 2
