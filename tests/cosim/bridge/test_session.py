"""Sessions: epochs exactly once, order, restarts over the journal, room, swaps."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from seustream.compiler.pipeline import Options, compile_text
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.client import BridgeClient, message_of
from seustream.cosim.bridge.epochs import ATTEMPTS
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.journal_errors import JournalDamaged
from seustream.cosim.bridge.limits import USUAL
from seustream.cosim.bridge.service import Bridge
from seustream.cosim.bridge.world import World
from seustream.cosim.golden import GoldenDevice
from tests.cosim.bridge.serving import (
    EVERYTHING,
    QUERIES,
    TINY,
    bridge,
    compiled,
    cut,
    feed_epoch,
    multiset,
    results,
    stage_epoch,
    streams,
    wanted,
)
from tests.cosim.bridge.simdisk import SimDisk

NAMES = ("pairs", "large")
TIMES = {"ts_oldest": "int64", "ts_newest": "int64"}


def kind_of(caught: pytest.ExceptionInfo[BridgeError]) -> str:
    return caught.value.kind


# --- exactly once -------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_restarts_and_repetitions_change_nothing(seed: int, tmp_path: Path) -> None:
    """A client that repeats itself, a bridge that starts again at any moment, snapshots between
    any two records: the results are those of one run, by offset. Groups, derived streams and
    patterns remember what joins do not."""
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
            for query in names:  # what there was is there, at its offset
                before = last.get(query)
                if before is not None:
                    client.flush()
                    again = client.read(query, 0, before.num_rows)
                    assert again.equals(before)
            while done < len(epochs) and chance.random() < 0.7:
                if chance.random() < 0.3:  # an attempt that is given up
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


def test_readers_positions_survive(tmp_path: Path) -> None:
    """What a reader has read is not held back once more: it would wait for ever."""
    rows, compilation = streams(300, 1), compiled()
    limits = replace(USUAL, result_rows=60, journal_bytes=1 << 30)
    seen: Counter[tuple[object, ...]] = Counter()
    at = 0
    for turn in range(6):
        with bridge(tmp_path, limits=limits) as (_, url), BridgeClient(url) as client:
            client.load(compilation, p.Run(keep=("pairs",)))
            if turn == 0:
                feed_epoch(client, 0, rows)
                client.end()
            for _ in range(3):
                end = min(client.latest("pairs", at, wait_ms=5000)["end"], at + 40)
                seen += multiset(client.read("pairs", at, end))
                client.trim("pairs", end)
                at = end
    with bridge(tmp_path, limits=limits) as (_, url), BridgeClient(url) as client:
        for table in client.results("pairs", at):
            seen += multiset(table)
    assert seen == wanted(compilation, rows)["pairs"]


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
        feed_epoch(client, 1, {})  # an empty epoch is one
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
    """Not with as many others; but in any order and cut, as Spark's tasks give them."""
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


# --- storage ------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["error", "short", "full"])
@pytest.mark.parametrize("later", range(9))
def test_a_write_that_fails_counts_nothing_twice(fault: str, later: int, tmp_path: Path) -> None:
    """A commit fails, is told so, and is accepted once storage works; a restart right after shows
    the same rows once."""
    rows = streams(60, 1)
    epochs, disk = cut(rows, 4), SimDisk()
    with bridge(tmp_path, disk=disk) as (made, url), BridgeClient(url, patience=0) as client:
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
            if made.journal.failure is not None:
                assert client.health()["storage"] == made.journal.failure
                assert client.status()["storage_failed"] == 1
        assert client.read("pairs", 0, client.latest("pairs")["end"]).num_rows >= 0
    disk.room = None
    disk.faults.clear()
    disk.restart()
    with bridge(tmp_path, disk=disk) as (made, url), BridgeClient(url, patience=0) as client:
        client.commit(commit)
        for epoch in (2, 3):
            feed_epoch(client, epoch, epochs[epoch], attempt="again")
        assert client.health()["storage"] is None
        client.end()
        assert results(client, NAMES) == wanted(compiled(), rows)


def test_an_abort_after_a_failed_commit_loses_nothing(tmp_path: Path) -> None:
    """The record may be there after a restart, and then so must be its parts."""
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
    """At the start the bridge does not begin; while it runs, everybody who asks hears it."""
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


