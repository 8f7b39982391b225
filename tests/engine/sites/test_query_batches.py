"""Batches run again, from the start or the middle, after any crash: nothing is missing, nothing
comes twice."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from seustream.engine.sites.errors import SitesError
from seustream.engine.sites.model import BlockRows, EquiJoin
from seustream.engine.sites.query import BlockNumbers, blocks_of_batch
from tests.engine.sites.oracle import answer
from tests.engine.sites.running import feed, found, network

WINDOWS = [40, 25, 60]
JOIN = EquiJoin.on_one_key(WINDOWS)


def batches(seed: int) -> list[dict[int, pa.Table]]:
    chance = np.random.default_rng(seed)
    made = []
    for batch in range(4):
        ts = [np.sort(chance.integers(batch * 30, batch * 30 + 30, 12)) for _ in range(3)]
        made.append(
            {
                k: pa.table({"ts": ts[k], "v": pa.array(chance.integers(0, 4, 12))})
                for k in range(3)
                if chance.random() < 0.9
            }
        )
    return made


@pytest.mark.parametrize("seed", range(5))
def test_statement_42_a_feeder_that_starts_again(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    net = network(JOIN, seed)
    path = tmp_path / "numbers"
    given: list[BlockRows] = []
    for batch, tables in enumerate(batches(seed)):
        # Part of the batch goes out, the feeder dies, and runs the batch again from its file.
        blocks = blocks_of_batch(JOIN, BlockNumbers(path), batch, tables, unit=10)
        feed(net, blocks[: chance.randint(0, len(blocks))])
        again = blocks_of_batch(JOIN, BlockNumbers(path), batch, tables, unit=10)
        assert again == blocks
        feed(net, again)
        given += blocks
    assert found(net) == answer(WINDOWS, given)
    assert found(net)


def test_blocks_close_at_the_end_of_their_unit(tmp_path: Path) -> None:
    numbers = BlockNumbers(tmp_path / "n")
    tables = {
        1: pa.table({"ts": [0, 1, 10, 11], "v": [1, 2, 3, 4]}),
        0: pa.table({"ts": [9], "v": [5]}),
    }
    blocks = blocks_of_batch(JOIN, numbers, 0, tables, unit=10)
    assert [(b.stream, b.tau, b.no, [r.t for r in b.rows]) for b in blocks] == [
        (1, 0, 0, [0]),
        (0, 10, 0, [9]),
        (1, 10, 1, [1, 10]),
        (1, 20, 2, [11]),
    ]
    with pytest.raises(ValueError, match="unit = 0"):
        blocks_of_batch(JOIN, numbers, 0, tables, unit=0)


def test_a_torn_line_was_never_used(tmp_path: Path) -> None:
    path = tmp_path / "n"
    assert BlockNumbers(path).of(0, [(0, 10), (0, 20)]) == [0, 1]
    whole = path.read_bytes()
    path.write_bytes(whole + b"[1, 0, 3")
    numbers = BlockNumbers(path)
    assert path.read_bytes() == whole
    assert numbers.of(1, [(0, 30), (1, 30)]) == [2, 0]
    assert BlockNumbers(path).of(0, [(0, 20)]) == [1]


@pytest.mark.parametrize("line", ["[0, 0, 10, 5]", "nonsense", "{}", "[1]"])
def test_a_damaged_file_is_refused(line: str, tmp_path: Path) -> None:
    path = tmp_path / "n"
    path.write_text(f"[0, 0, 10, 0]\n{line}\n")
    with pytest.raises(SitesError, match=":2: not the next block number"):
        BlockNumbers(path)
