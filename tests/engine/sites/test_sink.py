"""The query node delivers each result once, however often it comes, and forgets results that cannot
come again."""

from __future__ import annotations

from seustream.engine.sites.messages import Ack, Deliver, Done, Lost, SiteMessage
from seustream.engine.sites.model import Result, Stored
from seustream.engine.sites.outbox import Outbox
from seustream.engine.sites.sink import Sink


def result(no: int, end: float = 10, members: tuple[int, ...] = (0,)) -> Result:
    rows = tuple(Stored((k, no, 0), (1,), 0, 0, (end, end)) for k in range(2))
    return Result(members, rows)


def sink() -> tuple[Sink, list[tuple[int, Result]], Outbox]:
    box, emitted = Outbox(10), list[tuple[int, Result]]()
    return Sink(box, lambda member, found: emitted.append((member, found))), emitted, box


def kinds(box: Outbox) -> list[type[SiteMessage]]:
    return [type(message) for _, message in box.drain()]


def test_a_block_is_delivered_once_and_answered_each_time() -> None:
    query_node, emitted, box = sink()
    message = Deliver((0, 1), 5, 0, (result(1), result(2)))
    query_node.on_deliver(1, message)
    assert kinds(box) == [Ack, Done]
    query_node.on_deliver(1, message)
    assert kinds(box) == [Ack]
    assert emitted == [(0, result(1)), (0, result(2))]
    assert query_node.counters["repeated deliveries"] == 1


def test_a_combination_found_by_two_blocks_is_delivered_once_a_member() -> None:
    query_node, emitted, _ = sink()
    query_node.on_deliver(1, Deliver((0, 1), 5, 0, (result(1),)))
    query_node.on_deliver(1, Deliver((1, 1), 5, 0, (result(1, members=(0, 1)),)))
    assert [member for member, _ in emitted] == [0, 1]
    assert query_node.counters["repeated results"] == 1


def test_what_cannot_come_again_is_forgotten() -> None:
    query_node, emitted, _ = sink()
    query_node.on_deliver(1, Deliver((0, 1), 5, 0, (result(1),)))
    query_node.on_deliver(1, Deliver((0, 2), 12, 11, (result(2, end=20),)))
    assert list(query_node.blocks) == [(0, 2)]
    assert len(query_node.seen) == 1
    query_node.on_deliver(1, Deliver((0, 1), 5, 0, (result(1),)))
    assert len(emitted) == 2


def test_a_lost_store_is_remembered() -> None:
    query_node, _, box = sink()
    query_node.on_lost(2, Lost(2))
    assert query_node.incomplete
    assert kinds(box) == [Ack]
