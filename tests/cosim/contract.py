"""Helpers that the tests of the contract share: load a device, and compare its results with the
oracle."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from seustream.compiler.wjasip.image import encode
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.device import (
    Device,
    Results,
    Tables,
)
from tests.cosim.oracle import expected
from tests.cosim.queries import (
    UNBOUNDED,
    On,
    Query,
    R,
    Raw,
    Row,
    S,
    Where,
    build,
    rows_of,
    run,
)

NewDevice = Callable[..., Device]

TINY = CONFIGURATIONS["tiny"]
# Probes block each other as often as possible.
CROWDED = dataclasses.replace(TINY, name="crowded", probe_fifo_depth=1, output_fifo_depth=1)
# Clocks of 16 bits and sequence numbers of 8 wrap around soon, too. NARROW has room; SHALLOW has none,
# has three streams, and compares one attribute at a time.
NARROW = dataclasses.replace(
    CROWDED, name="narrow", timestamp_width=16, sequence_width=8, depth=256
)
SHALLOW = dataclasses.replace(NARROW, name="shallow", streams=3, depth=16, lanes=0, indexes=0)
# Quick to build, for tests of what is between a host and a processor.
LINKED = dataclasses.replace(TINY, name="linked", lanes=0, indexes=0)
EQUAL = (On(R, 0, "=", S, 0),)
PAIRS = Query({R: UNBOUNDED, S: UNBOUNDED})
SMALL, LARGE = Where(((0, "<", 3),)), Where(((0, ">=", 3),))
EQUALITY = Query({R: UNBOUNDED, S: UNBOUNDED}, (EQUAL,))


def loaded(new_device: NewDevice, tables: Tables, config: DeviceConfig = TINY) -> Device:
    device = new_device(config)
    device.load(encode(tables, config))
    return device


def agrees(
    new_device: NewDevice,
    queries: Sequence[Query],
    raws: Sequence[Raw],
    groups: tuple[int, ...] = (0, 1, 2),
    config: DeviceConfig = TINY,
) -> None:
    """Asserts that the device gives the results of the oracle, and that there are some."""
    got = rows_of(run(loaded(new_device, build(queries, groups), config), raws))
    want = expected(raws, queries, groups)
    assert want, "a test without results shows nothing"
    assert_same(got, want, queries)


def assert_same(got: list[Row], want: list[Row], queries: Sequence[Query]) -> None:
    assert sorted(set(got)) == sorted(want)
    for number, query in enumerate(queries):
        if len(query.terms) == 1:  # only overlapping terms may repeat a result
            mine = [row for row in got if row[0] == number]
            assert len(mine) == len(set(mine))


def query_rows(results: Results, query: int) -> list[tuple[int, ...]]:
    """Returns the sequence numbers of the results of one query, sorted."""
    return sorted(row[3] for row in rows_of(results) if row[0] == query)
