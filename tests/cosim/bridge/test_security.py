"""Tests addresses, tokens and rates."""

from __future__ import annotations

from pathlib import Path

import pytest

from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.security import (
    Address,
    AddressRefused,
    Bearer,
    Calls,
    check_listening,
    read_token,
)


@pytest.mark.parametrize(
    ("text", "address", "loopback"),
    [
        ("grpc://127.0.0.1:9", Address("127.0.0.1", 9), True),
        ("grpc://127.9.9.9", Address("127.9.9.9", 8815), True),
        ("grpc+tls://[::1]:9", Address("::1", 9, True), True),
        ("grpc://0.0.0.0:9", Address("0.0.0.0", 9), False),
        ("grpc://[::]:9", Address("::", 9), False),
        ("grpc://10.0.0.1:9", Address("10.0.0.1", 9), False),
        ("grpc://fpga.example:9", Address("fpga.example", 9), False),
    ],
)
def test_addresses(text: str, address: Address, loopback: bool) -> None:
    assert Address.parse(text) == address
    assert Address.parse(str(address)) == address
    assert address.loopback == loopback


@pytest.mark.parametrize(
    "text",
    [
        "",
        "127.0.0.1:9",
        "http://x:9",
        "grpc://x:99999",
        "grpc://x/y",
        "grpc://[::1",
        "grpc://a b:1",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(AddressRefused):
        Address.parse(text)


def test_others_need_a_token() -> None:
    check_listening(Address("127.0.0.1", 9), None)
    check_listening(Address("0.0.0.0", 9), "secret")
    with pytest.raises(AddressRefused, match="no token"):
        check_listening(Address("0.0.0.0", 9), None)


@pytest.mark.parametrize("text", ["", "short", "a" * 15, "with a blank inside", "ü" * 20])
def test_weak_tokens_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_text(text, encoding="utf-8")
    with pytest.raises(AddressRefused):
        read_token(tmp_path / "t")


def test_a_token_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("0123456789abcdef\n")
    assert read_token(tmp_path / "t") == "0123456789abcdef"
    with pytest.raises(AddressRefused, match="No such file"):
        read_token(tmp_path / "none")


def test_calls_are_counted_by_peer_and_second() -> None:
    now = [0.0]
    calls = Calls(3, lambda: now[0])
    for _ in range(3):
        calls.take("a")
    with pytest.raises(BridgeError) as caught:
        calls.take("a")
    assert caught.value.kind == "rate-limited"
    assert caught.value.retriable
    calls.take("b")
    now[0] = 0.4
    calls.take("a")
    with pytest.raises(BridgeError):
        calls.take("a")


@pytest.mark.parametrize("token", ["0123456789abcdef", " 0123456789abcdef\r\n"])
def test_a_token_is_sent_without_the_white_space_around_it(token: str) -> None:
    sent = Bearer(token).start_call(None).sending_headers()
    assert sent == {"authorization": "Bearer 0123456789abcdef"}


@pytest.mark.parametrize("token", ["ü" * 20, "0123456789\nabcdef", "0123\x00456789"])
def test_a_token_that_no_header_holds_is_refused(token: str) -> None:
    """The message does not repeat it."""
    with pytest.raises(AddressRefused) as caught:
        Bearer(token)
    assert str(caught.value) == "the token is no line of ASCII text"
