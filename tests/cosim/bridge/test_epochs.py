"""Tests the epochs of a writer: they follow each other, count once, and are recognized by their
content."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pyarrow as pa
import pytest

from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.client import BridgeClient, message_of
from seustream.cosim.bridge.epochs import ATTEMPTS
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.golden import GoldenDevice
from tests.cosim.bridge.catalogue import say
from tests.cosim.bridge.serving import (
    NAMES,
    TINY,
    bridge,
    compiled,
    cut,
    feed_epoch,
    kind_of,
    results,
    stage_epoch,
    streams,
    wanted,
)


def test_epochs_follow_each_other(tmp_path: Path) -> None:
    epochs = cut(streams(40, 1), 4)
    with bridge(tmp_path) as (_, url), BridgeClient(url, patience=0) as client:
        with pytest.raises(BridgeError) as caught:
            feed_epoch(client, 0, epochs[0])
        assert kind_of(caught) == "no-session"
        client.load(compiled())
        feed_epoch(client, 0, epochs[0])
        with pytest.raises(BridgeError, match="1 is next") as caught:
            feed_epoch(client, 2, epochs[2])
        assert kind_of(caught) == "gap"
        feed_epoch(client, 1, {})  # an empty epoch is an epoch
        assert client.commit(p.Commit("w", 1))["already"]
        with pytest.raises(BridgeError, match="committed with 0 rows, now has 5") as caught:
            client.commit(p.Commit("w", 1, (p.StagedPart("x", 5),)))
        assert kind_of(caught) == "conflict"
        with pytest.raises(BridgeError, match="nothing is staged as x") as caught:
            client.commit(p.Commit("w", 2, (p.StagedPart("x", 5),)))
        assert kind_of(caught) == "unknown"
        parts = feed_epoch(client, 2, epochs[2], attempt="new", commit=False)
        with pytest.raises(BridgeError, match="names a part twice"):
            client.commit(p.Commit("w", 2, (parts[0], parts[0])))
        with pytest.raises(BridgeError, match="has 10 rows, not 9"):
            client.commit(p.Commit("w", 2, (p.StagedPart(parts[0].staging, 9),)))
        client.abort("w", 2)
        with pytest.raises(BridgeError, match="nothing is staged"):
            client.commit(p.Commit("w", 2, tuple(parts)))
        with pytest.raises(BridgeError, match="is fed by writer w") as caught:
            feed_epoch(client, 0, epochs[0], writer="other")
        assert kind_of(caught) == "conflict"
        client.end("R")
        with pytest.raises(BridgeError, match="stream R has ended"):
            feed_epoch(client, 2, epochs[2])


def test_each_stream_may_have_its_own_client(tmp_path: Path) -> None:
    rows, compilation = streams(300, 3), compiled()
    with bridge(tmp_path) as (_, url), BridgeClient(url) as client:
        client.load(compilation)
        with BridgeClient(url) as one, BridgeClient(url) as other:
            for epoch, part in enumerate(cut(rows, 7)):
                feed_epoch(one, epoch, {"R": part["R"]}, writer="r")
            for epoch, part in enumerate(cut(rows, 3)):
                feed_epoch(other, epoch, {"S": part["S"]}, writer="s")
        client.end()
        assert results(client, NAMES) == wanted(compilation, rows)


def test_an_epoch_that_is_in_is_only_repeated_with_its_rows(tmp_path: Path) -> None:
    """Other rows are refused even if there are as many; the same rows may come in any order and
    cut, as from Spark's tasks."""
    epochs, rows = cut(streams(60, 1), 3), streams(40, 2)
    other = {name: rows[name].slice(0, t.num_rows) for name, t in epochs[1].items()}
    again = {name: t.take(list(range(t.num_rows))[::-1]) for name, t in epochs[1].items()}
    for restart in range(3):
        with bridge(tmp_path) as (_, url), BridgeClient(url, patience=0) as client:
            client.load(compiled())
            if not restart:
                for epoch in range(3):
                    parts = feed_epoch(client, epoch, epochs[epoch])
                assert client.commit(p.Commit("w", 2, tuple(parts)))["already"]
            for attempt in ("now", "later"):
                name = f"{attempt}-{restart}"
                with pytest.raises(BridgeError, match="with other rows, as many as now: 40") as c:
                    feed_epoch(client, 1, other, attempt=name)
                assert kind_of(c) == "conflict"
            staged = feed_epoch(client, 1, again, attempt=f"kept-{restart}", commit=False)
            assert client.commit(p.Commit("w", 1, tuple(staged)))["already"]
            halves = [
                ("R", 0, again["R"].slice(0, 7)),
                ("R", 1, again["R"].slice(7)),
                ("S", 0, again["S"]),
            ]
            found = []
            for stream, partition, table in halves:
                stage = p.Stage("w", stream, 1, partition, f"half-{stream}-{partition}-{restart}")
                with client.stage(stage) as part:
                    part.write(table)
                assert part.staged is not None
                found.append(part.staged)
            assert client.commit(p.Commit("w", 1, tuple(found)))["already"]
    with bridge(tmp_path) as (_, url), BridgeClient(url) as client:
        client.end()
        assert results(client, NAMES) == wanted(compiled(), streams(60, 1))