# --- order --------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_rows_of_an_epoch_may_come_in_any_order(seed: int, tmp_path: Path) -> None:
    """Partitions and rows shuffled, streams far apart, in bursts: nothing is late."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    rows, compilation = streams(200, seed), compiled()
    with bridge(tmp_path) as (made, url), BridgeClient(url) as client:
        client.load(compilation)
        turn = {name: (iter(cut({name: table}, 5)), 0) for name, table in rows.items()}
        while turn:
            name = chance.choice(sorted(turn))
            parts, epoch = turn[name]
            for _ in range(chance.randint(1, 3)):  # bursts
                table = next(parts, {name: None})[name]
                if table is None:
                    del turn[name]
                    break
                order = list(range(table.num_rows))
                chance.shuffle(order)
                feed_epoch(client, epoch, {name: table.take(order)}, writer=name)
                epoch += 1
                turn[name] = (parts, epoch)
        client.end()
        assert results(client, NAMES) == wanted(compilation, rows)
        assert not made.session.run.report.late


def test_late_rows_are_counted_and_kept_if_wanted(tmp_path: Path) -> None:
    rows = pa.table({"ts": [10, 20, 30], "a": [1, 1, 1], "b": [1, 2, 3]})
    late = pa.table({"ts": [5, 29, 31, 30], "a": [1] * 4, "b": [4, 5, 6, 7]})
    with bridge(tmp_path) as (made, url), BridgeClient(url) as client:
        client.load(compiled(), p.Run(slack=1, late=True))
        feed_epoch(client, 0, {"R": rows})
        feed_epoch(client, 1, {"R": late})
        client.end()
        client.flush()
        assert client.status()["late_total"] == {"R": 1, "S": 0}
        assert client.read("late.R", 0, 1).to_pylist() == [{"ts": 5, "a": 1, "b": 4}]
        assert made.session.run.report.taken == {"R": 6}


def test_a_silent_stream_holds_back_until_it_promises_or_lags(tmp_path: Path) -> None:
    rows = {"R": pa.table({"ts": [100, 200], "a": [1, 1], "b": [900, 900]})}
    for run, promise, found in (
        (p.PLAIN, None, 0),
        (p.PLAIN, 150, 1),
        (p.PLAIN, 201, 2),
        (p.Run(lag=99), None, 1),
        (p.Run(lag=0), None, 2),
    ):
        folder = tmp_path / f"{run.lag}-{promise}"
        with bridge(folder) as (_, url), BridgeClient(url) as client:
            client.load(compiled(), run)
            feed_epoch(client, 0, rows)
            if promise is not None:
                client.promise("S", promise)
            client.flush()
            held = client.status()["rows_held"]
            # R itself may send more at 200; what is at 100 nothing can precede.
            assert client.latest("large")["end"] == min(found, 2), (run, promise, held)


# --- room ---------------------------------------------------------------------


def test_a_slow_reader_stops_the_writer(tmp_path: Path) -> None:
    rows, compilation = streams(400, 5), compiled()
    limits = replace(USUAL, result_rows=50, waiting_rows=100, patience=0.2)
    with bridge(tmp_path, limits=limits) as (made, url), BridgeClient(url, patience=0) as client:
        client.load(compilation)
        epochs, epoch = cut(rows, 20), 0

        def write(attempt: object) -> str | None:
            """The kind of error, if it is one."""
            try:
                feed_epoch(client, epoch, epochs[epoch], attempt=str(attempt))
            except BridgeError as error:
                assert "wait for a reader" in str(error)  # noqa: PT017
                return error.kind
            return None

        while (said := write(epoch)) is None:
            epoch += 1
        assert said == "busy"
        assert epoch < 15
        assert made.session.waiting_rows <= 100
        at = dict.fromkeys(NAMES, 0)
        found: dict[str, Counter[tuple[object, ...]]] = {name: Counter() for name in NAMES}

        def read() -> bool:
            more = False
            for name in NAMES:
                latest = client.latest(name)
                found[name] += multiset(client.read(name, at[name], latest["end"]))
                client.trim(name, latest["end"])
                more |= latest["end"] > at[name] or not latest["over"]
                at[name] = latest["end"]
            return more

        attempt = 0
        while epoch < len(epochs):
            epoch += write(f"again{attempt}") is None
            attempt += 1
            read()
        client.end()
        while read():
            pass
        assert found == wanted(compilation, rows)


@pytest.mark.parametrize("limit", ["rows", "bytes"])
def test_results_wait_for_readers_by_rows_and_by_bytes(limit: str, tmp_path: Path) -> None:
    """Processing goes on as they are read."""
    rows, compilation = streams(400, 5), compiled()
    few = {"rows": {"result_rows": 40}, "bytes": {"result_bytes": 1000}}[limit]
    limits = replace(USUAL, patience=0.2, **few)
    seen = Counter[tuple[object, ...]]()
    with bridge(tmp_path, limits=limits) as (made, url), BridgeClient(url, patience=0) as client:
        client.load(compilation, p.Run(keep=("pairs",)))
        for epoch, part in enumerate(cut(rows, 40)):
            feed_epoch(client, epoch, part)
        client.end()
        with pytest.raises(BridgeError, match="results of pairs wait for a reader") as caught:
            client.flush()
        assert kind_of(caught) == "busy"
        at = 0
        while not (latest := client.latest("pairs", at, wait_ms=100))["over"] or at < latest["end"]:
            log = made.session.log("pairs")
            assert len(log) < 200
            assert log.bytes < 10_000
            seen += multiset(client.read("pairs", at, latest["end"]))
            at = latest["end"]
            client.trim("pairs", at)
    assert seen == wanted(compilation, rows)["pairs"]


def test_large_epochs_are_refused(tmp_path: Path) -> None:
    rows = streams(100, 1)
    limits = replace(USUAL, epoch_rows=150)
    with bridge(tmp_path, limits=limits) as (_, url), BridgeClient(url) as client:
        client.load(compiled())
        with pytest.raises(BridgeError, match="an epoch of 200 rows, at most 150") as caught:
            feed_epoch(client, 0, rows)
        assert kind_of(caught) == "too-large"
        with pytest.raises(BridgeError, match="more than 150 rows"):
            feed_epoch(client, 0, {"R": pa.concat_tables([rows["R"]] * 2)}, attempt="2")
        feed_epoch(client, 0, {"R": rows["R"]}, attempt="3")
    limits = replace(USUAL, epoch_bytes=3500)
    with bridge(tmp_path, limits=limits) as (_, url), BridgeClient(url) as client:
        with pytest.raises(BridgeError, match="more than 3,500 bytes in an epoch") as caught:
            feed_epoch(client, 1, {"R": pa.concat_tables([rows["R"]] * 3)})
        assert kind_of(caught) == "too-large"
        with pytest.raises(BridgeError, match=r"an epoch of [4-9],\d+ bytes, at most 3,500"):
            feed_epoch(client, 1, rows, attempt="2")
        feed_epoch(client, 1, {"R": rows["R"]}, attempt="3")


# --- queries ------------------------------------------------------------------


def test_patterns_alone_need_no_device(tmp_path: Path) -> None:
    """And have parameters, which the manifest carries; one stream does not wait for the other."""
    text = QUERIES.partition("REGISTER")[0] + (
        "REGISTER QUERY names AS PATTERN n1 x; n2 y FROM S TYPE BY name"
        " WHERE x.d = :key WITHIN 60 ms RETURN x.ts, y.ts AS later;"
    )
    options = Options(config=TINY, parameters={"key": 3})
    compilation, rows = compile_text(text, "q.xsql", options), streams(300, 4)
    want = wanted(compilation, rows)["names"]
    assert want.total() > 3
    with bridge(tmp_path) as (_, url), BridgeClient(url) as client:
        client.load(compilation)
        feed_epoch(client, 0, {"S": rows["S"]})
        client.flush()
        assert client.latest("names")["end"] > 3
        client.end()
        assert results(client, ["names"])["names"] == want
        assert client.act("queries")["queries"]["names"]["columns"]["later"] == "int64"


def test_a_swap_keeps_groups_and_patterns_with_the_same_text(tmp_path: Path) -> None:
    rows = streams(300, 12)
    one = EVERYTHING.replace("ROWS 40", "ROWS 50")
    epochs = cut(rows, 6)
    limits = replace(USUAL, journal_bytes=1)
    with bridge(tmp_path, limits=limits) as (_, url), BridgeClient(url) as client:
        client.load(compiled(one))
        for epoch in range(3):
            feed_epoch(client, epoch, epochs[epoch])
        client.flush()
        client.swap(compiled(EVERYTHING))
    with bridge(tmp_path, limits=limits) as (_, url), BridgeClient(url) as client:
        for epoch in range(3, 6):
            feed_epoch(client, epoch, epochs[epoch])
        client.end()
        names = compiled(EVERYTHING).program.names
        found, want = results(client, names), wanted(compiled(EVERYTHING), rows)
    counts = (found.pop("counts"), want.pop("counts"))
    assert found == want
    assert counts[0].total() == counts[1].total()
    assert counts[0] != counts[1]  # the window of counts is another, so it began anew


def test_a_swap_keeps_windows_and_offsets(tmp_path: Path) -> None:
    """Queries exchanged between epochs, also over a restart: each query finds what a run of all
    of them finds from its first epoch on, reaching back into the windows."""
    rows = streams(300, 9)
    other = QUERIES.replace("large", "small").replace("R.b > 800", "R.b < 100")
    epochs = cut(rows, 6)
    first = dict(zip(rows, (t.slice(0, 150) for t in rows.values()), strict=True))
    limits = replace(USUAL, journal_bytes=1)
    with bridge(tmp_path, limits=limits) as (_, url), BridgeClient(url) as client:
        client.load(compiled())
        for epoch in range(3):
            feed_epoch(client, epoch, epochs[epoch])
        client.flush()
        # Up to here everything both streams agree on is processed.
        client.swap(compiled(other))
        assert client.swap(compiled(other)) == {"already": True}
        with pytest.raises(BridgeError, match="other columns"):
            client.swap(compiled(QUERIES.replace("a int, b int", "a int, b bigint")))
    with bridge(tmp_path, limits=limits) as (_, url), BridgeClient(url) as client:
        for epoch in range(3, 6):
            feed_epoch(client, epoch, epochs[epoch])
        client.end()
        found = results(client, ("pairs", "small", "large"))
    assert found["pairs"] == wanted(compiled(), rows)["pairs"]
    everything = wanted(compiled(other), rows)["small"]
    assert found["small"] <= everything
    assert found["small"].total() > 5
    assert found["large"] <= wanted(compiled(), first)["large"]


def test_a_swap_that_cannot_be_changes_nothing(tmp_path: Path) -> None:
    """It is refused before it is in the journal, from where it would end every session."""
    rows, how = streams(200, 4), p.Run(keep=("pairs",))
    epochs = cut(rows, 2)
    with bridge(tmp_path) as (_, url), BridgeClient(url) as client:
        client.load(compiled(), how)
        feed_epoch(client, 0, epochs[0])
        with pytest.raises(BridgeError, match="there is no query pairs"):
            client.swap(compiled(QUERIES.replace("pairs", "both")), how)
    with bridge(tmp_path) as (_, url), BridgeClient(url) as client:
        feed_epoch(client, 1, epochs[1])
        client.end()
        assert results(client, ["pairs"])["pairs"] == wanted(compiled(), rows)["pairs"]


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
    """They wait for their reader, are listed, are there after a restart, and have a bound."""
    rows = streams(400, 9)
    epochs = cut(rows, 2)
    text = QUERIES.partition("REGISTER")[0] + "REGISTER QUERY {} AS SELECT R.b FROM R WHERE R.b {}"
    first, second, third = (
        compiled(text.format(name, what) + " WINDOW NOW;")
        for name, what in (("large", "> 800"), ("small", "< 100"), ("tiny", "< 50"))
    )
    limits = replace(USUAL, result_rows=20, patience=0.5, journal_bytes=journal_bytes)
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
        client.swap(third)  # nobody has trimmed them; now they are too many, and go
        assert client.latest("large")["first"] == end
        assert client.latest("small")["first"] == 0
        client.end()
        assert multiset(client.read("small", 0, client.latest("small")["end"])).total() > 3


def test_how_long_a_restart_takes_bounds_what_it_does_again(tmp_path: Path) -> None:
    """By the time the work took, whatever its bytes; what waited for readers was no work."""
    rows, ticks = streams(400, 3), itertools.count()
    epochs = cut(rows, 40)
    limits = replace(USUAL, replay_seconds=3.0, patience=1e9)

    class Slow(World):
        def now(self) -> float:
            return float(next(ticks))  # every look at the clock is a second later

    replayed = []
    for start in range(0, 24, 8):
        made = Bridge(GoldenDevice(TINY), tmp_path, "golden", limits, Slow())
        with contextlib.closing(made):
            made.act("load", p.write(message_of(compiled())))
            replayed.append(made.session.replayed)
            for epoch in range(start, start + 8):
                stage_epoch(made, epoch, epochs[epoch])
                made.session.flush()
    assert max(replayed) < 8, replayed


def test_a_snapshot_that_cannot_be_written_is_taken_later(tmp_path: Path) -> None:
    rows, disk = streams(60, 3), SimDisk()
    limits = replace(USUAL, journal_bytes=1)
    with bridge(tmp_path, limits=limits, disk=disk) as (made, url), BridgeClient(url) as client:
        client.load(compiled())
        for epoch, part in enumerate(cut(rows, 6)):
            disk.broken = "snapshot" if 2 <= epoch <= 3 else ""
            feed_epoch(client, epoch, part)
            client.flush()
            assert made.journal.load is not None
            made.session._no_snapshot_before = 0.0
        assert disk.happened["error open"] == 2
        assert made.session.failure is None
        client.end()
        client.flush()
    disk.restart()
    with bridge(tmp_path, limits=limits, disk=disk) as (made, url), BridgeClient(url) as client:
        assert made.session.replayed <= 2
        assert results(client, NAMES) == wanted(compiled(), rows)


def test_attempts_of_a_partition_do_not_heap_up(tmp_path: Path) -> None:
    """A writer that is told to wait stages its rows anew each time."""
    rows = streams(20, 3)
    with contextlib.closing(Bridge(GoldenDevice(TINY), tmp_path, "golden")) as made:
        made.act("load", p.write(message_of(compiled())))
        for attempt in range(30):
            commit = stage_epoch(made, 0, rows, f"-{attempt}", commit=False)
        assert len(made.session.epochs.staged) == 2 * ATTEMPTS
        assert len(list((tmp_path / "staged").glob("*.part"))) == 2 * ATTEMPTS
        made.act("commit", p.write(commit))
        assert not made.session.epochs.staged


def test_what_was_trimmed_since_a_snapshot_waits_for_nobody(tmp_path: Path) -> None:
    """Results that readers have are given up once more after a restart, without another trim: else
    they fill the room, and processing waits for readers that have all of them."""
    with contextlib.closing(Bridge(GoldenDevice(TINY), tmp_path, "golden")) as made:
        made.act("load", p.write(message_of(compiled())))
        stage_epoch(made, 0, streams(60, 3))
        made.act("end", p.write(p.End()))
        made.session.flush()
        with made.session.changed:
            made.session._snapshot()
        assert made.session.delivery.retained > 10
        for name in NAMES:
            made.session.trim(p.Trim(name, made.session.log(name).end, "r"))
    with contextlib.closing(Bridge(GoldenDevice(TINY), tmp_path, "golden")) as made:
        assert made.session.delivery.retained == 0


def test_above_its_memory_a_bridge_takes_no_rows_and_goes_on_below(tmp_path: Path) -> None:
    have = [0]

    class Small(World):
        def resident(self) -> int:
            return have[0]

    limits = replace(USUAL.within(1 << 30), patience=0.1)
    assert limits.result_bytes == 1 << 28
    rows = cut(streams(60, 3), 2)
    said = "has 2,048 MB of memory, and may have 1,024"
    with contextlib.closing(
        Bridge(GoldenDevice(TINY), tmp_path, "golden", limits, Small())
    ) as made:
        made.act("load", p.write(message_of(compiled())))
        stage_epoch(made, 0, rows[0])
        commit = stage_epoch(made, 1, rows[1], commit=False)
        have[0] = 2 << 30
        for call in (
            lambda: made.act("commit", p.write(commit)),
            lambda: stage_epoch(made, 1, rows[1], "-again", commit=False),
        ):
            with pytest.raises(BridgeError, match=said) as found:
                call()
            assert found.value.kind == "busy"
            assert found.value.retriable
        have[0] = 0
        made.act("commit", p.write(commit))
        made.session.flush()
        assert made.session.epochs.last("w") == 1
