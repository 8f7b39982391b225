"""Measures the quickest case again: `bench/results/device.json` must be of the present sources."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench import device as bench
from seustream.compiler.pipeline import Options, compile_text
from seustream.compiler.wjasip.image import decode
from seustream.cosim.verilated.build import missing
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.hashing import bucket_of, seed_of

RESULTS = Path(bench.__file__).parent / "results" / "device.json"


@pytest.mark.skipif(bool(missing()), reason="nox -s tests installs what it needs")
def test_the_figures_are_of_these_sources() -> None:
    (table,) = (
        table
        for table in json.loads(RESULTS.read_text())["more"]
        if table["title"] == bench.BY_CONFIGURATION
    )
    shown = {name: cycles for name, _, cycles in table["rows"]}
    tiny = CONFIGURATIONS["tiny"]
    assert shown[tiny.name] == f"{bench.on(tiny).cycles:.2f}", "seustream bench device"
    assert set(shown) == {config.name for config in bench.BOARDS}


def test_workloads_are_named_once_and_drawn_with_a_seed() -> None:
    names = [workload.name for workload in bench.workloads()]
    assert len(names) == len(set(names))
    for first, again in zip(bench.workloads(), bench.workloads(), strict=True):
        for start, n in ((0, first.before), (first.before, 100)):
            some, same = first.tuples(start, n), again.tuples(start, n)
            assert np.array_equal(some.attributes, same.attributes)
            assert np.all(np.diff(some.timestamp) >= 0)


def test_keys_in_one_bucket_are_different_and_in_one_bucket() -> None:
    text = bench.STREAMS + bench.EQUAL.format(100)
    keys = bench._in_one_bucket(100, text)
    assert len(set(keys.tolist())) == 100
    tables = decode(compile_text(text, options=Options(bench.CONFIG)).image, bench.CONFIG)
    seed = seed_of(tables, bench.CONFIG)
    assert len(set(bucket_of(keys.astype(np.int64), seed, 11).tolist())) == 1


def test_the_streams_of_a_workload() -> None:
    keys = np.arange(10, 14, dtype=np.uint32)
    both = bench.in_turn(keys)(0, 12)
    assert both.stream.tolist() == [0, 1] * 6
    assert both.sequence.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert both.attributes[:, 0].tolist() == [10, 10, 11, 11, 12, 12, 13, 13, 10, 10, 11, 11]
    alone = bench.in_turn(keys, [0])(12, 3)
    assert (alone.stream.tolist(), alone.sequence.tolist()) == ([0] * 3, [6, 7, 8])
