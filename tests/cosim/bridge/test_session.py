"""Tests sessions: exactly-once epochs, order, restarts over the journal, room, swaps."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.journal_errors import JournalDamaged
from seustream.cosim.bridge.limits import USUAL
from tests.cosim.bridge.serving import (
    EVERYTHING,
    NAMES,
    QUERIES,
    TIMES,
    bridge,
    compiled,
    cut,
    feed_epoch,
    kind_of,
    multiset,
    results,
    streams,
    wanted,
)
from tests.cosim.bridge.simdisk import SimDisk

# --- exactly once -------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_restarts_and_repetitions_change_nothing(seed: int, tmp_path: Path) -> None:
    """A client repeats itself, a bridge restarts at any moment, snapshots come between any two
    records: the results are those of one run, by offset. Groups, derived streams and patterns keep
    state that joins do not."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    rows, compilation = streams(300, seed), compiled(EVERYTHING)
    names = compilation.program.names
    want = wanted(compilation, rows)
    assert all(found.total() > 3 for found in want.values())
    limits = replace(USUAL, journal_bytes=chance.choice((1, 20_000, 1 << 30)))
    how = p.Run(slack=chance.choice((0, 40)))
    epochs = cut(rows, 12)
    last: dict[str, pa.Table] = {}
    done = 0
    while done < len(epochs):
        with bridge(tmp_path, limits=limits) as (made, url), BridgeClient(url) as client:
            client.load(compilation, how)
            for query in names:  # earlier results are there, at their offsets
                before = last.get(query)
                if before is not None:
                    client.flush()
                    again = client.read(query, 0, before.num_rows)
                    assert again.equals(before)
            while done < len(epochs) and chance.random() < 0.7:
                if chance.random() < 0.3:  # an attempt that is abandoned
                    feed_epoch(client, done, epochs[done], attempt="lost", commit=False)
                parts = feed_epoch(client, done, epochs[done])
                if chance.random() < 0.3:  # the answer was lost
                    again = client.commit(p.Commit("w", done, tuple(parts)))
                    assert again == {"epoch": done, "already": True}
                    feed_epoch(client, done, epochs[done], attempt="again")
                done += 1
            client.flush()
            for query in names:
                last[query] = client.read(query, 0, client.latest(query)["end"])
    with bridge(tmp_path, limits=limits) as (made, url), BridgeClient(url) as client:
        client.end()
        assert results(client, names) == want
        assert sum(want["pairs"].values()) > 100
        assert made.session.run.report.taken == {"R": 300, "S": 300}
        assert not made.session.epochs.staged


# --- storage ------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["error", "short", "full"])
@pytest.mark.parametrize("later", range(9))
def test_a_write_that_fails_counts_nothing_twice(fault: str, later: int, tmp_path: Path) -> None:
    """A commit fails, its client gets the error, and it is accepted once storage works; a restart
    right after shows the same rows once."""
    rows = streams(60, 1)
    epochs, disk = cut(rows, 4), SimDisk()
    with bridge(tmp_path, disk=disk) as (_, url), BridgeClient(url, patience=0) as client:
        client.load(compiled())
        feed_epoch(client, 0, epochs[0])
        parts = feed_epoch(client, 1, epochs[1], commit=False)
        commit = p.Commit("w", 1, tuple(parts))
        if fault == "full":
            disk.room = disk.used + 40 * later
        else:
            disk.faults[disk.changes + later] = fault
        try:
            for _ in range(2):
                client.commit(commit)
                feed_epoch(client, 2, epochs[2])
                feed_epoch(client, 3, epochs[3])
        except BridgeError as error:
            said: BridgeError | None = error
        else:
            said = None
        if said is not None and said.kind != "gap":
            assert said.kind == "storage"
            assert said.retriable
            assert "cannot be written" in str(said)
            assert client.health()["storage"] is not None
            assert client.status()["storage_failed"] == 1
        assert client.read("pairs", 0, client.latest("pairs")["end"]).num_rows >= 0
    disk.room = None
    disk.faults.clear()
    disk.restart()
    with bridge(tmp_path, disk=disk) as (_, url), BridgeClient(url, patience=0) as client:
        client.commit(commit)
        for epoch in (2, 3):
            feed_epoch(client, epoch, epochs[epoch], attempt="again")
        assert client.health()["storage"] is None
        client.end()
        assert results(client, NAMES) == wanted(compiled(), rows)