def test_a_repetition_whose_answer_was_lost_is_answered_again(tmp_path: Path) -> None:
    """A client that does not know that an epoch is in commits it anew, and never gets the answer.
    Its parts are gone by then. The names in a commit do not hide other rows."""
    epochs = cut(streams(40, 1), 2)
    other = {name: epochs[1][name].slice(0, table.num_rows) for name, table in epochs[0].items()}
    with bridge(tmp_path) as (made, url), BridgeClient(url, patience=0) as client:
        client.load(compiled())
        first = p.Commit("w", 0, tuple(feed_epoch(client, 0, epochs[0])))
        anew = feed_epoch(client, 0, epochs[0], attempt="anew", commit=False)
        second = p.Commit("w", 0, tuple(anew))
        for commit in (second, second, first, second):
            assert client.commit(commit)["already"]
        assert not made.session.epochs.staged
        for attempt in ("", "anew"):
            with pytest.raises(BridgeError, match="with other rows, as many as now") as caught:
                feed_epoch(client, 0, other, attempt=attempt)
            assert kind_of(caught) == "conflict"


def test_what_was_staged_again_is_compared_after_a_restart(tmp_path: Path) -> None:
    epochs = cut(streams(40, 1), 2)
    with bridge(tmp_path) as (_, url), BridgeClient(url) as client:
        client.load(compiled())
        feed_epoch(client, 0, epochs[0])
        parts = feed_epoch(client, 0, epochs[0], attempt="again", commit=False)
    with bridge(tmp_path) as (made, url), BridgeClient(url, patience=0) as client:
        assert client.commit(p.Commit("w", 0, tuple(parts)))["already"]
        assert not made.session.epochs.staged
        with pytest.raises(BridgeError, match="nothing is staged as none") as caught:
            client.commit(p.Commit("w", 0, (p.StagedPart("none", 40),)))
        assert kind_of(caught) == "unknown"


def test_two_attempts_of_a_partition_do_not_both_count(tmp_path: Path) -> None:
    rows = streams(30, 1)
    with bridge(tmp_path) as (_, url), BridgeClient(url, patience=0) as client:
        client.load(compiled())
        one = feed_epoch(client, 0, rows, attempt="one", commit=False)
        two = feed_epoch(client, 0, rows, attempt="two", commit=False)
        with pytest.raises(BridgeError, match="two attempts of partition 0 of stream R") as caught:
            client.commit(p.Commit("w", 0, (*one, two[0])))
        assert kind_of(caught) == "conflict"
        client.commit(p.Commit("w", 0, tuple(two)))
        client.end()
        assert results(client, NAMES) == wanted(compiled(), rows)


