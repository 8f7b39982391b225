"""Tests the runner: rows of an epoch in any order, late rows, streams that lag, and queries that
are swapped."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from seustream.compiler.pipeline import Options, compile_text
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.limits import USUAL
from tests.cosim.bridge.serving import (
    EVERYTHING,
    NAMES,
    QUERIES,
    TINY,
    bridge,
    compiled,
    cut,
    feed_epoch,
    results,
    streams,
    wanted,
)


@pytest.mark.parametrize("seed", range(6))
def test_rows_of_an_epoch_may_come_in_any_order(seed: int, tmp_path: Path) -> None:
    """Shuffles partitions and rows, with streams far apart and in bursts: no row is late."""
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
            # R itself may send more rows at 200; nothing can precede those at 100.
            assert client.latest("large")["end"] == min(found, 2), (run, promise, held)


def test_patterns_alone_need_no_device(tmp_path: Path) -> None:
    """They may also have parameters, which the manifest carries; one stream does not wait for the
    other."""
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
    assert counts[0] != counts[1]  # the window of counts differs, so it began anew


def test_a_swap_keeps_windows_and_offsets(tmp_path: Path) -> None:
    """Swaps queries between epochs, also across a restart. From its first epoch on, each query
    finds what a run of all of them finds, including results that reach back into the windows."""
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
        # By now everything up to the common watermark of both streams is processed.
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
    """It is refused before it gets into the journal, from where it would end every session."""
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