def test_an_abort_after_a_failed_commit_loses_nothing(tmp_path: Path) -> None:
    """The record may be there after a restart, and then its parts must be there, too."""
    rows, disk = streams(30, 1), SimDisk()
    with bridge(tmp_path, disk=disk) as (_, url), BridgeClient(url, patience=0) as client:
        client.load(compiled())
        parts = feed_epoch(client, 0, rows, commit=False)
        disk.faults[disk.changes + 2] = "error"  # the record is in the first copy
        with pytest.raises(BridgeError, match="cannot be written"):
            client.commit(p.Commit("w", 0, tuple(parts)))
        disk.room = disk.used
        with pytest.raises(BridgeError, match="No space left"):
            client.abort("w", 0)
    disk.room = None
    disk.restart()
    with bridge(tmp_path, disk=disk) as (_, url), BridgeClient(url, patience=0) as client:
        assert client.commit(p.Commit("w", 0, tuple(parts)))["already"]
        client.end()
        assert results(client, NAMES) == wanted(compiled(), rows)


def test_a_part_that_is_damaged_stops_the_session_and_names_it(tmp_path: Path) -> None:
    """At the start the bridge refuses to begin; while it runs, every caller gets the error."""
    rows, disk = streams(60, 1), SimDisk()
    with bridge(tmp_path, disk=disk) as (_, url), BridgeClient(url, patience=0) as client:
        client.load(compiled())
        parts = feed_epoch(client, 0, rows, commit=False)
        name = next(n for n in disk.names(tmp_path / "staged") if n.endswith(".part"))
        disk.files[tmp_path / "staged" / name].data[100] ^= 1
        client.commit(p.Commit("w", 0, tuple(parts)))
        with pytest.raises(BridgeError, match=rf"{name}: byte 0") as caught:
            client.flush()
        assert kind_of(caught) == "failed"
    disk.restart()
    with pytest.raises(JournalDamaged, match=rf"{name}: byte 0"), bridge(tmp_path, disk=disk):
        pass


# --- queries ------------------------------------------------------------------


def test_a_query_that_cannot_go_on_says_so_and_ends_no_other(tmp_path: Path) -> None:
    text = QUERIES.replace("SELECT R.b, S.name", "SELECT R.b * 9223372036854775807 AS x, S.name")
    text = text.replace("WINDOW RANGE 30;", "WINDOW RANGE 30 WITH (strict);")
    rows = {
        "R": pa.table({"ts": [1, 2], "a": [1, 1], "b": [0, 900]}),
        "S": pa.table({"ts": [3], "d": [1], "name": ["n"]}),
    }
    for _ in range(2):  # also after a restart
        with bridge(tmp_path) as (_, url), BridgeClient(url, patience=0) as client:
            client.load(compiled(text))
            if not client.status().get("writer_epoch"):
                feed_epoch(client, 0, rows)
                client.end()
            client.flush()
            with pytest.raises(BridgeError, match=r"query pairs: .*overflow") as caught:
                list(client.results("pairs"))
            assert kind_of(caught) == "failed"
            large = client.read("large", 0, client.latest("large")["end"])
            assert multiset(large) == wanted(compiled(), rows)["large"]
            assert large.num_rows == 1
            assert client.health()["failure"] is None
            phases = {q["name"]: q["phase"] for q in client.act("query-list")["queries"]}
            assert phases == {"pairs": "FAILED", "large": "RUNNING"}
    with bridge(tmp_path) as (_, url), BridgeClient(url) as client:
        assert client.act("statement", p.Statement("DROP QUERY pairs"))["dropped"] == ["pairs"]
    with bridge(tmp_path) as (_, url), BridgeClient(url) as client:
        assert [q["name"] for q in client.act("query-list")["queries"]] == ["large"]


def test_reset_and_close_forget(tmp_path: Path) -> None:
    rows, compilation = streams(60, 1), compiled()
    with bridge(tmp_path) as (made, url), BridgeClient(url, patience=0) as client:
        for _ in range(2):
            client.load(compilation)
            feed_epoch(client, 0, rows)
            client.end()
            assert results(client, NAMES) == wanted(compilation, rows)
            client.reset()
        with pytest.raises(BridgeError) as caught:
            client.load(compiled(QUERIES.replace("800", "700")))
        assert kind_of(caught) == "in-use"
        client.forget()
        assert not made.has_session
        client.load(compiled(QUERIES.replace("800", "700")))