def test_attempts_of_a_partition_do_not_heap_up(tmp_path: Path) -> None:
    """A writer that has to wait stages its rows anew each time."""
    rows = streams(20, 3)
    with contextlib.closing(Bridge(GoldenDevice(TINY), tmp_path, "golden")) as made:
        made.act("load", p.write(message_of(compiled())))
        for attempt in range(30):
            commit = stage_epoch(made, 0, rows, f"-{attempt}", commit=False)
        assert len(made.session.epochs.staged) == 2 * ATTEMPTS
        assert len(list((tmp_path / "staged").glob("*.part"))) == 2 * ATTEMPTS
        made.act("commit", p.write(commit))
        assert not made.session.epochs.staged


def test_a_staging_identifier_may_be_used_again(tmp_path: Path) -> None:
    """Parts of a committed epoch stay, whatever is staged under their identifiers after it; of those
    not committed, the latest counts."""
    epochs, other = cut(streams(40, 1), 2), streams(40, 2)
    for restart in range(3):
        with bridge(tmp_path) as (made, url), BridgeClient(url, patience=0) as client:
            client.load(compiled())
            if not restart:
                feed_epoch(client, 0, epochs[0])
            parts = feed_epoch(client, 0, epochs[0])  # commits it again
            assert client.commit(p.Commit("w", 0, tuple(parts)))["already"]
            feed_epoch(client, 0, other, commit=False)
            assert len(made.session.epochs.staged) == 2
    with bridge(tmp_path) as (_, url), BridgeClient(url, patience=0) as client:
        feed_epoch(client, 1, other, commit=False)
        feed_epoch(client, 1, epochs[1])
        client.end()
        assert results(client, NAMES) == wanted(compiled(), streams(40, 1))
    left = {path.name for path in (tmp_path / "staged").iterdir()}
    assert len(left) == 4  # of two epochs, as no snapshot covers them


def test_identifiers_of_two_writers_are_apart(tmp_path: Path) -> None:
    rows = streams(40, 1)
    with bridge(tmp_path) as (_, url), BridgeClient(url, patience=0) as client:
        client.load(compiled())
        staged = {}
        for stream, table in rows.items():
            with client.stage(p.Stage(f"writer of {stream}", stream, 0, 0, "a")) as part:
                part.write(table)
            staged[stream] = part.staged
        for stream, one in staged.items():
            assert one is not None
            client.commit(p.Commit(f"writer of {stream}", 0, (one,)))
        client.end()
        assert results(client, NAMES) == wanted(compiled(), rows)


def test_a_part_of_a_stream_that_is_another_now_is_refused(tmp_path: Path) -> None:
    """It was staged for the columns that the stream had; later calls go on."""
    query = "REGISTER QUERY q AS SELECT {} FROM R"
    for restart in range(2):
        with bridge(tmp_path) as (_, url), BridgeClient(url, patience=0) as client:
            if not restart:
                say(client, "CREATE STREAM K (a int); REGISTER QUERY k AS SELECT a FROM K")
                say(client, f"CREATE STREAM R (a int); {query.format('a')}")
                old = {"R": pa.table({"ts": [1], "a": pa.array([1], pa.int32())})}
                staged = feed_epoch(client, 0, old, attempt="old", commit=False)
                say(client, "DROP QUERY q; DROP STREAM R")
                say(client, f"CREATE STREAM R (z int); {query.format('z')}")
                with pytest.raises(BridgeError, match="has other columns than stream R") as caught:
                    client.commit(p.Commit("w", 0, tuple(staged)))
                assert kind_of(caught) == "schema"
                feed_epoch(client, 0, {"R": old["R"].rename_columns(["ts", "z"])})
                client.end()
            client.flush()
            assert client.read("q", 0, client.latest("q")["end"]).column("z").to_pylist() == [1]
