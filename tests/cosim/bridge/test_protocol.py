"""Tests messages: written, read back, and refused with the name of what is wrong."""

from __future__ import annotations

import json

import pytest

from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.errors import BridgeError

MESSAGES = [
    p.Load("{}", "", p.Run(slack=5, lag=7, keep=("q0",), late=True)),
    p.Load("{}", ""),
    p.Stage("w", "R", 3, 1, "s"),
    p.Commit("w", 3, (p.StagedPart("s", 10), p.StagedPart("t", 0)), {"R": 99}),
    p.Commit("w", 0),
    p.End(("R",)),
    p.End(),
    p.Trim("q0", 5, "me"),
    p.Register("q", "select …", "q.apas"),
    p.Statement("SHOW STREAMS", "f"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=repr)
def test_what_is_written_is_read(message: object) -> None:
    assert p.read(type(message), p.write(message)) == message


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("", "member 'writer' is missing"),
        ("[]", "Stage: want an object"),
        ("{", "not JSON"),
        ('{"writer":"w"}', "member 'stream' is missing"),
        ('{"writer":1,"stream":"R","epoch":0,"partition":0,"staging":"s"}', "writer: want a text"),
        ('{"writer":"w","stream":"R","epoch":true,"partition":0,"staging":"s"}', "epoch: want"),
        ('{"writer":"w","stream":"R","epoch":1e3,"partition":0,"staging":"s"}', "epoch: want"),
        (
            '{"writer":"w","stream":"R","epoch":9223372036854775808,"partition":0,"staging":"s"}',
            "64 bits",
        ),
        (
            '{"writer":"w","stream":"R","epoch":0,"partition":0,"staging":"s","x":1}',
            "no member 'x'",
        ),
        ("\xff", "not JSON"),
    ],
)
def test_what_is_no_stage_is_refused(body: str, complaint: str) -> None:
    with pytest.raises(BridgeError, match=complaint) as caught:
        p.read(p.Stage, body.encode("latin-1"))
    assert caught.value.kind == "malformed"


def test_members_inside_are_checked_too() -> None:
    body = {"writer": "w", "epoch": 0, "parts": [{"staging": "s", "rows": "many"}]}
    with pytest.raises(BridgeError, match=r"Commit\.parts\[0\]\.rows: want a whole number"):
        p.read(p.Commit, json.dumps(body).encode())


def test_numbers_have_64_bits() -> None:
    for number in (-(1 << 63), (1 << 63) - 1):
        assert p.read(p.Promise, p.write(p.Promise("R", number))).timestamp == number
        with pytest.raises(
            BridgeError, match=r"Promise\.timestamp: want a whole number of 64 bits"
        ):
            p.read(p.Promise, p.write(p.Promise("R", number + (1 if number > 0 else -1))))


def test_an_older_bridge_knows_what_it_is_asked() -> None:
    assert b"run" not in p.write(p.Read("q", 0, 1))
    assert b"run" in p.write(p.Read("q", 0, 1, 2))


def test_deep_nesting_and_length_are_refused() -> None:
    with pytest.raises(BridgeError, match=r"not JSON|want"):
        p.read(p.Commit, b"[" * 100_000)
    with pytest.raises(BridgeError) as caught:
        p.read(p.Commit, b" " * (p.MAX_MESSAGE + 1))
    assert caught.value.kind == "too-large"


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", "\x00"])
def test_names_are_short_and_printable(name: str) -> None:
    with pytest.raises(BridgeError, match="printable"):
        p.check_name("writer", name)
