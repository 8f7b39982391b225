"""Tests the contract of `seustream.hdl.device` on every device: overflow, loading, refusals,
counters."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest

from seustream.compiler.wjasip.image import encode
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.device import (
    UNUSED,
    Area,
    BatchRefused,
    Comparison,
    Factor,
    Grouped,
    LoadRefused,
    NotLoaded,
    Retention,
    Route,
    Selection,
    Tables,
    Window,
)
from seustream.hdl.isa import Condition
from seustream.hdl.program import AreaProgram
from tests.cosim.contract import (
    EQUAL,
    LARGE,
    PAIRS,
    SMALL,
    TINY,
    NewDevice,
    loaded,
    query_rows,
)
from tests.cosim.oracle import expected
from tests.cosim.queries import (
    RANGE,
    ROWS,
    UNBOUNDED,
    On,
    Query,
    R,
    Raw,
    Row,
    S,
    T,
    U,
    Where,
    arrivals,
    batch,
    build,
    handed_over,
    rows_of,
    run,
    with_area,
)

Place = tuple[int | None, str | None, int | None]

# --- overflow ------------------------------------------------------------------


def test_a_live_tuple_that_loses_its_place_is_handed_over(new_device: NewDevice) -> None:
    device = loaded(new_device, build([PAIRS]))
    raws = arrivals([*((R, t, ()) for t in range(TINY.capacity + 2)), (S, 99, ())])
    results = run(device, raws)
    assert handed_over(results) == [(R, 0, R, TINY.capacity), (R, 1, R, TINY.capacity + 1)]
    assert query_rows(results, 0) == [(r, 0, -1, -1) for r in range(2, TINY.capacity + 2)]
    assert device.status().handed_over == 2
    assert device.status().occupancy == (TINY.capacity, 1, 0)


@pytest.mark.parametrize(
    ("window", "handed"),
    [
        (RANGE(TINY.capacity - 1), 0),
        (RANGE(TINY.capacity), 4),
        (ROWS(TINY.capacity), 0),
        (ROWS(TINY.capacity + 1), 4),
    ],
)
def test_a_dead_tuple_leaves_without_notice(
    new_device: NewDevice, window: Window, handed: int
) -> None:
    device = loaded(new_device, build([Query({R: window, S: window})]))
    results = run(device, arrivals([(R, t, ()) for t in range(TINY.capacity + 4)]))
    assert handed_over(results) == [(R, k, R, k + TINY.capacity) for k in range(handed)]
    assert device.status().occupancy[R] == TINY.capacity


def test_a_full_buffer_hands_nothing_over_to_a_tick(new_device: NewDevice) -> None:
    device = loaded(new_device, build([PAIRS]))
    n = TINY.capacity
    results = run(device, arrivals([(R, t, ()) for t in range(n + 2)], ticks=[n]))
    assert handed_over(results) == [(R, 0, R, n + 1)]


@pytest.mark.parametrize("seed", range(5))
def test_what_overflow_takes_away_is_told(new_device: NewDevice, seed: int) -> None:
    """The results of the device and those that need a tuple handed over before make up all
    results."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    queries = [
        Query({R: RANGE(40), S: ROWS(20)}, (EQUAL,)),
        Query({R: UNBOUNDED, S: RANGE(3)}, ((On(R, 1, "<", S, 1),),)),
    ]
    rows = [(chance.choice([R, R, S]), t // 2, (chance.randrange(3),) * 2) for t in range(120)]
    raws = arrivals(rows)
    results = run(loaded(new_device, build(queries)), raws)
    position = {(raw.stream, raw.sequence): at for at, raw in enumerate(raws)}
    left = {(s, seq): position[t, by] for s, seq, t, by in handed_over(results)}
    assert left

    def needs_the_host(row: Row) -> bool:
        parts = [(s, sequence) for s, sequence in enumerate(row[3]) if sequence >= 0]
        latest = max(position[part] for part in parts)
        return any(left.get(part, len(raws)) < latest for part in parts)

    want = expected(raws, queries)
    assert any(map(needs_the_host, want))
    assert sorted(rows_of(results)) == sorted(row for row in want if not needs_the_host(row))


# --- load, reset, refusals -----------------------------------------------------


def test_swapping_queries_keeps_the_windows(new_device: NewDevice) -> None:
    first = [PAIRS, Query({R: RANGE(2), S: RANGE(3)}, (EQUAL,))]
    second = [
        Query({R: ROWS(3), S: UNBOUNDED}, ((On(R, 0, "<", S, 0),),)),
        Query({R: UNBOUNDED, S: UNBOUNDED}, where={R: Where(((0, "=", 1),)), S: SMALL}),
    ]
    raws = arrivals([(t % 2, t, (t // 2 % 4,)) for t in range(20)])
    for at in range(len(raws) + 1):
        device = loaded(new_device, build(first))
        before = rows_of(run(device, raws[:at]))
        device.load(encode(build(second), TINY))
        after = rows_of(run(device, raws[at:]))
        want_before = expected(raws[:at], first)
        assert sorted(before) == sorted(want_before)
        want = expected(raws, second)[len(expected(raws[:at], second)) :]
        assert sorted(after) == sorted(want)


def test_a_swap_evaluates_selection_bits_anew(new_device: NewDevice) -> None:
    """The bit that meant SMALL under the first image means LARGE under the second."""
    first = Query({R: UNBOUNDED, S: UNBOUNDED}, where={R: SMALL})
    second = Query({R: UNBOUNDED, S: UNBOUNDED}, where={R: LARGE})
    device = loaded(new_device, build([first, PAIRS]))
    run(device, arrivals([(R, 0, (2,)), (R, 0, (3,))]))
    device.load(encode(build([second]), TINY))
    results = run(device, [Raw(S, 1, 0, True, (0, 0, 0, 0))])
    assert query_rows(results, 0) == [(1, 0, -1, -1)]


def test_a_swap_keeps_clock_counters_and_sequence_numbers(new_device: NewDevice) -> None:
    device = loaded(new_device, build([PAIRS]))
    run(device, arrivals([(R, 5, ()), (R, 6, ()), (S, 7, ())]))
    before = device.status()
    device.load(encode(build([Query({R: ROWS(1), S: ROWS(2)})]), TINY))
    assert device.status() == before
    with pytest.raises(BatchRefused, match="6 after 7"):
        device.push(batch([Raw(R, 6, 2, True, (0, 0, 0, 0))]))
    results = run(device, [Raw(S, 7, 1, True, (0, 0, 0, 0))])
    assert query_rows(results, 0) == [(1, 1, -1, -1)]


@pytest.mark.parametrize("groups", [(0, 0, 2), (0, 1), (0, 1, 2, 3)], ids=str)
def test_an_image_for_other_streams_empties_the_windows(
    new_device: NewDevice, groups: tuple[int, ...]
) -> None:
    device = loaded(new_device, build([PAIRS]))
    run(device, arrivals([(R, 0, ()), (S, 1, ()), (S, 1, ())]))
    device.load(encode(build([Query({R: UNBOUNDED, S: ROWS(1)})], groups), TINY))
    assert device.status().occupancy == (0,) * len(groups)
    raws = [Raw(S, 1, 0, True, (0, 0, 0, 0)), Raw(R, 1, 0, True, (0, 0, 0, 0))]
    assert query_rows(run(device, raws), 0) == [(0, 0, -1, -1)]


def test_an_image_for_other_streams_keeps_clock_and_counters(new_device: NewDevice) -> None:
    device = loaded(new_device, build([PAIRS]))
    run(device, arrivals([(R, 5, ()), (S, 7, ())]))
    device.load(encode(build([PAIRS], (0, 1)), TINY))
    assert (device.status().taken, device.status().delivered) == (2, 1)
    with pytest.raises(BatchRefused, match="6 after 7"):
        device.push(batch([Raw(R, 6, 0, True, (0, 0, 0, 0))]))


def test_reset_empties_windows_clock_and_counters(new_device: NewDevice) -> None:
    device = loaded(new_device, build([Query({R: ROWS(2), S: ROWS(2)})]))
    raws = arrivals([(R, 5, ()), (R, 6, ()), (R, 7, ()), (S, 8, ())])
    first = sorted(rows_of(run(device, raws)))
    assert first
    device.reset()
    assert device.status() == dataclasses.replace(
        new_device().status(), loaded=True, occupancy=(0, 0, 0)
    )
    assert sorted(rows_of(run(device, raws))) == first


QUERIES = [Query({R: ROWS(5), S: RANGE(6)}, (EQUAL,)), PAIRS]
GOOD = build(QUERIES)
FINAL = max(GOOD.routes)
NO_PLACE = None, None, None
TOO_LONG = RANGE(TINY.longest_range + 1)
STRANGE = Selection(True, (Comparison(0, Condition.EQ, 1), Comparison(4, Condition.EQ, 1)))


def changed(**members: object) -> bytes:
    return encode(dataclasses.replace(GOOD, **members), TINY)  # type: ignore[arg-type]


def changed_area(**members: object) -> bytes:
    return encode(with_area(GOOD, S, **members), TINY)


def bad_images() -> dict[str, tuple[bytes, Place]]:
    """Images that a device refuses, each with area, table and row; one for each table that there is."""
    good = encode(GOOD, TINY)
    row, last = GOOD.areas[S].combinations[0], len(GOOD.areas[S].program) - 1
    route = Route(False, frozenset({3}))
    return {
        "empty": (b"", NO_PLACE),
        "truncated": (good[:-1], NO_PLACE),
        "altered": (good[:-9] + bytes([good[-9] ^ 1]) + good[-8:], NO_PLACE),
        "other configuration": (encode(GOOD, CONFIGURATIONS["default"]), NO_PLACE),
        "groups": (changed(groups=(0, 9, 2)), (None, "groups", S)),
        "selections": (changed(selections=((), (STRANGE,), ())), (S, "selections", 0)),
        "admission": (changed(admission=((0,), (0, 2), ())), (S, "admission", 1)),
        "factors": (changed_area(factors=(Factor(0, 3, 0, Condition.EQ),)), (S, "factors", 0)),
        "combinations": (
            changed_area(combinations=(row, dataclasses.replace(row, factors=(9,)))),
            (S, "combinations", 1),
        ),
        "program": (changed_area(program=(*GOOD.areas[S].program, 1)), (S, "program", last + 1)),
        "retention": (changed_area(retention=Retention(-2)), (S, "retention", None)),
        "guards": (changed_area(guards={200: 0}), (S, "guards", 200)),
        "routes": (changed(routes={**GOOD.routes, 7: route}), (None, "routes", 7)),
        "windows": (
            changed(windows=(GOOD.windows[0], (UNUSED, TOO_LONG, UNUSED))),
            (S, "windows", 1),
        ),
        "filters": (changed(filters=(0, 1)), (None, "filters", 1)),
        "grouped": (
            changed(grouped={FINAL: Grouped(1, None, None, 0)}),
            (None, "grouped", FINAL),
        ),
    }


def test_there_is_a_bad_image_for_every_table() -> None:
    members = (*dataclasses.fields(Tables), *dataclasses.fields(Area))
    assert {member.name for member in members} - {*bad_images()} == {"areas"}


def named(refusal: LoadRefused) -> Place:
    """Returns area, table and row of a refusal, after a look at whether its text names them."""
    place = refusal.area, refusal.table, refusal.row
    text = str(refusal)
    assert refusal.reason in text
    assert (refusal.area is None) == (f"area {refusal.area}" not in text)
    assert (refusal.table is None) == (f" {refusal.table}" not in text)
    assert (refusal.row is None) == (f" {refusal.row}: " not in text)
    return place


@pytest.mark.parametrize(("bad", "place"), bad_images().values(), ids=bad_images())
def test_a_refused_image_leaves_the_device_as_it_was(
    new_device: NewDevice, bad: bytes, place: Place
) -> None:
    raws = arrivals([(t % 2, t, (t % 3,)) for t in range(20)])
    device, untouched = (loaded(new_device, GOOD) for _ in range(2))
    run(device, raws[:10])
    run(untouched, raws[:10])
    with pytest.raises(LoadRefused) as caught:
        device.load(bad)
    assert named(caught.value) == place
    assert device.status() == untouched.status()
    after = sorted(rows_of(run(device, raws[10:])))
    assert after
    assert after == sorted(rows_of(run(untouched, raws[10:])))


@pytest.mark.parametrize("table", ["join rows", "interest", "terms"])
def test_what_a_loader_derives_wrongly_leaves_the_device_as_it_was(
    new_device: NewDevice, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With such rows or masks, the lanes would drop a pair that joins, without a word."""
    raws = arrivals([(t % 2, t, (t % 3,)) for t in range(20)])
    device, untouched = (loaded(new_device, GOOD) for _ in range(2))
    run(device, raws[:10])
    run(untouched, raws[:10])
    with monkeypatch.context() as faulty:
        if table == "join rows":
            faulty.setattr(AreaProgram, "rows", lambda *_: [])
        elif table == "interest":
            faulty.setattr(AreaProgram, "interest", lambda *_: frozenset([0]))
        else:
            faulty.setattr(AreaProgram, "terms", lambda *_: frozenset([frozenset([0])]))
        with pytest.raises(LoadRefused) as caught:
            device.load(encode(build([PAIRS, QUERIES[0]]), TINY))
    assert named(caught.value) == (R, table, S)
    assert device.status() == untouched.status()
    after = sorted(rows_of(run(device, raws[10:])))
    assert after
    assert after == sorted(rows_of(run(untouched, raws[10:])))


@pytest.mark.parametrize("bad", [bad for bad, _ in bad_images().values()], ids=bad_images())
def test_a_refused_first_image_leaves_the_device_unloaded(
    new_device: NewDevice, bad: bytes
) -> None:
    device = new_device()
    with pytest.raises(LoadRefused):
        device.load(bad)
    assert not device.status().loaded
    with pytest.raises(NotLoaded):
        device.push(batch([]))


def test_a_device_without_an_image_takes_nothing(new_device: NewDevice) -> None:
    device = new_device()
    with pytest.raises(NotLoaded, match="load"):
        device.push(batch(arrivals([(R, 0, ())])))
    device.reset()
    assert device.config == TINY
    assert device.status().taken == 0
    assert device.status().occupancy == ()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Raw(R, 8, 4, True, (0, 0, 0, 0)), "row 1: timestamp 8 after 11"),
        (Raw(U, 11, 0, True, (0, 0, 0, 0)), "row 1: stream 3, the image has 3"),
        (Raw(R, 11, 4, True, (0, 0, 65536, 0)), "row 1: attribute 2 = 65536 is wider than 16"),
    ],
)
def test_a_refused_batch_leaves_the_device_as_it_was(
    new_device: NewDevice, wrong: Raw, message: str
) -> None:
    """Rows before the faulty one leave no trace either."""
    raws = arrivals([(t % 2, t, (t % 3,)) for t in range(20)])
    device, untouched = (loaded(new_device, build([PAIRS])) for _ in range(2))
    run(device, raws[:10])
    run(untouched, raws[:10])
    good = Raw(S, 11, 5, True, (0, 0, 0, 0))
    with pytest.raises(BatchRefused, match=message):
        device.push(batch([good, wrong, raws[19]]))
    assert device.status() == untouched.status()
    after = sorted(rows_of(run(device, raws[10:])))
    assert after
    assert after == sorted(rows_of(run(untouched, raws[10:])))


def test_the_clock_goes_on_from_batch_to_batch(new_device: NewDevice) -> None:
    device = loaded(new_device, build([PAIRS]))
    run(device, arrivals([(R, 5, ())]))
    with pytest.raises(BatchRefused, match="row 0: timestamp 4 after 5"):
        device.push(batch([Raw(R, 4, 1, False, (0, 0, 0, 0))]))
    run(device, [Raw(R, 5, 1, False, (0, 0, 0, 0))])
    assert device.status().taken == 2


# --- counters and batches ------------------------------------------------------


def test_results_come_in_the_order_of_their_raw_tuples(new_device: NewDevice) -> None:
    """Holds also where the results of a tuple come from different areas and different depths."""
    chain = Query(dict.fromkeys((R, S, T), UNBOUNDED))
    raws = arrivals([(t % 3, t, ()) for t in range(12)])
    results = run(loaded(new_device, build([chain, PAIRS])), raws)
    newest = [row[1] for row in rows_of(results)]
    assert len(set(newest)) == 11
    assert newest == sorted(newest)


def test_status_is_a_picture_of_the_moment(new_device: NewDevice) -> None:
    device = loaded(new_device, build([PAIRS]))
    before = device.status()
    run(device, arrivals([(R, 0, ())]))
    assert (before.taken, before.occupancy) == (0, (0, 0, 0))
    assert (device.status().taken, device.status().occupancy) == (1, (1, 0, 0))


def test_counters(new_device: NewDevice) -> None:
    """S meets two stored tuples of R and joins one, which is in one query's window; then R meets
    S."""
    queries = [
        Query({R: ROWS(3), S: ROWS(3)}, (EQUAL,), {R: Where(((1, "=", 0),))}),
        Query({R: ROWS(1), S: ROWS(3)}, (EQUAL,), {R: Where(((1, "=", 0),))}),
    ]
    tables = build(queries[:1])
    routes = {
        tag: dataclasses.replace(route, queries=frozenset({0, 1})) if route.queries else route
        for tag, route in tables.routes.items()
    }
    windows = tuple(
        tuple(query.windows.get(stream, UNUSED) for stream in (R, S, T)) for query in queries
    )
    device = loaded(new_device, dataclasses.replace(tables, routes=routes, windows=windows))
    rows = [(R, 0, (1,)), (R, 1, (2,)), (R, 2, (1, 1)), (S, 3, (2,)), (R, 4, (2,)), (S, 5, (1,))]
    results = run(device, arrivals(rows, ticks=[5]))
    assert sorted(rows_of(results)) == [
        (0, 3, 1, (1, 0, -1, -1)),
        (0, 4, 3, (3, 0, -1, -1)),
        (1, 4, 3, (3, 0, -1, -1)),
    ]
    status = device.status()
    assert status.loaded
    assert (status.taken, status.ticks, status.dropped) == (6, 1, 1)
    assert (status.pairs, status.circulated, status.delivered) == (3, 2, 3)
    assert (status.handed_over, status.occupancy) == (0, (2, 1, 0))


def test_an_area_that_keeps_nothing_joins_nothing_later(new_device: NewDevice) -> None:
    # One by one, because the area may keep a tuple until it gets to drop it; the query's window
    # still has it.
    tables = with_area(build([PAIRS]), R, retention=Retention())
    results = run(loaded(new_device, tables), arrivals([(R, 0, ()), (S, 0, ()), (R, 0, ())]), 1)
    assert query_rows(results, 0) == [(1, 0, -1, -1)]


def test_a_raw_row_without_insert_stores_nothing(new_device: NewDevice) -> None:
    tables = build([PAIRS])
    tables = dataclasses.replace(
        tables, routes={**tables.routes, R: Route(False, tables.routes[R].probes)}
    )
    device = loaded(new_device, tables)
    results = run(device, arrivals([(S, 0, ()), (R, 1, ()), (S, 2, ())]))
    assert query_rows(results, 0) == [(0, 0, -1, -1)]
    assert device.status().occupancy == (0, 2, 0)


def test_an_empty_batch_gives_empty_columns(new_device: NewDevice) -> None:
    device = loaded(new_device, build([PAIRS]))
    for results in (device.push(batch([])), device.flush()):
        assert len(results) == len(results.handed_over) == 0
        assert results.sequences.shape == (0, 4)
    assert device.status().taken == 0


def test_columns_have_the_types_of_the_contract(new_device: NewDevice) -> None:
    device = loaded(new_device, build([PAIRS]))
    results = run(device, arrivals([(R, t, ()) for t in range(TINY.capacity + 1)] + [(S, 20, ())]))
    handed = results.handed_over
    assert results.queries.dtype == np.uint64
    assert len(results.queries) == TINY.capacity
    for column in (results.newest, results.oldest, results.sequences):
        assert column.dtype == np.int64
        assert len(column) == TINY.capacity
    for column in (handed.stream, handed.sequence, handed.taker, handed.taken_by):
        assert column.dtype == np.int64
        assert len(column) == 1
