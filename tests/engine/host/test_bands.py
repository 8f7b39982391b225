"""The bounds of a search by value include every row that the conditions allow, and few others."""

from __future__ import annotations

import operator
import random

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import BIGINT, DOUBLE, Type
from seustream.compiler.pipeline import compile_text
from seustream.engine.host.bands import Band, band_of
from seustream.engine.host.links import JoinLink, searches
from seustream.engine.kernels import native
from seustream.engine.stream.numbers import numbers
from seustream.engine.stream.schema import arrow_type

COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
EXTREMES = [-(2**63), -(2**63) + 1, 2**63 - 1, 2**63 - 2]
TYPES = {"bigint": (BIGINT, np.int64), "double precision": (DOUBLE, np.float64)}


def links_of(where: str, kind: str) -> tuple[JoinLink, ...]:
    """Returns the links by which a row of R finds rows of S."""
    text = f"CREATE STREAM R (a {kind}, b {kind}); CREATE STREAM S (y {kind}, z {kind});"
    c = compile_text(f"{text} SELECT a FROM R, S WHERE {where} WINDOW RANGE 9;")
    (search,) = searches(x.conjuncts(c.program.queries[0].where), 0, 2)
    return search.links


def band(where: str, kind: str, values: np.ndarray) -> Band | None:
    """Returns the band of the conditions, all of which compare with values of R."""
    _, dtype = TYPES[kind]
    mine = numbers(pa.array(values.astype(dtype)), native.Codes())
    return band_of([(link, mine) for link in links_of(where, kind)])


def as_number(value: float, of: Type) -> int:
    cells = pa.array([value], arrow_type(of))
    return int(numbers(cells, native.Codes())[0][0])


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("seed", range(4))
def test_every_value_that_fits_is_within_the_bounds(seed: int, kind: str) -> None:
    """Covers sums that are rounded, as doubles, and sums with limits, as integers."""
    print(f"seed {seed}")
    chance, (of, dtype) = random.Random(seed), TYPES[kind]
    for _ in range(25):
        ops = [chance.choice(list(COMPARE)) for _ in range(chance.randint(1, 2))]
        amounts = chance.sample([0, 1, 7, -3, 10**6], len(ops))
        factor = chance.choice([1, 0.1, 1e-9])
        if of == DOUBLE:
            amounts = [amount * factor for amount in amounts]
        where = " AND ".join(
            f"S.y + {amount:.12f} {op} R.a" if of == DOUBLE else f"S.y + {amount} {op} R.a"
            for op, amount in zip(ops, amounts, strict=True)
        )
        shifts = [float(f"{amount:.12f}") if of == DOUBLE else amount for amount in amounts]
        probes = [chance.randint(-9, 9) * chance.choice([1, 10**5]) for _ in range(6)]
        if of == BIGINT:
            probes += EXTREMES
        else:
            probes += [chance.uniform(-9, 9) for _ in range(6)]
        found = band(where, kind, np.array(probes, dtype))
        assert found is not None
        assert found.closed == (len({op[0] for op in ops}) == 2)
        for n, probe in enumerate(probes):
            near = [probe - shift + d for shift in shifts for d in (-1, 0, 1)]
            near += [chance.randint(-20, 20)] + ([probe] if of == DOUBLE else EXTREMES)
            for y in near:
                if of == BIGINT and not -(2**63) <= y < 2**63:
                    continue
                fits = all(
                    COMPARE[op](y + shift, probe) for op, shift in zip(ops, shifts, strict=True)
                )
                inside = found.least[n] <= as_number(y, of) <= found.greatest[n]
                assert inside or not fits, (where, y, probe)
                if of == BIGINT and abs(probe) < 10**9:
                    assert not (inside and not fits) or any(op in "<>" for op in ops), (where, y)


def test_the_value_with_most_bounds_is_searched_by() -> None:
    values = np.array([5, 6])
    two = band("S.z < R.a AND S.y >= R.a AND S.y <= R.b", "bigint", values)
    assert two is not None
    assert (two.closed, x.show(two.key[0])) == (True, "S.y")
    one = band("S.z < R.a", "bigint", values)
    assert one is not None
    assert (one.closed, one.greatest.tolist()) == (False, [5, 6])
    assert one.least.tolist() == [-(2**63)] * 2
    assert band("S.y = R.a AND S.z <> R.b", "bigint", values) is None


def test_a_probe_without_a_value_is_flagged() -> None:
    (link,) = links_of("S.y < R.a", "bigint")
    flags = np.array([1, 0], np.uint8)
    found = band_of([(link, (np.array([1, 2]), flags)), (link, (np.array([3, 1]), None))])
    assert found is not None
    assert found.flags is not None
    assert found.flags.tolist() == [1, 0]
    assert found.greatest.tolist() == [1, 1]
