"""Messages are repeated until they are answered, by whom and however often."""

from __future__ import annotations

from engine.sites.messages import Done, Rebuild, Takeover, ref
from engine.sites.outbox import Outbox

DONE = Done((1, 2), 3.0)


def test_repeated_until_answered() -> None:
    box = Outbox(10)
    box.insist(4, DONE)
    assert box.drain() == [(4, DONE)]
    box.tick(9)
    assert box.drain() == []
    for now in (10, 20):
        box.tick(now)
        assert box.drain() == [(4, DONE)]
    assert box.tries(Done) == 2
    box.answered(ref(DONE), by=5)
    assert box.unanswered
    box.answered(ref(DONE), by=4)
    box.tick(100)
    assert box.drain() == []


def test_said_once() -> None:
    box = Outbox(10)
    box.say(1, DONE)
    assert box.drain() == [(1, DONE)]
    box.tick(100)
    assert box.drain() == []


def test_one_answer_of_several() -> None:
    box, rebuild = Outbox(10), Rebuild((2, 0), 0)
    for to in range(3):
        box.insist(to, rebuild)
    box.answered(ref(rebuild), by=1)
    box.drain()
    box.tick(10)
    assert [to for to, _ in box.drain()] == [0, 2]
    box.answered(ref(rebuild))
    assert not box.unanswered


def test_calm_and_forget() -> None:
    box = Outbox(10)
    box.insist(0, DONE)
    box.insist(0, Takeover((1, 0)))
    box.tick(10)
    box.calm(ref(DONE))
    assert (box.tries(Done), box.tries(Takeover), box.tries(Done, Takeover)) == (0, 1, 1)
    box.calm()
    assert box.tries(Takeover) == 0
    box.forget(Takeover)
    assert [type(u.message) for u in box.unanswered.values()] == [Done]
