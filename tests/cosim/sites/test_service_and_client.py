"""Tests a site's service and its client: who may call, and what is no call."""

from __future__ import annotations

import pyarrow.flight as flight
import pytest

from seustream.compiler.catalogue import Stream
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.sites.client import Client
from seustream.cosim.sites.run import RunFailed
from seustream.cosim.sites.service import SiteService
from tests.cosim.sites.services import (
    results,
    service,
    setup,
    start,
)


def test_tokens() -> None:
    with service("R", "t" * 20) as one, service("S", "t" * 20) as other:
        with start(setup([one, other], token="t" * 20)) as run:
            run.wait()
            assert len(results(run)[0]) == 3
        with pytest.raises(RunFailed, match="wants a token") as raised:
            start(setup([one, other])).__enter__()
        assert "--token-file" in str(raised.value.hint)


def test_what_is_no_call(services: list[SiteService]) -> None:
    of = setup(services)
    client = Client(str(of.addresses[1]), of)
    with pytest.raises(BridgeError, match="knows nothing of this run"):
        client.act("state")
    with pytest.raises(BridgeError, match="no action dance"):
        client.act("dance")
    connection = flight.connect(str(of.addresses[1]))
    with pytest.raises(flight.FlightServerError, match="malformed"):
        list(connection.do_action(flight.Action("open", b"{")))
    with pytest.raises(BridgeError, match="no stream Q"):
        client.tuples(Stream("Q", ()))
