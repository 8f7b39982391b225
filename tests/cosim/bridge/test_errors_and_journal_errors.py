"""Tests errors of the bridge: they are the same in the service, on the wire, pickled, and in the
client."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow.flight as flight
import pytest

from seustream.cosim.bridge.errors import KINDS, RETRIABLE, BridgeError, from_flight
from seustream.cosim.bridge.journal_errors import JournalDamaged, JournalRefused


def shown(error: BridgeError) -> tuple[str, str, str | None, bool]:
    return error.kind, str(error), error.hint, error.retriable


@pytest.mark.parametrize("hint", [None, "write „3“ instead"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_error_is_the_same_behind_the_wire_and_in_another_process(
    kind: str, hint: str | None
) -> None:
    error = BridgeError(kind, 'stream "ü" has ended.\nDetail: none', hint)
    assert shown(from_flight(error.to_flight())) == shown(error)
    assert shown(pickle.loads(pickle.dumps(error))) == shown(error)
    assert error.retriable == (kind in RETRIABLE)


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (flight.FlightUnauthenticatedError("no token. Detail: x"), "unauthenticated", "no token"),
        (flight.FlightServerError("is gone", extra_info=b"[1]"), "unavailable", "is gone"),
        (flight.FlightServerError("is gone", extra_info=b'{"kind": 1}'), "unavailable", "is gone"),
        (ConnectionResetError(), "unavailable", "ConnectionResetError"),
    ],
)
def test_an_error_of_no_bridge_is_about_the_connection(
    error: Exception, kind: str, text: str
) -> None:
    found = from_flight(error)
    assert found.kind == kind
    assert str(found).startswith(text)
    assert "Detail" not in str(found)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("Connection refused", "is the bridge running there?"),
        ("Ssl handshake failed: certificate verify failed: unable to get", "--tls-ca"),
        ("Peer name 127.0.0.1 is not in peer certificate", "another name"),
        ("empty address list", "must be PEM"),
        ("UNAVAILABLE: ipv4:127.0.0.1:9: Socket closed", "TLS on one side alone"),
    ],
)
def test_an_error_of_the_connection_has_the_hint_that_may_help(text: str, hint: str) -> None:
    error = flight.FlightUnavailableError(f"failed to connect to all addresses; {text}")
    assert hint in str(from_flight(error).hint)


def test_errors_of_a_journal_say_which_file_and_what_to_do() -> None:
    damaged = JournalDamaged(Path("/j/log-1.a"), 12_345, "cut off")
    assert str(damaged) == "/j/log-1.a: byte 12,345: cut off"
    assert damaged.offset == 12_345
    refused = JournalRefused("/j: no journal", "give another folder")
    assert (str(refused), refused.hint) == ("/j: no journal", "give another folder")
