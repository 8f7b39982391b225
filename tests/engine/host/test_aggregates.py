"""Aggregates of members that come and leave, compared with the registry's states rebuilt at each
point.

The registry's states compute in Python's integers and fractions, so a sum that is rounded twice, or
keeps a trace of departed rows, differs from them. Also finds a member that is not counted or never
leaves, a best row that is not the first of equals, and a cut between two calls that changes the
result.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from seustream.compiler.language import expressions as x
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.faults import Faults
from seustream.compiler.language.registry import FAULT
from seustream.compiler.language.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTERVAL,
    NULL,
    VARCHAR,
    Type,
    decimal,
)
from seustream.engine.host.aggregates import Aggregates, Turns, spanned
from seustream.engine.stream.schema import arrow_type

Ints = npt.NDArray[np.int64]
NOTHING = np.empty(0, np.int64)
Values = list[Any]


def doubles(chance: np.random.Generator, count: int) -> Values:
    kind = int(chance.integers(4))
    if kind == 0:
        found = chance.integers(-3, 4, count) / 4
    elif kind == 1:
        found = np.ldexp(chance.random(count) - 0.5, chance.integers(-1070, 1020, count))
    elif kind == 2:
        found = chance.choice([5e-324, -5e-324, 1e308, -1e308, 1.0, -0.0, 0.0, 2.0**-1022], count)
    else:
        found = chance.choice([0.1, 0.2, -0.3, 1e16, np.inf, -np.inf], count)
    return [float(one) for one in found]


def whole(chance: np.random.Generator, count: int) -> Values:
    most = int(chance.choice([3, 10**6, 2**63 - 1]))
    return [int(one) for one in chance.integers(-most, most, count)]


def decimals(digits: int) -> Callable[[np.random.Generator, int], Values]:
    def made(chance: np.random.Generator, count: int) -> Values:
        most = 10 ** int(chance.choice([2, digits]))
        numbers = [int(chance.integers(0, 2**62)) ** 3 % most for _ in range(count)]
        signs = chance.choice([-1, 1], count)
        return [Decimal(int(s) * n).scaleb(-2) for s, n in zip(signs, numbers, strict=True)]

    return made


def texts(chance: np.random.Generator, count: int) -> Values:
    return [chance.choice(["", "a", "ab", "é", "日本", "b"]).item() for _ in range(count)]


def spans(chance: np.random.Generator, count: int) -> Values:
    return [
        datetime.timedelta(milliseconds=int(n)) for n in chance.integers(-(10**9), 10**9, count)
    ]


def conditions(chance: np.random.Generator, count: int) -> Values:
    return [bool(one) for one in chance.integers(0, 2, count)]


COLUMNS: dict[Type, Callable[[np.random.Generator, int], Values]] = {
    BIGINT: whole,
    DOUBLE: doubles,
    decimal(9, 2): decimals(9),
    decimal(38, 2): decimals(38),
    VARCHAR: texts,
    INTERVAL: spans,
    BOOLEAN: conditions,
}
NUMBERS = (BIGINT, DOUBLE, decimal(9, 2), decimal(38, 2))
CASES = [
    *((name, (of,)) for name in ("sum", "avg") for of in (*NUMBERS, INTERVAL)),
    *((name, (of,)) for name in ("min", "max", "first", "last") for of in COLUMNS),
    *((name, (of, DOUBLE)) for name in ("min_by", "max_by") for of in (BIGINT, VARCHAR)),
    *((name, (DOUBLE,)) for name in ("var_samp", "var_pop", "stddev_samp", "stddev_pop", "median")),
    *((name, (DOUBLE, DOUBLE)) for name in ("covar_samp", "covar_pop", "corr")),
    *((name, (BOOLEAN,)) for name in ("bool_and", "bool_or")),
    *((name, (BIGINT,)) for name in ("bit_and", "bit_or")),
    ("min_by", (DOUBLE, VARCHAR)),
    ("count", ()),
    ("count", (DOUBLE,)),
    ("string_agg", (VARCHAR,)),
    ("array_agg", (BIGINT,)),
    ("mode", (BIGINT,)),
    ("approx_count_distinct", (VARCHAR,)),
]


def aggregate(name: str, of: tuple[Type, ...], distinct: bool) -> x.AggregateCall:
    entry = AGGREGATES[name]
    result = entry.result_type if isinstance(entry.result_type, Type) else entry.result_type(of)
    assert result is not None
    return x.AggregateCall(name, tuple(x.Literal(None, NULL) for _ in of), of, result, distinct)


def by_definition(e: x.AggregateCall, rows: list[tuple[Any, ...]]) -> Any:
    """Returns the aggregate of rows in their order."""
    entry = AGGREGATES[e.function]
    state = entry.init()
    rows = [row for row in rows if None not in row]
    best = entry.name in ("first", "last", "min_by", "max_by")
    for row in dict.fromkeys(rows) if e.distinct and not best else rows:
        state = entry.insert(state, *row)
    result = entry.result(e.type, state) if entry.typed else entry.result(state)
    return None if result is FAULT else result


def cut(turns: Turns, at: list[int]) -> list[Turns]:
    """Splits the turns at these points."""
    parts, before = [], 0
    for start, stop in zip([0, *at], [*at, len(turns.at)], strict=True):
        end = int(turns.until[stop - 1]) if stop > start else before
        until = turns.until[start:stop] - before
        parts.append(Turns(turns.events[before:end], until, turns.at[start:stop]))
        before = end
    return parts


def same(found: Any, wanted: Any) -> bool:
    """Compares value and type; infinities of either sign differ, zeros do not."""
    return type(found) is type(wanted) and bool(found == wanted)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize(("name", "of"), CASES, ids=lambda v: getattr(v, "name", None))
def test_as_the_registry_has_it(name: str, of: tuple[Type, ...], ordered: bool) -> None:
    for seed in range(8):
        chance = np.random.default_rng(seed)
        e = aggregate(name, of, distinct=seed % 4 == 3)
        count, points, groups = 60, 40, int(chance.integers(1, 4))
        columns = [COLUMNS[one](chance, count) for one in of]
        for column in columns:
            for place in np.flatnonzero(chance.random(count) < 0.1):
                column[place] = None
        group = chance.integers(0, groups, count)
        lo = np.sort(chance.integers(0, points, count))
        hi = lo + chance.integers(0, 12, count)
        if ordered:
            hi = np.maximum.accumulate(hi)
        hi = np.minimum(hi, points)
        at = chance.integers(0, groups, points)
        numbers = [tuple(range(len(of)))]
        aggregates = Aggregates([e], numbers, of, ordered)
        aggregates.add(
            [pa.array(c, arrow_type(one)) for c, one in zip(columns, of, strict=True)], group
        )
        turns = spanned(lo, hi, at)
        wanted = [
            by_definition(
                e,
                [
                    tuple(column[m] for column in columns)
                    for m in range(count)
                    if group[m] == at[p] and lo[m] <= p < hi[m]
                ],
            )
            for p in range(points)
        ]
        found: list[Any] = []
        for part in cut(turns, np.sort(chance.integers(0, points, 3)).tolist()):
            found += aggregates.at(part, Faults())[0].to_pylist()
        wrong = [p for p in range(points) if not same(found[p], wanted[p])]
        assert not wrong, (seed, wrong[0], found[wrong[0]], wanted[wrong[0]])


def test_a_sum_that_does_not_fit_is_a_fault_until_the_rows_have_left() -> None:
    e = aggregate("sum", (BIGINT,), False)
    aggregates = Aggregates([e], [(0,)], [BIGINT], ordered=True)
    aggregates.add([pa.array([2**63 - 1, 1, -5])], np.zeros(3, np.int64))
    faults = Faults()
    turns = spanned(np.array([0, 1, 2]), np.array([2, 3, 3]), np.zeros(3, np.int64))
    (found,) = aggregates.at(turns, faults)
    assert found.to_pylist() == [2**63 - 1, None, -4]
    assert faults.total == 1


def test_of_sums_without_rounding_nothing_stays_behind() -> None:
    e = aggregate("sum", (DOUBLE,), False)
    aggregates = Aggregates([e], [(0,)], [DOUBLE], ordered=True)
    aggregates.add([pa.array([1e300, 1e-300, 1.0])], np.zeros(3, np.int64))
    turns = spanned(np.array([0, 0, 1]), np.array([1, 3, 3]), np.zeros(3, np.int64))
    (found,) = aggregates.at(turns, Faults())
    assert found.to_pylist() == [1e300, 1.0, 1.0]


def test_members_of_a_group_that_ends_are_not_taken_out_again() -> None:
    """Group 0 is asked twice before all its members leave, and starts over; group 1 is never asked while
    it has members, and group 2 keeps one."""
    e = aggregate("median", (DOUBLE,), False)
    aggregates = Aggregates([e], [(0,)], [DOUBLE], ordered=True)
    group = np.array([0, 0, 0, 1, 1, 2, 2, 0])
    aggregates.add([pa.array([3.0, 1.0, None, 7.0, 8.0, 5.0, 6.0, 9.0])], group)
    lo = np.array([0, 1, 1, 1, 1, 1, 1, 4])
    hi = np.array([2, 2, 2, 3, 3, 3, 4, 5])
    (found,) = aggregates.at(spanned(lo, hi, np.array([0, 0, 2, 2, 0])), Faults())
    assert found.to_pylist() == [3.0, 2.0, 5.5, 6.0, 9.0]
    events, until, at, over = (np.frombuffer(one, np.int64) for one in aggregates.kernel.turns(0))
    assert events.tolist() == [0, 1, 5, 6, ~1, ~4, ~5, ~6, 7, ~7]
    assert over.tolist() == [0, 0, 0, 0, 1, 1, 0, 1, 0, 1]
    assert until.tolist() == [1, 4, 5, 7, 9]
    assert at.tolist() == [0, 0, 2, 2, 0]


@pytest.mark.parametrize("seed", range(20))
def test_moments_are_the_sums_of_the_registry(seed: int) -> None:
    """Mantissas of all lengths, exponents from the least to the greatest: every limb of a product is met,
    and nothing is left once all have gone."""
    print(f"seed {seed}")
    chance, count = np.random.default_rng(seed), 60
    x_, y_ = (
        np.ldexp(
            chance.integers(-(2**53), 2**53, count) >> chance.integers(0, 54, count),
            chance.integers(-1074, 971, count) if seed % 2 else chance.integers(-60, 0, count),
        )
        for _ in "xy"
    )
    for name, columns in (("var_pop", [x_]), ("corr", [x_, y_])):
        e = aggregate(name, (DOUBLE,) * len(columns), False)
        aggregates = Aggregates([e], [tuple(range(len(columns)))], e.takes, ordered=True)
        aggregates.add([pa.array(one) for one in columns], np.zeros(count, np.int64))
        lo = np.arange(count)
        aggregates.at(spanned(lo, lo + 9, np.zeros(count + 9, np.int64)), Faults())
        (states,) = aggregates._states.values()
        entry = AGGREGATES[name]
        for point, found in enumerate(states._at()):
            state = entry.init()
            for row in list(zip(*columns, strict=True))[max(point - 8, 0) : point + 1]:
                state = entry.insert(state, *map(float, row))
            assert found == state, point
        assert found == entry.init()


@pytest.mark.parametrize("seed", range(30))
def test_states_of_groups_are_kept_and_added_up(seed: int) -> None:
    """Where no member leaves: whatever members are forgotten, whichever states are taken elsewhere, and whichever groups
    are added up, the aggregates are those of all rows."""
    chance = np.random.default_rng(seed)
    count, groups = int(chance.integers(1, 300)), 6
    asked = [
        *(
            aggregate(name, (BIGINT,), False)
            for name in ("sum", "avg", "bit_and", "bit_or", "min", "last")
        ),
        *(aggregate(name, (DOUBLE,), False) for name in ("sum", "var_pop", "max", "first")),
        aggregate("corr", (DOUBLE, DOUBLE), False),
        *(aggregate(name, (BIGINT,), True) for name in ("count", "sum")),
        aggregate("var_pop", (DOUBLE,), True),
    ]
    read = [(0,)] * 6 + [(1,)] * 4 + [(1, 2)] + [(0,)] * 2 + [(2,)]
    values = [
        pa.array(
            chance.choice([-(2**62), -3, 0, 1, 2**62, 7], count), mask=chance.random(count) < 0.2
        ),
        pa.array(np.ldexp(chance.random(count) - 0.5, chance.integers(-1000, 1000, count))),
        pa.array(
            chance.choice([1.5, 2.0, -1e300, np.inf, 0.0], count, p=[0.3, 0.3, 0.19, 0.01, 0.2])
        ),
    ]
    group = chance.integers(0, groups, count)

    def begun() -> Aggregates:
        return Aggregates(asked, read, [BIGINT, DOUBLE, DOUBLE], ordered=True)

    def entered(of: Aggregates, places: Ints, groups: Ints) -> None:
        of.enter([one.take(pa.array(places)) for one in values], groups, NOTHING, NOTHING)

    def at(of: Aggregates, some: Ints) -> list[tuple[str, list[bool]]]:
        none = np.zeros(len(some), np.bool_)
        return [
            (repr(each.values.to_pylist()), (none if each.lost is None else each.lost).tolist())
            for each in of.now(some)
        ]

    own, every, half = begun(), np.arange(count), count // 2
    assert own.can_fold
    entered(own, every[:half], group[:half])
    own.fold()
    resumed = begun()
    places = np.arange(len(own))
    kept = [own.values(number, places) for number in range(3)]
    resumed.enter(kept, own.groups(places), NOTHING, NOTHING)
    resumed.resume(np.arange(groups), own.states(np.arange(groups)))
    whole = begun()
    entered(whole, every, group)
    for one in (own, resumed):
        entered(one, every[half:], group[half:])
        assert at(one, np.arange(groups)) == at(whole, np.arange(groups))
        one.fold()
        assert at(one, np.arange(groups)) == at(whole, np.arange(groups))
    # Group n of `to` has the rows of the groups in `sources[n]`.
    sources = [
        chance.choice(groups, int(chance.integers(0, groups)), replace=False) for _ in range(4)
    ]
    added, wanted = begun(), begun()
    members, of_members = np.arange(len(own)), own.groups(np.arange(len(own)))
    for number, some in enumerate(sources):
        mine = members[np.isin(of_members, some)]
        added.enter(
            [own.values(k, mine) for k in range(3)], np.full(len(mine), number), NOTHING, NOTHING
        )
        entered(wanted, rows := every[np.isin(group, some)], np.full(len(rows), number))
    target = np.repeat(np.arange(4), [len(some) for some in sources])
    added.kernel.pour(own.kernel, np.concatenate(sources).astype(np.int64), target)
    assert at(added, np.arange(4)) == at(wanted, np.arange(4))


def test_states_are_added_to_those_of_the_same_aggregates_only() -> None:
    one, other = (
        Aggregates([aggregate(name, (BIGINT,), False)], [(0,)], [BIGINT], ordered=True)
        for name in ("sum", "min")
    )
    some = np.zeros(1, np.int64)
    with pytest.raises(RuntimeError, match="other parts"):
        one.kernel.pour(other.kernel, some, some)
    with pytest.raises(RuntimeError, match="other parts"):
        one.kernel.pour(one.kernel, some, some)
    with pytest.raises(RuntimeError, match="below 0"):
        one.kernel.pour(begun_alike(one).kernel, some - 1, some)


def begun_alike(one: Aggregates) -> Aggregates:
    return Aggregates(one.aggregates, [(0,)], [BIGINT], ordered=True)


@pytest.mark.parametrize("name", ["bit_and", "bit_or"])
def test_bits_are_counted_in_the_kernel(name: str) -> None:
    """The highest bit is the sign; a group without rows has no bits."""
    e = aggregate(name, (BIGINT,), False)
    aggregates = Aggregates([e], [(0,)], [BIGINT], ordered=True)
    assert not aggregates._states
    aggregates.add([pa.array([-(2**63), -1, 2**62 + 5, 0])], np.zeros(4, np.int64))
    turns = spanned(np.array([0, 1, 2, 5]), np.array([2, 3, 4, 6]), np.zeros(6, np.int64))
    (found,) = aggregates.at(turns, Faults())
    wanted = {
        "bit_and": [-(2**63), -(2**63), 2**62 + 5, 2**62 + 5, None, 0],
        "bit_or": [-(2**63), -1, -1, 2**62 + 5, None, 0],
    }
    assert found.to_pylist() == wanted[name]
