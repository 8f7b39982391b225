"""Tests a processor at the other end of a line: what is sent together, what is asked of the board
first, and which error is reported when it makes no progress."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from seustream.cosim.link.errors import (
    BoardRefused,
    BoardStuck,
    LinkError,
    NoAnswer,
    NoPort,
    SessionLost,
)
from seustream.cosim.link.processor import _checked, _runs
from seustream.hdl.boards.identity import Identity
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.control_words import ControlOperation

TINY = CONFIGURATIONS["tiny"]
OURS = Identity.of("ulx3s", TINY, 50.0)


def test_writes_go_together_and_all_else_alone() -> None:
    write, read = ControlOperation.WRITE, ControlOperation.READ
    for operations, want in (
        ([write, write, write], [(0, 3)]),
        ([read, write, write, read, read, write], [(0, 1), (1, 3), (3, 4), (4, 5), (5, 6)]),
        ([read], [(0, 1)]),
    ):
        rows = np.zeros((len(operations), 2), np.uint32)
        rows[:, 0] = np.array(operations, np.uint32) | 0xF0
        assert _runs(rows) == want


def test_a_board_is_taken_if_it_is_what_the_host_wants() -> None:
    assert _checked(OURS.encode(), TINY) == OURS


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        (b"", "the board speaks another protocol: nothing", "seustream bitstream"),
        (
            b"\x63" + OURS.encode()[1:],
            "the board speaks another protocol: 63",
            "seustream bitstream",
        ),
        (
            dataclasses.replace(OURS, version=0x1234).encode(),
            "the board holds bitstream version 00001234",
            "program it anew: seustream bitstream --board ulx3s --config tiny",
        ),
        (
            Identity.of("ulx3s", CONFIGURATIONS["thesis"], 50.0).encode(),
            "the board holds configuration thesis, not tiny",
            "--config thesis, or program it anew",
        ),
        (
            dataclasses.replace(OURS, config=0xABCD).encode(),
            "the board holds configuration 0000abcd, not tiny",
            "program it anew",
        ),
    ],
)
def test_a_board_that_is_another_is_refused_with_what_to_do(
    said: bytes, message: str, hint: str
) -> None:
    with pytest.raises(BoardRefused) as caught:
        _checked(said, TINY)
    assert str(caught.value).startswith(message)
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("kind", [NoPort, NoAnswer, SessionLost, BoardRefused, BoardStuck])
def test_errors_of_a_link_are_one_family_and_carry_a_hint(kind: type[LinkError]) -> None:
    with pytest.raises(LinkError, match=r"^it is so$") as caught:
        raise kind("it is so", "do that")
    assert caught.value.hint == "do that"
    assert kind("x").hint is None
