"""Tests a session against a board that is scripted here: what is sent, what is asked, and when.
Whole boards are in `test_device_faults`."""

from __future__ import annotations

import itertools
import random

import pytest

from seustream.cosim.link.errors import NoAnswer, SessionLost
from seustream.cosim.link.session import LinkSession
from seustream.hdl.boards.protocol import (
    FLAG,
    LEAST,
    MOST,
    RING,
    FrameKind,
    LinkFrame,
    longer,
    shorter,
)


class Told:
    """A line to nobody: it keeps what is written, its frames are put in by hand, and time passes
    only while the session waits."""

    def __init__(self) -> None:
        self.time, self.coming = 0.0, b""
        self.frames: list[LinkFrame] = []
        self.number = 0
        self.answers_open = True

    def now(self) -> float:
        return self.time

    def read(self, timeout: float) -> bytes:
        if not self.coming:
            self.time += timeout
        data, self.coming = self.coming, b""
        return data

    def write(self, data: bytes) -> None:
        for piece in filter(None, data.split(bytes([FLAG]))):
            frame = LinkFrame.decode(piece)
            assert frame is not None
            self.frames.append(frame)
            self.number = frame.session
            if frame.kind == FrameKind.OPEN and self.answers_open:
                self.say(FrameKind.OPENED, credit=RING, payload=b"it")

    def say(self, kind: FrameKind, **fields: object) -> None:
        frame = LinkFrame(kind, self.number, **fields)  # type: ignore[arg-type]
        self.coming += frame.encode()

    def close(self) -> None:
        pass

    def sent(self) -> list[LinkFrame]:
        """Returns the frames sent since the last call."""
        frames, self.frames = self.frames, []
        return frames

    def kinds(self) -> list[int]:
        return [frame.kind for frame in self.sent()]


@pytest.fixture
def line() -> Told:
    return Told()


@pytest.fixture
def session(line: Told) -> LinkSession:
    made = LinkSession(line, now=line.now, chance=random.Random(1))
    assert made.open() == b"it"
    line.sent()
    return made


def test_a_session_is_opened_twice(line: Told) -> None:
    LinkSession(line, now=line.now, chance=random.Random(1)).open()
    first, second, credit = line.frames
    assert (first.kind, second.kind, credit.kind) == (
        FrameKind.OPEN,
        FrameKind.OPEN,
        FrameKind.DATA,
    )
    assert first.session != second.session == credit.session


def test_a_board_that_does_not_answer(line: Told) -> None:
    line.answers_open = False
    with pytest.raises(NoAnswer, match="it does not answer"):
        LinkSession(line, patience=3.0, now=line.now).open()
    assert 3.0 < line.time < 4.0


def test_a_port_that_returns_what_is_sent_is_no_board() -> None:
    """It would look alive for ever."""

    class Echo(Told):
        def write(self, data: bytes) -> None:
            self.coming += data

    line = Echo()
    with pytest.raises(NoAnswer, match="a port that returns what is sent"):
        LinkSession(line, now=line.now).open()
    assert line.time < 1


def test_what_comes_in_order_is_given_once(session: LinkSession, line: Told) -> None:
    line.say(FrameKind.DATA, sequence=0, payload=b"abc")
    line.say(FrameKind.DATA, sequence=0, payload=b"abc")
    line.say(FrameKind.DATA, sequence=3, payload=b"de")
    assert session.step(1.0)
    assert session.take() == b"abcde"
    assert line.frames[-1].ack == 5


def test_a_gap_is_asked_for_at_once_and_once(session: LinkSession, line: Told) -> None:
    """It is not asked for only when the time to wait is over: by then a board that sends much at
    once would have sent the rest in vain."""
    line.say(FrameKind.DATA, sequence=10, payload=b"later")
    session.step(0.01)
    assert line.kinds().count(FrameKind.ASK) == 1
    assert line.time < 0.1
    line.say(FrameKind.DATA, sequence=15, payload=b"later still")
    session.step(0.01)
    assert FrameKind.ASK not in line.kinds()
    # The missing bytes come, and then another gap.
    line.say(FrameKind.DATA, sequence=0, payload=b"0123456789")
    line.say(FrameKind.DATA, sequence=20, payload=b"later")
    session.step(0.01)
    assert line.kinds().count(FrameKind.ASK) == 1
    assert session.take() == b"0123456789"


def test_what_was_had_already_is_no_gap(session: LinkSession, line: Told) -> None:
    line.say(FrameKind.DATA, sequence=0, payload=b"abc")
    session.step(0.01)
    line.sent()
    line.say(FrameKind.DATA, sequence=0, payload=b"abc")
    session.step(0.01)
    assert FrameKind.ASK not in line.kinds()


def test_frames_get_shorter_when_lost_and_longer_again(session: LinkSession, line: Told) -> None:
    def payloads() -> list[int]:
        return [len(frame.payload) for frame in line.sent() if frame.payload]

    session.put(bytes(1000))
    session.step(0.01)
    assert payloads() == [MOST] * 4 + [1000 - 4 * MOST]
    most = MOST
    for _ in range(5):
        while FrameKind.ASK not in [frame.kind for frame in line.frames]:
            session.step(1.0)
        most = shorter(most)
        # Only a few short ones are sent again before an answer comes, not all of it.
        assert payloads() == [min(most, 1000 - i * most) for i in range(8)]
    assert most == LEAST
    line.say(FrameKind.DATA, ack=8 * LEAST, credit=RING)
    session.step(0.01)
    assert payloads()[0] == longer(LEAST)


def test_it_asks_less_and_less_often_when_nothing_is_heard(
    session: LinkSession, line: Told
) -> None:
    session.put(b"x")
    times = []

    def wait() -> None:
        while True:
            session.step(1.0)
            if FrameKind.ASK in line.kinds():
                times.append(line.time)

    with pytest.raises(NoAnswer, match="it fell silent"):
        wait()
    waits = [round(b - a, 3) for a, b in itertools.pairwise(times)]
    assert waits[:3] == [0.1, 0.2, 0.4]
    assert set(waits[3:]) == {0.8}


def test_it_goes_on_asking_a_board_that_answers(session: LinkSession, line: Told) -> None:
    session.put(b"x")
    asked = 0
    while line.time < 20.0:
        session.step(1.0)
        if FrameKind.ASK in line.kinds():
            asked += 1
            line.say(FrameKind.DATA, credit=RING)
    assert asked > 150


def test_a_lost_session_is_told(session: LinkSession, line: Told) -> None:
    line.say(FrameKind.LOST)
    with pytest.raises(SessionLost):
        session.step(0.1)
