"""Tests sessions: exactly-once epochs, order, restarts over the journal, room, swaps."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.client import BridgeClient, message_of
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.journal_errors import JournalDamaged
from seustream.cosim.bridge.limits import USUAL
from seustream.cosim.bridge.living import FAILED
from seustream.cosim.golden import GoldenDevice
from tests.cosim.bridge.serving import (
    EVERYTHING,
    NAMES,
    QUERIES,
    TIMES,
    TINY,
    bridge,
    compiled,
    cut,
    feed_epoch,
    kind_of,
    multiset,
    results,
    stage_epoch,
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


SET = "CREATE STREAM R (a int); REGISTER QUERY g AS SELECT a FROM R WINDOW NOW;"


@contextlib.contextmanager
def stored(disk: SimDisk) -> Iterator[Bridge]:
    with contextlib.closing(Bridge(GoldenDevice(TINY), Path("/j"), disk=disk)) as made:
        yield made


def epoch_of(made: Bridge, epoch: int, *values: int) -> None:
    """Adds rows to stream R, at times of their own."""
    stage_epoch(made, epoch, {"R": numbered(*values)})
    made.act("promise", p.write(p.Promise("R", max(values) + 1)))
    made.session.flush()


def numbered(*values: int) -> pa.Table:
    return pa.table({"ts": list(values), "a": pa.array(values, pa.int32())})


def begun(disk: SimDisk) -> None:
    """Leaves a session with a loaded query g and a registered one k, which have three results."""
    with stored(disk) as made:
        made.act("load", p.write(message_of(compiled(SET))))
        text = "REGISTER QUERY k AS SELECT a FROM R WINDOW NOW"
        made.act("statement", p.write(p.Statement(text, kept=True)))
        epoch_of(made, 0, 1, 2, 3)


def state(made: Bridge) -> dict[str, tuple[int, int, bool]]:
    """Returns by query its run, the end of its results, and whether these give way to others."""
    found = {}
    for name in made.session.book.queries:
        latest = made.act("latest", p.write(p.Latest(name)))
        found[name] = latest["run"], latest["end"], latest["bounded"]
    return found


def kind_when(made: Bridge, action: str) -> str:
    """Returns the kind of error that an action ends with."""
    try:
        made.act(action, b"")
    except BridgeError as error:
        return error.kind
    return ""


BEFORE = {"g": (1, 3, False), "k": (1, 3, False)}
ANEW = {"g": (2, 0, False), "k": (2, 0, False)}


@pytest.mark.parametrize("what", ["close", "reset"])
def test_what_the_disk_refuses_is_not_half_done(what: str) -> None:
    """Each of its calls fails once: the session is as before, takes statements, and lasts."""
    for call in range(20):
        disk = SimDisk()
        begun(disk)
        with stored(disk) as made:
            made.session.flush()
            disk.faults[disk.changes + call] = "error"
            kind = kind_when(made, what)
            if not kind:
                break
            assert kind == "storage"
            assert state(made) == BEFORE
            made.act("statement", p.write(p.Statement("CREATE STREAM S (a int)")))
            epoch_of(made, 1, 4)
        with stored(disk) as made:
            made.session.flush()
            assert state(made) == dict.fromkeys(BEFORE, (1, 4, False))
            made.act(what, b"")
            assert made.has_session == (what == "reset")
    assert call > 3


def test_a_reset_cut_off_is_done_or_not() -> None:
    seen = set()
    for call in range(20):
        disk = SimDisk()
        begun(disk)
        with contextlib.suppress(BridgeError), stored(disk) as made:
            disk.faults[disk.changes + call] = "dead"
            made.act("reset", b"")
        is_over = disk.power
        disk.faults.clear()
        disk.lose_power(random.Random(call))
        disk.restart()
        with stored(disk) as made:
            made.session.flush()
            assert state(made) in (BEFORE, ANEW)
            seen.add(state(made) == ANEW)
        if is_over:
            break
    assert seen == {False, True}


def test_a_reset_begins_other_runs_of_queries_that_stay_what_they_were() -> None:
    """One that was loaded keeps all its results, also if it had failed."""
    disk = SimDisk()
    text = SET + "REGISTER QUERY f AS SELECT 6 / a AS x FROM R WINDOW NOW WITH (strict);"
    with stored(disk) as made:
        made.act("load", p.write(message_of(compiled(text))))
        made.act(
            "statement", p.write(p.Statement("REGISTER QUERY l AS SELECT a FROM R WINDOW NOW"))
        )
        epoch_of(made, 0, 0, 1)
        assert made.session.book["f"].phase == FAILED
        made.act("reset", b"")
        fresh = {name: (2, 0, name == "l") for name in ("g", "f", "l")}
        assert state(made) == fresh
        epoch_of(made, 0, 1, 2)
    with stored(disk) as made:
        made.session.flush()
        assert state(made) == {name: (run, 2, bounded) for name, (run, _, bounded) in fresh.items()}
        made.act("close", b"")
        made.act("load", p.write(message_of(compiled(SET))))
        assert state(made) == {"g": (3, 0, False)}
        made.act(
            "statement", p.write(p.Statement("REGISTER QUERY l AS SELECT a FROM R WINDOW NOW"))
        )
        assert state(made)["l"][0] == 3


@pytest.mark.parametrize("journal_bytes", [1, 1 << 30])
def test_a_query_set_is_loaded_again_beside_what_others_have_registered(
    journal_bytes: int, tmp_path: Path
) -> None:
    """A program that starts anew loads its queries; those of others do not concern it."""
    limits = replace(USUAL, journal_bytes=journal_bytes)
    for _ in range(2):
        with bridge(tmp_path, limits=limits) as (_, url), BridgeClient(url, patience=0) as client:
            client.load(compiled(SET))
            text = "REGISTER QUERY IF NOT EXISTS k AS SELECT a FROM R WHERE a > 1"
            client.act("statement", p.Statement(text))
            assert client.load(compiled(SET))["already"]
            with pytest.raises(BridgeError) as caught:
                client.load(compiled(SET), p.Run(lag=5))
            assert kind_of(caught) == "in-use"
    with bridge(tmp_path, limits=limits) as (_, url), BridgeClient(url, patience=0) as client:
        assert client.load(compiled(SET))["already"]
        client.act("statement", p.Statement("DROP QUERY g"))
        with pytest.raises(BridgeError) as caught:
            client.load(compiled(SET))
        assert kind_of(caught) == "in-use"


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
