"""The generator gives the setting that the specification states for one seed."""

from __future__ import annotations

from tests.engine.sites.lockstep import setting


def test_one_seed() -> None:
    found = setting(3000, 3)
    assert [row[a + 1 :] for a, row in enumerate(found.costs.w[:3])] == [(7, 4, 3), (7, 2), (7,)]
    assert found.costs.centre(found.sources) == 0
    assert [sum(len(unit[i]) for unit in found.keys) for i in range(3)] == [140, 150, 164]
    assert {key for unit in found.keys for block in unit for key in block} == set(range(1, 21))
    assert setting(3000, 3) == found
    assert setting(3001, 3) != found
