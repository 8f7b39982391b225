"""Tests the client: it has patience with a bridge that is away, and none with one that refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.security import AddressRefused
from tests.cosim.bridge.serving import Process, bridge, compiled, feed_epoch, streams


def test_calls_wait_for_a_bridge_that_comes_back(tmp_path: Path) -> None:
    served = Process(tmp_path)
    with BridgeClient(served.url, patience=60) as client:
        client.load(compiled())
        feed_epoch(client, 0, streams(50, 1))
        before = client.latest("pairs")
        served.kill()
        with pytest.raises(BridgeError) as caught:
            client.health(patience=0)
        assert caught.value.kind == "unavailable"
        served.start()
        client.end()
        client.flush()
        assert client.latest("pairs")["end"] >= before["end"]
    assert served.terminate()[0] == 0


def test_a_refusal_is_not_repeated(tmp_path: Path) -> None:
    with bridge(tmp_path) as (made, url), BridgeClient(url, patience=60) as client:
        with pytest.raises(BridgeError) as caught:
            client.flush()
        assert caught.value.kind == "no-session"
        assert made.counts.errors["no-session"] == 1


def test_an_address_is_checked_at_once() -> None:
    with pytest.raises(AddressRefused):
        BridgeClient("http://127.0.0.1:1")
