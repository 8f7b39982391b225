"""Signals that are held back come later, once; a second one comes at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from seustream.commands.feed_signals import HeldSignals

ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[list[int]]:
    """Gives the signals that come through, in place of the handlers of the tests' process."""
    came: list[int] = []
    before = {number: signal.signal(number, lambda got, _: came.append(got)) for number in ENDS}
    yield came
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", ENDS)
def test_a_signal_waits_for_a_look(handlers: list[int], number: int) -> None:
    with HeldSignals() as held:
        held.look()
        signal.raise_signal(number)
        assert handlers == []
        held.look()
        assert handlers == [number]
        held.look()
        signal.raise_signal(number)
        assert handlers == [number, number]
    assert handlers == [number, number]


def test_an_ignored_signal_stays_ignored(handlers: list[int]) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with HeldSignals() as held:
        signal.raise_signal(signal.SIGHUP)
        held.look()
        signal.raise_signal(signal.SIGTERM)
        assert handlers == []
    assert handlers == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_a_second_signal_does_not_wait(handlers: list[int]) -> None:
    with HeldSignals():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        assert handlers == [signal.SIGTERM]
    assert handlers == [signal.SIGTERM]


def test_a_signal_comes_at_the_end_of_the_block(handlers: list[int]) -> None:
    with HeldSignals():
        signal.raise_signal(signal.SIGTERM)
    assert handlers == [signal.SIGTERM]
    signal.raise_signal(signal.SIGTERM)
    assert len(handlers) == 2
