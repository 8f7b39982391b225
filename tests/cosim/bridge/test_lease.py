"""Tests the bare device over the wire; the contract suite shows that it is a device (`remote`)."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.lease import (
    _describe,
    _error,
    batch_from_arrow,
    batch_to_arrow,
    results_from_arrow,
    results_to_arrow,
)
from seustream.cosim.golden import GoldenDevice
from seustream.hdl.device import Batch, Groups, HandedOver, LoadRefused, Results, UnitCycles
from tests.cosim.bridge.serving import TINY, bridge, compiled


def test_columns_come_back_as_they_were() -> None:
    chance = np.random.default_rng(1)
    n = 50
    batch = Batch(
        chance.integers(0, 4, n).astype(np.uint8),
        chance.integers(-(2**62), 2**62, n),
        np.arange(n),
        chance.random(n) < 0.5,
        chance.integers(0, 2**32, (n, 4)).astype(np.uint32),
    )
    found = batch_from_arrow(batch_to_arrow(batch))
    for name in ("stream", "timestamp", "sequence", "admit", "attributes"):
        assert np.array_equal(getattr(found, name), getattr(batch, name))
    handed = HandedOver(*(chance.integers(0, 9, 7) for _ in range(4)))
    maps = chance.integers(1, 2**64, n, np.uint64)
    times = [chance.integers(0, 9, n) for _ in range(2)]
    groups = Groups(*(chance.integers(-9, 1 << 62, 5) for _ in range(8)))
    results = Results(maps, *times, chance.integers(-1, 9, (n, 4)), handed, groups)
    back = results_from_arrow(results_to_arrow(results))
    for name in ("queries", "newest", "oldest", "sequences"):
        assert np.array_equal(getattr(back, name), getattr(results, name))
    for each in dataclasses.fields(Groups):
        assert np.array_equal(getattr(back.grouped, each.name), getattr(groups, each.name))
    for name in ("stream", "sequence", "taker", "taken_by"):
        assert np.array_equal(getattr(back.handed_over, name), getattr(handed, name))


@pytest.mark.parametrize("fault", ["columns", "null"])
def test_a_batch_of_something_else_is_refused(fault: str) -> None:
    empty = Batch(
        *(np.empty(0, t) for t in (np.uint8, int, int, bool)), np.empty((0, 4), np.uint32)
    )
    rows = batch_to_arrow(empty)
    if fault == "columns":
        rows = rows.drop_columns(["admit"])
    else:
        columns = [pa.nulls(1, field.type) for field in rows.schema]
        rows = pa.RecordBatch.from_arrays(columns, schema=rows.schema)
    with pytest.raises(BridgeError) as caught:
        batch_from_arrow(rows)
    assert caught.value.kind == "schema"


@pytest.mark.parametrize(
    "refusal",
    [
        LoadRefused("too long"),
        LoadRefused("too long", 2, "program", 0),
        LoadRefused("too long", 1, "combinations", 3),
        LoadRefused("too long", table="windows"),
    ],
)
def test_a_refusal_has_its_place_at_the_client(refusal: LoadRefused) -> None:
    again = _error(json.loads(json.dumps(_describe(refusal))))
    assert str(again) == str(refusal)
    assert vars(again) == vars(refusal)


def test_a_bridge_of_before_gives_areas_and_addresses_and_so_does_this_one() -> None:
    before = {"is": "load", "reason": "too long", "area": 2, "address": 7}
    program = LoadRefused("too long", 2, "program", 7)
    assert vars(_error(before)) == vars(program)
    assert before.items() <= _describe(program).items()
    nowhere = _error({"is": "load", "reason": "too long", "area": None, "address": None})
    assert vars(nowhere) == vars(LoadRefused("too long"))
    assert _describe(LoadRefused("too long", 2, "factors", 7))["address"] is None


class Counting(GoldenDevice):
    def units(self) -> dict[str, UnitCycles]:
        return {"door": UnitCycles(1, 2, 1 << 40), "scanner 0": UnitCycles(0, 0, 0)}


def test_units_come_from_a_device_that_counts_them(tmp_path: Path) -> None:
    for device in (Counting(TINY), GoldenDevice(TINY)):
        with (
            bridge(tmp_path, device) as (_, url),
            BridgeClient(url) as client,
            client.device() as remote,
        ):
            assert remote.units() == getattr(device, "units", dict)()


def test_one_holds_the_device(tmp_path: Path) -> None:
    with bridge(tmp_path) as (_, url), BridgeClient(url, patience=0) as client:
        with client.device() as device:
            assert device.config == TINY
            with pytest.raises(BridgeError, match="another client holds"):
                client.device()
            with pytest.raises(BridgeError, match="another client holds"):
                client.load(compiled())
            device.load(compiled().image)
            assert device.status().loaded
        while client.health()["leased"]:
            pass
        client.load(compiled())
        with pytest.raises(BridgeError, match="serves a query set"):
            client.device()
