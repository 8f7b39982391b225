"""A hub by itself: what it joins, what it asks for first, and what it holds back."""

from __future__ import annotations

import math

from seustream.engine.sites.costs import UnitCosts
from seustream.engine.sites.hub import Hub
from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.messages import (
    Ack,
    Deliver,
    Done,
    Fetch,
    Fetched,
    Forward,
    Joined,
    NewEpoch,
    Ship,
    SiteMessage,
)
from seustream.engine.sites.model import EquiJoin, Stored
from seustream.engine.sites.outbox import Outbox

HUB, QUERY_NODE = 2, 3
COSTS = UnitCosts.of([[0 if a == b else a + b for b in range(4)] for a in range(4)])


def hub(window: float = math.inf) -> Hub:
    made = Hub(SiteLayout(EquiJoin.on_one_key([window] * 3), COSTS, QUERY_NODE), HUB, Outbox(10))
    made.follow((1, 0))
    return made


def row(stream: int, no: int, key: int = 7, tau: float = 0) -> Stored:
    return Stored((stream, no, 0), (key,), tau, tau, (math.inf,))


def ship(
    stream: int, no: int, visible: tuple[int, ...], most: float = math.inf, **more: float
) -> Ship:
    tau, watermark = more.get("tau", 0), more.get("watermark", -math.inf)
    rows = (row(stream, no, tau=tau),)
    return Ship((1, 0), (stream, no), tau, visible, watermark, (True,), most, False, rows)


def said(of: Hub) -> list[tuple[int, SiteMessage]]:
    return of.outbox.drain()


def test_what_a_block_may_see_is_fetched_first() -> None:
    of = hub()
    of.on_ship(0, ship(0, 4, (3, 1, -1)))
    assert said(of) == [(1, Fetch(1, -1, 1, (), 0))]
    of.on_fetched(1, Fetched(1, -1, 1, 0, (row(1, 0), row(1, 1, key=8))))
    (done, joined) = said(of)
    assert done == (0, Done((0, 4), 0, 2))
    assert joined == (0, Joined((1, 0), (0, 4), 0, 0, delivered=True))
    # Stream 1 has arrived up to block 1; of stream 0 only block 4 has, so 0 to 3 are still wanted.
    of.on_ship(2, ship(2, 0, (4, 1, -1)))
    assert said(of) == [(0, Fetch(0, -1, 4, (4,), 0))]
    of.on_fetched(0, Fetched(0, -1, 4, 0, (row(0, 2),)))
    (results, _) = said(of)
    assert results[0] == QUERY_NODE
    assert isinstance(results[1], Deliver)
    assert [result.tids for result in results[1].results] == [
        ((0, 4, 0), (1, 0, 0), (2, 0, 0)),
        ((0, 2, 0), (1, 0, 0), (2, 0, 0)),
    ]


def full() -> Hub:
    of = hub()
    for stream in (0, 1):
        of.on_ship(stream, ship(stream, 0, (-1, -1, -1)))
    said(of)
    return of


def test_too_many_results_wait_to_be_told_where_to_go() -> None:
    of = full()
    last = ship(2, 0, (0, 0, -1), most=0)
    of.on_ship(2, last)
    assert said(of) == [(0, Joined((1, 0), (2, 0), 0, 1, delivered=False))]
    of.on_ship(2, last)
    assert said(of) == []
    of.on_forward(0, Forward((2, 0), 1))
    ((to, sent),) = said(of)
    assert (to, isinstance(sent, Ship) and sent.moving) == (1, True)
    of.on_forward(0, Forward((2, 0), 1))
    assert said(of) == []


def test_who_waits_asks_the_next_centre() -> None:
    of = full()
    of.on_ship(2, ship(2, 0, (0, 0, -1), most=0))
    said(of)
    of.on_new_epoch(1, NewEpoch((2, 1)))
    ack, (to, asked) = said(of)
    assert ack == (1, Ack(("led", (2, 1))))
    assert (to, asked) == (1, Joined((2, 1), (2, 0), 0, 1, delivered=False))
    of.on_forward(1, Forward((2, 0), HUB))
    ((to, sent),) = said(of)
    assert (to, isinstance(sent, Deliver)) == (QUERY_NODE, True)


def test_what_comes_twice_is_joined_once() -> None:
    of = full()
    of.on_ship(2, ship(2, 0, (0, 0, -1)))
    assert len(said(of)) == 2
    of.on_ship(2, ship(2, 0, (0, 0, -1)))
    assert said(of) == []
    of.on_ship(1, ship(2, 0, (0, 0, -1)))
    assert said(of) == [(1, Ack(("ship", (2, 0))))]


def test_memory_follows_the_watermark() -> None:
    of = hub()
    short = Stored((0, 0, 0), (7,), 0, 0, (5,))
    of.on_ship(0, Ship((1, 0), (0, 0), 0, (-1, -1, -1), 0, (True,), math.inf, False, (short,)))
    assert len(of.replicas[0].rows) == 1
    of.on_ship(1, ship(1, 0, (0, -1, -1), tau=9, watermark=9))
    assert len(of.replicas[0].rows) == 0
    assert of.joined == {(1, 0): 9}
    said(of)
    of.on_ship(0, ship(0, 0, (-1, -1, -1)))
    assert said(of) == []
