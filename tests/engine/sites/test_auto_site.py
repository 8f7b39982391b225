"""A site under `strategy=auto`: what it announces, what it owes, what it ships."""

from __future__ import annotations

import math

from seustream.engine.sites.auto import AutoSite
from seustream.engine.sites.costs import UnitCosts
from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.messages import (
    AccountState,
    Announce,
    Ask,
    Changes,
    Done,
    Fetch,
    Fetched,
    Plan,
    Rebuild,
    Ship,
    SiteMessage,
    Standing,
    ToHub,
)
from seustream.engine.sites.model import EquiJoin
from seustream.engine.sites.outbox import Outbox
from tests.engine.sites.running import block

COSTS = UnitCosts.of([[0, 1, 1], [1, 0, 1], [1, 1, 0]])
EPOCH = (1, 1)


def site(window: float = math.inf) -> AutoSite:
    layout = SiteLayout(EquiJoin.on_one_key([window, window]), COSTS, 2, candidates=(1,))
    return AutoSite(layout, 0, Outbox(10))


def said(of: AutoSite) -> list[tuple[int, SiteMessage]]:
    return of.outbox.drain()


def only(of: AutoSite) -> SiteMessage:
    ((_, message),) = said(of)
    return message


def plan(no: int, way: ToHub | None = None, number: int = 1, watermark: float = 0) -> Plan:
    books = AccountState(number, 3.0, None if way is None else way.hub, {0: 1.0})
    return Plan(EPOCH, 0, no, no, {}, (), (-1, -1), watermark, (True,), 0, way, books)


def test_blocks_are_announced_by_numbers_and_told_when_asked() -> None:
    of = site()
    of.submit(block(0, 0, 7, 7, 8))
    assert only(of) == Announce(EPOCH, 0, 0, 0, 3, 2, 0, 0, 0.0, 0)
    of.on_plan_message(1, plan(0))
    of.submit(block(0, 1, 8, 9))
    assert only(of) == Announce(EPOCH, 0, 1, 1, 2, 3, 1, 1, 0.0, 0)
    of.on_ask(1, Ask(EPOCH, 0, 1, 1))
    told = only(of)
    assert told == Changes(EPOCH, 0, 1, 1, {(7,): 2, (8,): 1}, {(8,): 1, (9,): 1})
    of.on_ask(1, Ask(EPOCH, 0, 1, 1))
    assert only(of) == told
    of.on_ask(1, Ask((0, 0), 0, 1, 1))
    assert said(of) == []
    of.on_plan_message(1, plan(1))
    of.submit(block(0, 2))
    assert only(of) == Announce(EPOCH, 0, 2, 2, 0, 0, 2, 2, 0.0, 0)


def test_what_was_deleted_before_it_was_told_is_not_owed() -> None:
    of = site(1)
    of.submit(block(0, 0, 7, 8))
    of.on_plan_message(1, plan(0))
    of.submit(block(0, 1, 9))
    said(of)
    of.on_ask(1, Ask(EPOCH, 0, 1, 1))
    said(of)
    of.on_plan_message(1, plan(1))
    of.submit(block(0, 5, 9))
    of.on_plan_message(1, plan(2, watermark=5))
    said(of)
    of.submit(block(0, 6, 3))
    announce = only(of)
    assert isinstance(announce, Announce)
    # 7, 8 and one 9 left; another 9 and a 3 came.
    assert announce.owed == 3
    of.on_ask(1, Ask(EPOCH, 0, 3, 6))
    assert only(of) == Changes(EPOCH, 0, 3, 6, {(7,): -1, (8,): -1}, {(3,): 1})


def test_a_block_is_shipped_until_it_is_done() -> None:
    of = site()
    of.submit(block(0, 0, 7))
    said(of)
    of.on_plan_message(1, plan(0, ToHub(2, 5.0, False)))
    ((to, ship),) = said(of)
    assert isinstance(ship, Ship)
    assert (to, ship.most, [row.tid for row in ship.rows]) == (2, 5.0, [(0, 0, 0)])
    assert of.account is not None
    assert of.account.hub == 2
    of.outbox.tick(20)
    assert said(of) == [(2, ship)]
    of.on_rebuild(1, Rebuild((2, 1), 0))
    standing, (_, again) = said(of)
    assert isinstance(standing[1], Standing)
    assert standing[1].account == of.account
    assert isinstance(again, Ship)
    assert again.epoch == (2, 1)
    of.on_done(2, Done((0, 0), 0))
    assert not of.open
    assert not of.outbox.unanswered


def test_what_a_hub_lacks_is_given() -> None:
    of = site()
    for no in range(4):
        of.submit(block(0, no, 7))
        of.on_plan_message(1, plan(no))
    said(of)
    of.on_fetch(2, Fetch(0, 0, 3, (2,), 3))
    found = only(of)
    assert isinstance(found, Fetched)
    assert [row.tid for row in found.rows] == [(0, 1, 0), (0, 3, 0)]


def test_what_planned_blocks_cost_is_told_when_all_before_are_done() -> None:
    of = site()
    for no in range(3):
        of.submit(block(0, no, 7))
        keep = {(7,): 1}
        of.on_plan_message(1, Plan(EPOCH, 0, no, no, keep, (1,), (-1, 0), 0, (True,), 4.0))
    said(of)
    of.on_done(2, Done((0, 1), 1, 4.0, 2))
    of.submit(block(0, 3))
    first = [m for _, m in said(of) if isinstance(m, Announce)]
    of.on_done(2, Done((0, 0), 0, 3.0, 1))
    of.submit(block(0, 4))
    second = [m for _, m in said(of) if isinstance(m, Announce)]
    assert [(m.first_open, m.spent, m.results) for m in first + second] == [
        (0, 0.0, 0),
        (2, 7.0, 3),
    ]
