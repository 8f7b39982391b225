"""Tests latency and selectivity of queries, by a clock that the test sets."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from seustream.cosim.bridge.quality import BOUNDS, Quality, Spending


def results(*newest: int, column: str = "ts_newest") -> pa.Table:
    return pa.table({"a": list(newest), column: pa.array(newest, pa.int64())})


@pytest.mark.parametrize("column", ["ts_newest", "ts"])
def test_a_result_is_as_old_as_the_epoch_of_its_newest_row(column: str) -> None:
    quality = Quality()
    quality.arrived(100, 1.0)
    quality.arrived(200, 2.0)
    quality.delivered("q", results(100, 150, 200, column=column), 3.0)
    found = quality.of("q", taken=6)
    assert [found.pop(what) for what in ("time_share", "cycle_share", "state_bytes")] == [None] * 3
    # The first result came with the epoch at 1 s, the others with the one at 2 s.
    assert found == {
        "p50_ms": 1000.0,
        "p99_ms": round(float(np.percentile([2.0, 1.0, 1.0], 99)) * 1000, 3),
        "selectivity": 0.5,
    }


def test_results_without_a_time_are_as_old_as_the_last_epoch() -> None:
    quality = Quality()
    quality.arrived(100, 1.0)
    quality.arrived(200, 4.0)
    quality.delivered("q", pa.table({"n": [1]}), 4.5)
    assert quality.of("q", 2)["p50_ms"] == 500.0


def test_ages_are_counted_by_bucket_up_to_its_bound() -> None:
    quality, chance = Quality(), random.Random(seed := random.randrange(1000))
    print("seed", seed)
    times = sorted(chance.choice((*BOUNDS, 0.003, 7.0, 99.0)) for _ in range(50))
    for newest, age in enumerate(reversed(times)):
        quality.arrived(newest, 100.0 - age)
    given = [chance.randrange(50) for _ in range(300)]
    quality.delivered("q", results(*given), 100.0)
    ages = [100.0 - (100.0 - times[49 - newest]) for newest in given]
    found = quality.latency["q"]
    upto = [sum(age <= bound for age in ages) for bound in BOUNDS]
    assert found.counts.cumsum().tolist() == [*upto, 300]
    assert found.sum == pytest.approx(sum(ages))


def test_an_epoch_without_rows_or_behind_another_moves_nothing_back() -> None:
    quality = Quality()
    quality.arrived(200, 1.0)
    quality.arrived(None, 2.0)
    quality.arrived(50, 3.0)  # another stream, further behind
    quality.delivered("q", results(200), 3.0)
    assert quality.of("q", 1)["p50_ms"] == 2000.0


def test_nothing_is_known_of_a_query_before_its_results_and_after_its_end() -> None:
    quality = Quality()
    nothing = dict.fromkeys(quality.of("q", 0))
    assert quality.of("q", 0) == nothing
    quality.delivered("q", results(7), 1.0)  # after a restart: the epoch came before it
    assert quality.of("q", 4) == {**nothing, "selectivity": 0.25}
    quality.forget("q")
    assert quality.of("q", 0) == nothing


def test_a_query_that_begins_late_counts_rows_from_then_on() -> None:
    quality = Quality()
    quality.arrived(10, 1.0)
    quality.begun("q", 1000)
    quality.delivered("q", results(10), 1.0)
    assert quality.of("q", 1004)["selectivity"] == 0.25


def test_what_operators_spend_is_that_of_all_queries_through_them_in_equal_parts() -> None:
    """Divides the time of an operator equally among the queries through it. A query that begins
    late gets its share of the time spent from then on."""
    chance = random.Random(seed := random.randrange(1000))
    print(f"seed {seed}")
    account, want = Spending(), dict.fromkeys("abc", 0.0)
    totals, since, all_time = dict.fromkeys(("x", "y"), 0.0), dict.fromkeys("abc", 0.0), 0.0
    for _ in range(50):
        through = {own: chance.sample("abc", chance.randint(0, 3)) for own in totals}
        for own, queries in through.items():
            spent = chance.choice((0.0, 0.5, 2.0))
            totals[own] += spent
            all_time += spent
            for query in queries:
                want[query] += spent / len(queries)
        account.add(totals, through)
        if chance.random() < 0.1:
            query = chance.choice("abc")
            account.begin(query)
            want[query], since[query] = 0.0, all_time
    for query in "abc":
        whole = all_time - since[query]
        assert account.share(query) == (
            pytest.approx(want[query] / whole, abs=2e-6) if whole else None
        )
