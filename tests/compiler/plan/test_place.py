"""Placement of queries on devices: as many as fit, those first that save the engine most."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from seustream.compiler.logical.program import Query
from seustream.compiler.pipeline import Options, compile_text
from seustream.compiler.plan.limits import LimitExceeded
from seustream.compiler.plan.place import everything, place, shape_of, worth
from seustream.compiler.plan.statistics import Statistics
from seustream.hdl.config import CONFIGURATIONS

STREAMS = "CREATE STREAM R (a int, b int); CREATE STREAM S (a int, d int);"
CONFIG = replace(CONFIGURATIONS["default"], queries=32)
USUAL = Statistics()


def queries(*texts: str) -> list[Query]:
    body = "".join(
        f"REGISTER QUERY q{n} AS SELECT R.a FROM R, S WHERE {text};" for n, text in enumerate(texts)
    )
    return list(compile_text(STREAMS + body, stop_after="tree").program.queries)


def weight(query: Query) -> int:
    """Weighs a query for a fake limit: the number in its name says how much of a device it
    takes."""
    return int(query.name[1:]) % 5 + 1


def no_more_than(most: int) -> object:
    calls: list[int] = []

    def exceeds(some: Sequence[Query]) -> LimitExceeded | None:
        calls.append(len(some))
        need = sum(map(weight, some))
        return LimitExceeded("weight", need, most) if need > most else None

    return exceeds


def test_what_spares_the_engine_most_is_placed_first() -> None:
    some = queries(
        "R.a = S.a WINDOW ROWS 10", "R.a < S.a WINDOW ROWS 10", "R.a < S.a WINDOW UNBOUNDED",
        "R.a < S.a WINDOW ROWS 1000",
    )  # fmt: skip
    order = sorted(some, key=lambda query: -worth(query, USUAL))
    assert [query.name for query in order] == ["q2", "q3", "q1", "q0"]
    few = Statistics(rows={"r": 5.0, "s": 5.0})
    assert worth(some[2], few) == worth(some[3], few) == 10


@pytest.mark.parametrize("devices", [None, 0, 1, 2])
def test_every_device_is_within_its_limit_and_no_query_is_lost(devices: int | None) -> None:
    chance = random.Random(7)
    texts = [
        f"R.a {chance.choice('<=')} S.a AND R.b > S.d + {n} WINDOW ROWS {n + 1}" for n in range(20)
    ]
    some = queries(*texts)
    found = place(some, no_more_than(9), CONFIG, USUAL, devices)  # type: ignore[arg-type]
    by_name = {query.name: query for query in some}
    placed = [name for group in found.devices for name in group]
    assert sorted([*placed, *found.software]) == sorted(by_name)
    assert all(sum(weight(by_name[name]) for name in group) <= 9 for group in found.devices)
    if devices is not None:
        assert len(found.devices) <= devices
    else:
        assert not found.software, "on as many as it takes"
    assert all(why for why in found.software.values())


def test_what_fits_no_device_says_which_limit() -> None:
    some = queries("R.a = S.a WINDOW ROWS 1", "R.a = S.d WINDOW ROWS 1")
    found = place(some, lambda _: LimitExceeded("terms", 5, 4), CONFIG, USUAL, None)
    assert found.devices == ()
    assert set(found.software) == {"q0", "q1"}
    assert all("5" in why and "4" in why for why in found.software.values())


def test_a_set_is_tried_in_the_order_of_its_text() -> None:
    """Rows of selectors are packed in this order: what fits in the trial fits in the end."""
    c = compile_text(
        """CREATE STREAM S0 (a bigint, b smallint, c smallint); CREATE STREAM S1 (a bigint, b smallint);
        REGISTER QUERY k1 AS SELECT x1.b AS c0 FROM S0 AS x0, S0 AS x1, S1 AS x2
        WHERE x0.c IN (1, -1, 1) AND x1.a = x2.a AND x0.c < x1.b WINDOW ROWS 128;
        REGISTER QUERY k6 AS SELECT x0.c AS g, count(*) AS n FROM S0 AS x0, S0 AS x1
        WHERE x0.c = x1.a AND x0.c = 2 GROUP BY TUMBLE(ts_newest, 70000), x0.c WINDOW RANGE 32767;""",
        options=Options(replace(CONFIGURATIONS["default"], selectors=2, comparisons=4)),
    )
    assert len(c.placement.software) == 1


def test_limits_that_counting_tells_need_no_plan() -> None:
    some = queries(*["R.a = S.a WINDOW ROWS 1"] * 5)
    asked: list[int] = []

    def never(of: Sequence[Query]) -> None:
        asked.append(len(of))

    found = place(some, never, replace(CONFIG, queries=2), USUAL, 1)
    assert [len(group) for group in found.devices] == [2]
    assert max(asked) <= 2
    assert len(found.software) == 3


def test_queries_that_differ_in_constants_have_one_shape() -> None:
    one, other, third = queries(
        "R.a = S.a AND R.b > 3 WINDOW ROWS 1", "R.a = S.a AND R.b > 99 WINDOW ROWS 7",
        "R.a = S.a AND R.b < 3 WINDOW ROWS 1",
    )  # fmt: skip
    assert shape_of(one) == shape_of(other) != shape_of(third)


def test_after_two_of_a_shape_the_others_are_not_tried() -> None:
    some = queries(*[f"R.a = S.a AND R.b > {n} WINDOW ROWS 9" for n in range(30)])
    asked: list[int] = []

    def never_two(of: Sequence[Query]) -> LimitExceeded | None:
        asked.append(len(of))
        return LimitExceeded("terms", len(of), 1) if len(of) > 1 else None

    found = place(some, never_two, CONFIG, USUAL, 1)
    assert [len(group) for group in found.devices] == [1]
    assert len(asked) < 15
    assert everything(some, "no device").software == dict.fromkeys(
        (q.name for q in some), "no device"
    )
