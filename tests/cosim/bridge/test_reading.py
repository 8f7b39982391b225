"""Tests results that wait for readers, are read by offset, and are trimmed."""

from __future__ import annotations

import contextlib
import itertools
import random
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.client import BridgeClient, message_of
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.limits import USUAL
from seustream.cosim.golden import GoldenDevice
from tests.cosim.bridge.serving import (
    NAMES,
    QUERIES,
    TINY,
    bridge,
    compiled,
    cut,
    feed_epoch,
    multiset,
    stage_epoch,
    streams,
    wanted,
)
from tests.cosim.bridge.simdisk import SimDisk


def test_readers_positions_survive(tmp_path: Path) -> None:
    """Results that a reader has read are not held back again after a restart: they would wait for
    ever."""
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


def test_a_query_is_read_by_its_name_in_any_case(tmp_path: Path) -> None:
    rows, compilation = streams(100, 1), compiled()
    with bridge(tmp_path) as (_, url), BridgeClient(url) as client:
        client.load(compilation, p.Run(keep=("pairs",)))
        feed_epoch(client, 0, rows)
        client.end()
        seen = [multiset(table) for table in client.results("PAIRS", reader="r")]
        assert sum(seen, Counter()) == wanted(compilation, rows)["pairs"]
        assert client.latest("pairs")["readers"].keys() == {"r"}
        with pytest.raises(BridgeError, match="no query pear"):
            client.latest("pear")


def test_a_slow_reader_stops_the_writer(tmp_path: Path) -> None:
    rows, compilation = streams(400, 5), compiled()
    limits = replace(USUAL, result_rows=50, waiting_rows=100, patience=0.2)
    with bridge(tmp_path, limits=limits) as (made, url), BridgeClient(url, patience=0) as client:
        client.load(compilation)
        epochs, epoch = cut(rows, 20), 0

        def write(attempt: object) -> str | None:
            """Returns the kind of the error, if there is one; a busy machine is none."""
            for again in itertools.count():
                try:
                    feed_epoch(client, epoch, epochs[epoch], attempt=f"{attempt} {again}")
                    break
                except BridgeError as error:
                    if "wait to be processed" not in str(error):
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
    """Processing goes on as the results are read."""
    rows, compilation = streams(400, 5), compiled()
    few = {"rows": {"result_rows": 40}, "bytes": {"result_bytes": 1000}}[limit]
    limits = replace(USUAL, patience=0.2, **few)
    seen = Counter[tuple[object, ...]]()
    with bridge(tmp_path, limits=limits) as (made, url), BridgeClient(url, patience=0) as client:
        client.load(compilation, p.Run(keep=("pairs",)))
        for epoch, part in enumerate(cut(rows, 40)):
            feed_epoch(client, epoch, part)
        client.end()
        while not made.session.delivery.full:
            time.sleep(0.01)
        with pytest.raises(BridgeError, match="results of pairs wait for a reader") as caught:
            client.flush()
        assert caught.value.kind == "busy"
        at = 0
        while not (latest := client.latest("pairs", at, wait_ms=100))["over"] or at < latest["end"]:
            log = made.session.reading.log("pairs")
            assert len(log) < 200
            assert log.bytes < 10_000
            seen += multiset(client.read("pairs", at, latest["end"]))
            at = latest["end"]
            client.trim("pairs", at)
    assert seen == wanted(compilation, rows)["pairs"]


def test_a_reader_of_many_gets_fewer_when_there_is_no_room_for_more(tmp_path: Path) -> None:
    """It asks for more results than there are, and would wait for ten minutes."""
    rows, compilation = streams(400, 5), compiled()
    limits = replace(USUAL, patience=600.0, result_rows=40)
    seen, at, answers = Counter[tuple[object, ...]](), 0, 0
    with bridge(tmp_path, limits=limits) as (_, url), BridgeClient(url, patience=0) as client:
        client.load(compilation, p.Run(keep=("pairs",)))
        for epoch, part in enumerate(cut(rows, 40)):
            feed_epoch(client, epoch, part)
        client.end()
        over = False
        while not over:
            latest = client.latest("pairs", at, wait_ms=600_000, least=1 << 40)
            assert latest["over"] or latest["end"] - at >= 40
            seen += multiset(client.read("pairs", at, latest["end"]))
            at, over, answers = latest["end"], latest["over"], answers + 1
            client.trim("pairs", at)
    assert answers > 2
    assert seen == wanted(compilation, rows)["pairs"]


