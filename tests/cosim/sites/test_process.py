"""Tests a site's process: what it remembers of blocks, and that no code is sent to it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from seustream.cosim.sites import process
from seustream.cosim.sites.process import Process, Setup
from seustream.engine.sites.codec import Malformed, encode
from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.messages import Delta, Done
from seustream.engine.sites.model import EquiJoin
from tests.cosim.sites.layouts import CENTRE, QUERY_NODE, layout


def test_a_process_remembers_the_latest_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "REMEMBERED", 3)
    whole = layout([1, 1, 1])
    part = Process(Setup(whole, {node: node + 1 for node in range(5)}, (None,)), CENTRE + 1)
    for no in range(5):
        delta = Delta(whole.first_epoch, 0, no, no, {(1,): 2}, 0, 0)
        part.receive([(0, CENTRE, delta)])
        part._over(0, Done((0, no), no, 4.0))
    assert [block.block for block in part.decisions.values()] == [2, 3, 4]
    assert list(part.spent) == [(0, (0, no)) for no in (2, 3, 4)]


class Anything:
    streams = (0, 1)

    def among(self, payloads: Sequence[tuple[object, ...]]) -> list[bool]:
        return [True] * len(payloads)


def test_code_is_not_sent() -> None:
    join = EquiJoin.on_one_key([1, 1, 1])
    withed = EquiJoin(join.streams, join.equal, residuals=(Anything(),))
    setup = Setup(SiteLayout(withed, layout([1, 1, 1]).costs, QUERY_NODE), {}, (None,))
    with pytest.raises(Malformed, match="Anything does not cross"):
        encode(setup.plain())
