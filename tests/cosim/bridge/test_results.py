"""Tests results by offset, against a plain list."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.results import ResultLog

SCHEMA = pa.schema([("x", pa.int64())])


def rows(start: int, count: int) -> pa.Table:
    return pa.table({"x": pa.array(range(start, start + count), pa.int64())})


@pytest.mark.parametrize("seed", range(20))
def test_ranges_are_those_of_a_list(seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    log, end, readers = ResultLog("q", SCHEMA), 0, {"a": 0, "b": 0}
    log.trim("a", 0)
    log.trim("b", 0)
    for _ in range(200):
        if chance.random() < 0.5:
            count = chance.choice((0, 1, 5, 3000, 9000))
            log.append(rows(end, count))
            end += count
        elif chance.random() < 0.5:
            reader = chance.choice("ab")
            readers[reader] = max(readers[reader], chance.randint(0, end))
            log.trim(reader, readers[reader])
        first = min(readers.values())
        assert log.bytes == log.rows.nbytes
        assert (log.first, log.end, len(log)) == (first, end, end - first)
        start = chance.randint(first, end)
        stop = chance.randint(start, end)
        assert log.read(start, stop).column("x").to_pylist() == list(range(start, stop))


def test_what_is_gone_or_not_there_is_an_error() -> None:
    log = ResultLog("q", SCHEMA)
    log.append(rows(0, 10))
    log.trim("", 4)
    for start, end, kind in ((3, 5, "trimmed"), (5, 11, "gap"), (7, 6, "gap")):
        with pytest.raises(BridgeError) as caught:
            log.read(start, end)
        assert caught.value.kind == kind
    with pytest.raises(BridgeError, match="cannot trim"):
        log.trim("", 11)


def test_results_nobody_keeps_are_counted() -> None:
    log = ResultLog("q", SCHEMA, kept=False)
    log.append(rows(0, 10))
    assert (len(log), log.end) == (0, 10)
    with pytest.raises(BridgeError, match="are gone"):
        log.read(0, 1)


def test_results_a_reader_has_are_not_kept_once_more() -> None:
    """Such a log exists after a restart, when the readers are known before the results."""
    log = ResultLog("q", SCHEMA, readers={"a": 7})
    for start in range(0, 10, 5):
        log.append(rows(start, 5))
    assert (log.first, log.end) == (7, 10)
    assert log.read(7, 10).column("x").to_pylist() == [7, 8, 9]