def test_results_of_one_key_come_in_pieces() -> None:
    """Four million results of one epoch come piece by piece; a piece has fewer than twice a
    million."""
    text = QUERIES.partition("REGISTER")[0] + (
        "REGISTER QUERY pairs AS SELECT R.b FROM R, S WHERE R.a = S.d WINDOW UNBOUNDED;"
    )
    rows = {name: table.slice(0, 2000) for name, table in streams(2000, 1).items()}
    one = pa.array([1] * 2000, pa.int32())
    rows["R"] = rows["R"].set_column(1, "a", one)
    rows["S"] = rows["S"].set_column(1, "d", one)
    limits, read, most = replace(USUAL, result_rows=100), 0, 0
    made = Bridge(None, Path("/j"), limits=limits, disk=SimDisk(), config=TINY)
    with contextlib.closing(made):
        made.act("load", p.write(message_of(compiled(text))))
        stage_epoch(made, 0, rows)
        made.act("end", p.write(p.End()))
        while (
            not made.session.reading.latest(p.Latest("pairs", read, 500))["over"] or read < 2000**2
        ):
            log = made.session.reading.log("pairs")
            read, most = log.end, max(most, len(log))
            made.session.reading.trim(p.Trim("pairs", read, "r"))
    assert read == 2000**2
    assert most < 1 << 21


def test_a_reader_is_not_waited_for_whose_trim_the_power_took() -> None:
    """The reader asks for what follows the results it has read, and these fill all the room."""
    rows, limits, disk = streams(100, 2), replace(USUAL, result_rows=40), SimDisk()
    epochs = cut(rows, 10)

    def opened() -> Bridge:
        return Bridge(GoldenDevice(TINY), Path("/j"), limits=limits, disk=disk)

    first = opened()
    first.act("load", p.write(message_of(compiled(), p.Run(keep=("pairs",)))))
    for epoch in range(10):
        stage_epoch(first, epoch, epochs[epoch])
    power, read = disk.__deepcopy__({}), 0  # no trim got that far
    while first.session.applied < first.session.taken:
        end = first.session.reading.latest(p.Latest("pairs", read, 100))["end"]
        assert isinstance(end, int)
        first.session.reading.trim(p.Trim("pairs", end, "r"))
        read = end
    assert read > 80
    first.close()
    disk = power
    with contextlib.closing(opened()) as second:
        assert second.session.reading.trim(p.Trim("pairs", read, "r")) == {"first": read}


def test_a_replay_gives_readers_the_latest_run_of_a_name() -> None:
    """They know no earlier one, whose results fill all the room again in the meantime."""
    epochs, limits, disk = cut(streams(100, 2), 10), replace(USUAL, result_rows=40), SimDisk()

    def opened() -> Bridge:
        return Bridge(GoldenDevice(TINY), Path("/j"), limits=limits, disk=disk)

    def trimmed(end: int) -> None:
        first.session.reading.trim(p.Trim("q", end, "r"))

    first = opened()
    first.act("load", p.write(message_of(compiled(), p.Run(keep=()))))
    for half, text in enumerate(("REGISTER QUERY q AS {}", "REGISTER OR REPLACE QUERY q AS {}")):
        select = f"SELECT a + {half} AS a FROM R"
        first.act("statement", p.write(p.Statement(text.format(select), kept=True)))
        for epoch in range(5 * half, 5 * half + 5):
            stage_epoch(first, epoch, epochs[epoch])
            first.session.flush()
            end = first.session.reading.log("q").end
            if epoch < 9:
                trimmed(end)
    want = first.read(p.Read("q", first.session.reading.log("q").first, end)).to_pylist()
    assert want
    power = disk.__deepcopy__({})
    first.close()
    disk = power
    with contextlib.closing(opened()) as second:
        found = second.session.reading.latest(p.Latest("q"))
        assert found["run"] == 2
        rows = second.read(p.Read("q", end - len(want), end))
        assert rows.to_pylist() == want


