"""Messages are repeated until they are answered, whichever node answers and however often."""

from __future__ import annotations

from seustream.engine.sites.messages import Done, Rebuild, Takeover
from seustream.engine.sites.outbox import Outbox

DONE = Done((1, 2), 3.0)


def test_repeated_until_answered() -> None:
    box = Outbox(10)
    box.repeat(4, DONE)
    assert box.drain() == [(4, DONE)]
    box.tick(9)
    assert box.drain() == []
    for now in (10, 20):
        box.tick(now)
        assert box.drain() == [(4, DONE)]
    assert box.tries(Done) == 2
    box.answered(DONE.ref, by=5)
    assert box.unanswered
    box.answered(DONE.ref, by=4)
    box.tick(100)
    assert box.drain() == []


def test_said_once() -> None:
    box = Outbox(10)
    box.send(1, DONE)
    assert box.drain() == [(1, DONE)]
    box.tick(100)
    assert box.drain() == []


def test_one_answer_of_several() -> None:
    box, rebuild = Outbox(10), Rebuild((2, 0), 0)
    for to in range(3):
        box.repeat(to, rebuild)
    box.answered(rebuild.ref, by=1)
    box.drain()
    box.tick(10)
    assert [to for to, _ in box.drain()] == [0, 2]
    box.answered(rebuild.ref)
    assert not box.unanswered


def test_calm_and_forget() -> None:
    box = Outbox(10)
    box.repeat(0, DONE)
    box.repeat(0, Takeover((1, 0)))
    box.tick(10)
    box.reset_tries(DONE.ref)
    assert (box.tries(Done), box.tries(Takeover), box.tries(Done, Takeover)) == (0, 1, 1)
    box.reset_tries()
    assert box.tries(Takeover) == 0
    box.forget(Takeover)
    assert [type(u.message) for u in box.unanswered.values()] == [Done]
