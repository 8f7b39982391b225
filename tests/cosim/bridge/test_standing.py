"""Tests a journal with queries that no longer compile: they have failed, and all others go on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from seustream.compiler.apas.libraries import Libraries
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.limits import USUAL
from tests.cosim.bridge.test_registry import (
    STREAM,
    Inserts,
    phases,
    refused,
    register,
    say,
    served,
    values,
)
from tests.engine.temporal import windows

BAD = "where mine.last($I, 1) select [x = $I.v]"
DERIVED = (
    f"CREATE STREAM d AS APAS $${BAD}$$;"
    "REGISTER QUERY reader AS SELECT x FROM d WINDOW NOW;"
    "REGISTER QUERY sums AS SELECT count(*) AS n FROM I WINDOW RANGE 1000;"
)


def library() -> Libraries:
    found = Libraries()
    found.register("mine", windows.LIBRARIES["mine"])
    return found


def counts(client: BridgeClient) -> list[object]:
    return [row[0] for row in values(client, "sums")]


@pytest.mark.parametrize("journal_bytes", [1, 1 << 30], ids=["snapshots", "replayed"])
def test_a_function_that_is_gone_fails_those_that_need_it(
    journal_bytes: int, tmp_path: Path
) -> None:
    """The journal has records before and after it; the results of the other queries keep their
    offsets."""
    limits = replace(USUAL, journal_bytes=journal_bytes)
    with served(tmp_path, limits, library()) as (_, client):
        say(client, STREAM)
        register(client, "good")
        feed = Inserts(client)
        feed(7)
        register(client, "bad", BAD)
        say(client, DERIVED)
        feed(8)
        register(client, "after")
        feed(9)
    lost = {"bad": "FAILED", "reader": "FAILED"}
    others = dict.fromkeys(("good", "sums", "after"), "RUNNING")
    with served(tmp_path, limits) as (made, client):
        feed.client = client
        feed(10)
        assert made.session.failure is None
        assert phases(client) == lost | others
        why = client.act("query-log", p.QueryLog("bad"))["events"][-1][4]
        assert why.endswith("there is no function mine.last")
        assert (
            "there is no stream d" in client.act("query-log", p.QueryLog("reader"))["events"][-1][4]
        )
        assert [row[2] for row in values(client, "good")] == [7, 8, 9, 10]
        assert counts(client) == [1, 2, 3]
        assert refused(lambda: register(client, "bad", BAD)).kind == "compile"
        register(client, "new")
        assert phases(client) == lost | others | {"new": "RUNNING"}
        assert say(client, "DROP QUERY bad")["dropped"] == ["bad"]
    with served(tmp_path, limits, library()) as (made, client):
        feed.client = client
        assert "bad" not in phases(client)
        say(client, "DROP QUERY reader")
        register(client, "bad", BAD)
        feed(11, 12)
        assert set(phases(client)) == {*others, "new", "bad"}
        assert set(phases(client).values()) == {"RUNNING"}
        assert values(client, "bad")
        assert [row[2] for row in values(client, "good")] == [*range(7, 13)]


def test_a_function_that_is_back_before_a_snapshot_was_never_gone(tmp_path: Path) -> None:
    with served(tmp_path, libraries=library()) as (_, client):
        say(client, STREAM)
        register(client, "bad", BAD)
        feed = Inserts(client)
        feed(7, 8, 9)
        want = values(client, "bad")
    assert want
    with served(tmp_path) as (_, client):
        assert phases(client) == {"bad": "FAILED"}
    with served(tmp_path, libraries=library()) as (_, client):
        client.flush()
        assert phases(client) == {"bad": "RUNNING"}
        assert values(client, "bad") == want