@pytest.mark.parametrize("seed", range(4))
def test_a_reader_at_the_end_need_not_come_back(seed: int) -> None:
    """Its results would otherwise fill the room, and the others' would never come."""
    disk, limits = SimDisk(), replace(USUAL, result_rows=1000)
    with contextlib.closing(Bridge(GoldenDevice(TINY), Path("/j"), disk=disk)) as made:
        made.act("load", p.write(message_of(compiled())))
        stage_epoch(made, 0, streams(60, 3))
        made.act("end", p.write(p.End()))
        made.session.flush()
        for name in NAMES:
            made.session.reading.trim(p.Trim(name, made.session.reading.log(name).end, "r"))
        disk.lose_power(random.Random(seed))
    disk.restart()
    with contextlib.closing(
        Bridge(GoldenDevice(TINY), Path("/j"), limits=limits, disk=disk)
    ) as made:
        made.session.flush()
        assert made.session.delivery.retained == 0


def test_a_trim_that_was_not_recorded_is_when_it_comes_again() -> None:
    disk = SimDisk()
    with contextlib.closing(Bridge(GoldenDevice(TINY), Path("/j"), disk=disk)) as made:
        made.act("load", p.write(message_of(compiled())))
        stage_epoch(made, 0, streams(60, 3))
        made.session.flush()
        reading = made.session.reading
        trim = p.Trim("pairs", reading.log("pairs").end, "r")
        disk.faults[disk.changes] = "error"
        with pytest.raises(BridgeError, match="the journal cannot be written"):
            reading.trim(trim)
        assert "r" not in reading.log("pairs").readers
        reading.trim(trim)
    disk.restart()
    with contextlib.closing(Bridge(GoldenDevice(TINY), Path("/j"), disk=disk)) as made:
        assert made.session.delivery.positions["pairs", 1] == {"r": trim.offset}


@pytest.mark.parametrize("is_saved", [False, True])
def test_readers_of_a_registered_query_keep_their_places_over_a_restart(is_saved: bool) -> None:
    """Its registration is replayed behind the trims, which must not forget them: what one reader has
    read waits for the other."""
    disk, places = SimDisk(), {"b": 0, "a": 3}
    for number in range(3):
        with contextlib.closing(Bridge(GoldenDevice(TINY), Path("/j"), disk=disk)) as made:
            if not number:
                text = "CREATE STREAM R (a int); REGISTER QUERY q AS SELECT a FROM R WINDOW NOW"
                for one in (text, "REGISTER OR REPLACE " + text.partition("REGISTER ")[2]):
                    made.act("statement", p.write(p.Statement(one, kept=True)))
            rows = pa.table({"ts": [number], "a": pa.array([number], pa.int32())})
            for _ in range(2):
                stage_epoch(made, 2 * number + _, {"R": rows})
            made.act("promise", p.write(p.Promise("R", number + 1)))
            made.session.flush()
            latest = made.act("latest", p.write(p.Latest("q")))
            assert (latest["run"], latest["end"]) == (2, 2 * number + 2)
            if number == 1:
                for reader, offset in places.items():
                    made.act("trim", p.write(p.Trim("q", offset, reader)))
            if number == 2:
                assert (latest["readers"], latest["first"]) == (places, 0)
                made.act("trim", p.write(p.Trim("q", 4, "a")))
                assert made.read(p.Read("q", 0, 4)).num_rows == 4
            if is_saved:
                assert made.close(save=True)


def test_results_of_another_run_are_not_mistaken_for_those_asked_for(tmp_path: Path) -> None:
    with bridge(tmp_path) as (_, url), BridgeClient(url, patience=0) as client:
        client.load(compiled())
        feed_epoch(client, 0, streams(60, 3))
        client.end()
        client.flush()
        assert client.read("pairs", 0, 2, 1).equals(client.read("pairs", 0, 2))
        with pytest.raises(BridgeError) as caught:
            client.read("pairs", 0, 2, 2)
        assert caught.value.kind == "trimmed"