@pytest.mark.parametrize("journal_bytes", [1, 1 << 30])
def test_results_of_a_query_swapped_out_hold_up_no_other(
    journal_bytes: int, tmp_path: Path
) -> None:
    """They wait for their reader, are listed, survive a restart, and have a bound."""
    rows = streams(400, 9)
    epochs = cut(rows, 2)
    text = QUERIES.partition("REGISTER")[0] + "REGISTER QUERY {} AS SELECT R.b FROM R WHERE R.b {}"
    first, second, third = (
        compiled(text.format(name, what) + " WINDOW NOW;")
        for name, what in (("large", "> 800"), ("small", "< 100"), ("tiny", "< 50"))
    )
    limits = replace(USUAL, result_rows=20, journal_bytes=journal_bytes)
    with bridge(tmp_path, limits=limits) as (_, url), BridgeClient(url, patience=0) as client:
        client.load(first)
        feed_epoch(client, 0, epochs[0])
        client.flush()
        end = client.latest("large")["end"]
        assert end > 20
        client.swap(second)
        feed_epoch(client, 1, epochs[1])
        client.flush()
        assert client.latest("small")["end"] > 3
        listed = {"large": {"columns": {"b": "int32", **TIMES}, "first": 0, "end": end}}
        assert client.act("queries")["swapped_out"] == listed
        with flight.connect(url) as connection:
            paths = {tuple(info.descriptor.path) for info in connection.list_flights()}
        assert (b"query", b"large") in paths
    with bridge(tmp_path, limits=limits) as (_, url), BridgeClient(url, patience=0) as client:
        client.flush()
        found = multiset(client.read("large", 0, end))
        assert found <= wanted(first, rows)["large"]
        client.swap(third)  # no reader has trimmed them; now there are too many, and they go
        assert client.latest("large")["first"] == end
        assert client.latest("small")["first"] == 0
        client.end()
        assert multiset(client.read("small", 0, client.latest("small")["end"])).total() > 3


@pytest.mark.parametrize("journal_bytes", [1, 1 << 30])
@pytest.mark.parametrize("column", ["a int", "b varchar(9)"])
@pytest.mark.parametrize("lasts", [False, True])
def test_a_stream_under_the_name_of_one_that_is_dropped_is_a_new_one(
    journal_bytes: int, column: str, lasts: bool, tmp_path: Path
) -> None:
    """It has not ended, and belongs to no writer, also after a restart."""
    limits = replace(USUAL, journal_bytes=journal_bytes)
    query = "REGISTER QUERY q AS SELECT {} FROM R WINDOW NOW"
    with bridge(tmp_path, limits=limits) as (_, url), BridgeClient(url, patience=2) as client:
        keeper = "CREATE STREAM S (a int); REGISTER QUERY s AS SELECT a FROM S WINDOW NOW"
        text = f"CREATE STREAM R (a int); {query.format('a')}; {keeper * lasts}"
        client.act("statement", p.Statement(text))
        feed_epoch(client, 0, {"R": pa.table({"ts": [1], "a": pa.array([1], pa.int32())})})
        client.end("R")
        client.act("statement", p.Statement("DROP QUERY q; DROP STREAM R"))
        client.act("statement", p.Statement(f"CREATE STREAM R ({column})"))
    with bridge(tmp_path, limits=limits) as (made, url), BridgeClient(url, patience=2) as client:
        name, of = column.split()
        assert client.act("query-list")["streams"][-1]["state"] == "UNCONNECTED"
        client.act("statement", p.Statement(query.format(name)))
        cell = pa.array([7], pa.int32()) if of == "int" else pa.array(["x"])
        feed_epoch(client, 0, {"R": pa.table({"ts": [0], name: cell})}, writer="other")
        client.end()
        client.flush()
        got = client.read("q", 0, client.latest("q")["end"]).column(0).to_pylist()
        assert got == cell.to_pylist()
        assert made.session.failure is None
    with bridge(tmp_path, limits=limits) as (made, url), BridgeClient(url, patience=2) as client:
        client.flush()
        assert client.read("q", 0, client.latest("q")["end"]).column(0).to_pylist() == got
        assert "R" in made.session.ended
