"""Tests placement, a seed at a time: what a seed returns, and the clock with the least slack."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from seustream.hdl.boards.flow import placement
from seustream.hdl.boards.flow.placement import Placed, SeedFailed, place, read
from seustream.hdl.boards.flow.tools import FOLDER, BitstreamFailed
from tests.hdl.boards.flow.reports import PATH, REPORT, ULX3S


def test_the_clock_with_least_to_spare_counts() -> None:
    placed = read(REPORT, 7, 50.0)
    assert (placed.seed, placed.clock, placed.meets) == (7, 210.0, True)
    assert placed.path == PATH
    slow = {**REPORT, "fmax": {**REPORT["fmax"], "x": {"achieved": 20.0, "constraint": 25.0}}}
    assert read(slow, 7, 50.0).clock == 40.0
    edges = [dataclasses.replace(placed, wanted=wanted).meets for wanted in (209.9, 210.0, 210.1)]
    assert edges == [True, True, False]
    with pytest.raises(BitstreamFailed, match="no clock"):
        read({**REPORT, "fmax": {}}, 7, 50.0)


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        ("echo 'ERROR: Unable to find legal placement for all cells, it is full.'; exit 1", "full"),
        ("echo 'ERROR: Unable to place cell x, no BELs remaining'; exit 1", "no BELs remaining"),
        ("echo 'Info: legalising'; exec sleep 60", "printed nothing"),
        ("echo 'ERROR: cannot read top.json'; exit 1", None),
    ],
)
def test_another_seed_may_do_unless_it_is_something_else(
    does: str, reason: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "nextpnr-ecp5"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.setattr(placement, "_PATIENCE", 1)
    kind = BitstreamFailed if reason is None else SeedFailed
    with pytest.raises(kind, match=r"^seed 4: ") as caught:
        place(ULX3S.part, [], 50.0, 4, tmp_path, lambda what: None)
    assert type(caught.value) is kind
    assert (reason or "cannot read top.json") in str(caught.value)


def test_a_seed_is_what_it_was(tmp_path: Path) -> None:
    """A placed seed is kept as JSON and read again."""
    placed = read(REPORT, 3, 50.0)
    data = json.loads(json.dumps(dataclasses.asdict(placed)))
    for name in ("used", "clocks"):
        data[name] = {of: tuple(pair) for of, pair in data[name].items()}
    assert placed.clocks == {"clk": (210.0, 50.0), "gate.source": (400.0, 50.0)}
    assert Placed(**data) == placed
