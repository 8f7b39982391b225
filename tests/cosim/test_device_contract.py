"""Tests the contract of `seustream.hdl.device`: what joins with what, on every device.

The results are written out, or found by the oracle, which tries every combination. See also
`test_device_control` (loading, refusals, counters) and `test_device_random`.
"""

from __future__ import annotations

import dataclasses

import pytest

from seustream.hdl import isa
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.device import (
    BatchRefused,
    Combination,
    Factor,
    Route,
    Tables,
    Window,
)
from seustream.hdl.isa import Condition
from tests.cosim.contract import (
    EQUALITY,
    LARGE,
    PAIRS,
    SMALL,
    NewDevice,
    agrees,
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
    S,
    T,
    U,
    Where,
    arrivals,
    assemble,
    batch,
    build,
    rows_of,
    run,
    with_area,
)

# --- joins ---------------------------------------------------------------------


def test_equality_join_of_two_streams(new_device: NewDevice) -> None:
    raws = arrivals([(R, 1, (5,)), (S, 2, (5,)), (S, 3, (6,)), (R, 4, (6,)), (R, 5, (5,))])
    results = run(loaded(new_device, build([EQUALITY])), raws)
    assert sorted(rows_of(results)) == [
        (0, 2, 1, (0, 0, -1, -1)),
        (0, 4, 3, (1, 1, -1, -1)),
        (0, 5, 2, (2, 0, -1, -1)),
    ]
    assert results.sequences.shape == (3, 4)


@pytest.mark.parametrize("symbol", ["<", "=", ">", ">=", "<=", "<>", "true"])
def test_comparisons_are_unsigned_and_keep_their_operands_apart(
    new_device: NewDevice, symbol: str
) -> None:
    """Tries both orders of arrival: the probe of one is in the window in the other."""
    values = [0, 1, 0x7FFF, 0x8000, 0xFFFF]
    there = [(R, 0, (9, 9, v)) for v in values] + [(S, 1, (9, v)) for v in values]
    back = [(S, 2, (9, v)) for v in values] + [(R, 3, (9, 9, v)) for v in values]
    query = Query({R: RANGE(1), S: RANGE(1)}, ((On(R, 2, symbol, S, 1),),))
    agrees(new_device, [query], arrivals(there + back))


@pytest.mark.parametrize(("name", "top"), [("serial", 0xFF), ("default", 0xFFFFFFFF)])
def test_attributes_of_every_width_are_unsigned(new_device: NewDevice, name: str, top: int) -> None:
    raws = arrivals([(R, 0, (v,)) for v in (0, 1, top)] + [(S, 0, (v,)) for v in (0, 1, top)])
    query = Query({R: UNBOUNDED, S: UNBOUNDED}, ((On(R, 0, ">", S, 0),),))
    agrees(new_device, [query], raws, config=CONFIGURATIONS[name])


def test_a_term_needs_all_its_factors(new_device: NewDevice) -> None:
    both = Query({R: UNBOUNDED, S: UNBOUNDED}, ((On(R, 0, "=", S, 0), On(R, 1, "<", S, 1)),))
    rows = [(R, 0, (a, b)) for a in (1, 2) for b in (1, 2)]
    agrees(new_device, [both], arrivals(rows + [(S, 1, (a, b)) for _, _, (a, b) in rows]))


def test_chain_of_three_streams(new_device: NewDevice) -> None:
    chain = Query(
        {R: UNBOUNDED, S: UNBOUNDED, T: UNBOUNDED},
        ((On(R, 0, "=", S, 0), On(S, 1, "=", T, 0)),),
    )
    raws = arrivals([(R, 0, (1,)), (T, 1, (7,)), (S, 2, (1, 7)), (T, 3, (7,)), (R, 4, (1,))])
    results = run(loaded(new_device, build([chain])), raws)
    assert sorted(rows_of(results)) == [
        (0, 2, 0, (0, 0, 0, -1)),
        (0, 3, 0, (0, 0, 1, -1)),
        (0, 4, 1, (1, 0, 0, -1)),
        (0, 4, 2, (1, 0, 1, -1)),
    ]


def test_chain_of_four_streams(new_device: NewDevice) -> None:
    factors = (On(R, 0, "=", S, 0), On(S, 1, "<", T, 0), On(T, 1, "<>", U, 0))
    query = Query(dict.fromkeys((R, S, T, U), UNBOUNDED), (factors,))
    rows = [
        (stream, 4 * k + stream, attributes)
        for k in range(4)
        for stream, attributes in enumerate([(k % 2,), (k % 2, k), (2, k), (k,)])
    ]
    agrees(new_device, [query], arrivals(rows, (0, 1, 2, 3)), (0, 1, 2, 3))


@pytest.mark.parametrize("streams", [(R, S), (R, S, T)])
def test_cross_product(new_device: NewDevice, streams: tuple[int, ...]) -> None:
    rows = [(s, t, (s,)) for t in range(4) for s in streams]
    agrees(new_device, [Query(dict.fromkeys(streams, UNBOUNDED))], arrivals(rows))


def test_several_queries_share_one_pass(new_device: NewDevice) -> None:
    queries = [
        EQUALITY,
        Query({S: RANGE(4), T: ROWS(2)}, ((On(T, 0, ">", S, 1),),)),
        Query({R: ROWS(3), S: ROWS(1), T: RANGE(5)}, ((On(R, 0, "=", S, 0),),)),
        Query({T: UNBOUNDED}),
    ]
    rows = [(t % 3, t, (t % 2, t % 5)) for t in range(20)]
    agrees(new_device, queries, arrivals(rows))


def test_a_query_of_one_stream_gives_the_raw_tuples(new_device: NewDevice) -> None:
    queries = [Query({R: UNBOUNDED}, where={R: Where(((0, ">", 1),))}), Query({S: ROWS(1)})]
    raws = arrivals([(R, 0, (1,)), (R, 1, (2,)), (S, 1, ()), (R, 2, (3,))])
    results = run(loaded(new_device, build(queries)), raws)
    assert sorted(rows_of(results)) == [
        (0, 1, 1, (1, -1, -1, -1)),
        (0, 2, 2, (2, -1, -1, -1)),
        (1, 1, 1, (-1, 0, -1, -1)),
    ]


def test_overlapping_terms_repeat_a_result_only_for_its_raw_tuple(new_device: NewDevice) -> None:
    either = Query({R: UNBOUNDED, S: UNBOUNDED}, ((On(R, 0, "=", S, 0),), (On(R, 1, "=", S, 1),)))
    rows = [(t % 2, t, (t // 2 % 2, t // 4 % 2)) for t in range(16)]
    agrees(new_device, [either], arrivals(rows))


# --- programs ------------------------------------------------------------------


def r_probes_s(program: tuple[int, ...], **area: object) -> Tables:
    """Returns tables in which R probes S's window; everything that S's program joins is a result of
    query 0."""
    tables = build([PAIRS])
    routes = {
        R: Route(False, frozenset({S})),
        S: Route(True),
        T: Route(),
        3: Route(False, frozenset(), frozenset({0})),
    }
    tables = dataclasses.replace(tables, routes=routes, admission=((0,), (0,), (0,)))
    tables = with_area(tables, R, factors=(), combinations=(), program=assemble(isa.Nop()))
    return with_area(tables, S, program=program, **area)


def joined_by(new_device: NewDevice, tables: Tables) -> list[tuple[int, ...]]:
    """Returns which of R's (a, b) in 0..1 x 0..1 join with S's one tuple, (1, 1)."""
    pairs = [(a, b) for a in (0, 1) for b in (0, 1)]
    raws = arrivals([(S, 0, (1, 1)), *((R, 1, pair) for pair in pairs)])
    results = run(loaded(new_device, tables), raws)
    assert all(sequences[S] == 0 for sequences in query_rows(results, 0))
    return [pairs[sequences[R]] for sequences in query_rows(results, 0)]


A, B = Factor(0, R, 0, Condition.EQ), Factor(1, R, 1, Condition.EQ)
CMP_A, CMP_B = isa.Cmp(0, R, 0, Condition.EQ, 0), isa.Cmp(1, R, 1, Condition.EQ, 1)
A_OR_B = {
    "factors": (A, B),
    "combinations": (Combination(R, (0,), (), (), 3), Combination(R, (1,), (), (), 3)),
}


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(
            [CMP_A, CMP_B, isa.OrRegisters(0, 1, 31), isa.Nop(), isa.Emit(31, 3), isa.Nop()],
            id="or",
        ),
        pytest.param([CMP_A, CMP_B, isa.Jmpli(), isa.Emit(63, 3), isa.Nop()], id="jmpli"),
        pytest.param(
            [
                CMP_A,
                CMP_B,
                isa.OrRegisters(0, 1, 16),
                isa.Jmp(5),
                isa.Emit(63, 3),
                isa.Emit(16, 3),
                isa.Nop(),
            ],
            id="jmp",
        ),
    ],
)
def test_terms_merged_in_one_area_give_each_pair_once(
    new_device: NewDevice, code: list[isa.Instruction]
) -> None:
    tables = r_probes_s(assemble(*code), **A_OR_B)
    assert joined_by(new_device, tables) == [(0, 1), (1, 0), (1, 1)]


def test_jmpct_goes_on_for_its_own_tag_only(new_device: NewDevice) -> None:
    code = [isa.Jmpct(R, 2), isa.Emit(63, 3), isa.Jmpct(S, 4), isa.Emit(63, 3), isa.Nop()]
    tables = r_probes_s(assemble(*code), factors=(), combinations=(Combination(R, (), (), (), 3),))
    assert len(joined_by(new_device, tables)) == 4


@pytest.mark.parametrize(
    ("stream", "condition", "holds"),
    [
        (R, Condition.TRUE, True),
        (R, Condition.FALSE, False),
        (T, Condition.TRUE, True),
        (T, Condition.FALSE, False),
        (T, Condition.EQ, False),
        (T, Condition.NE, False),
        (T, Condition.GE, False),
        (T, Condition.LE, False),
    ],
)
def test_a_comparison_with_a_stream_not_carried_is_false_unless_constant(
    new_device: NewDevice, stream: int, condition: Condition, holds: bool
) -> None:
    """T's attributes are never there, whatever is left on the wires that would carry them."""
    tables = r_probes_s(
        assemble(isa.Cmp(2, stream, 2, condition, 5), isa.Emit(5, 3), isa.Nop()),
        factors=(Factor(2, stream, 2, condition),),
        combinations=(Combination(R, (0,), (), (), 3),),
    )
    assert len(joined_by(new_device, tables)) == (4 if holds else 0)


def test_only_a_raw_probe_has_selection_bits(new_device: NewDevice) -> None:
    """R's bits are 1, yet they read 0 for the joined R,S tuple that probes T."""
    chain = Query(dict.fromkeys((R, S, T), UNBOUNDED), where={R: Where(((0, "=", 1),))})
    tables = build([chain])
    rows = tables.areas[T].combinations
    probe = next(row for row in rows if row.pre_tag >= 3)
    wrong = dataclasses.replace(probe, probe_selections=(0,))
    last = tables.areas[T].program
    code = [isa.decode(word) for word in last]
    at = next(
        i for i, op in enumerate(code) if isinstance(op, isa.Emit) and op.tag == wrong.post_tag
    )
    code[at] = isa.Emit(isa.PROBE_SELECTION_REGISTERS[0], wrong.post_tag)
    altered = with_area(
        tables,
        T,
        combinations=tuple(wrong if row is probe else row for row in rows),
        program=assemble(*code),
    )
    raws = arrivals([(T, 0, ()), (S, 1, ()), (R, 2, (1,))])
    assert query_rows(run(loaded(new_device, tables), raws), 0) == [(0, 0, 0, -1)]
    assert query_rows(run(loaded(new_device, altered), raws), 0) == []


# --- windows -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "reached"),
    [
        (RANGE(0), [4, 5]),
        (RANGE(9), [3, 4, 5]),
        (RANGE(10), [2, 3, 4, 5]),
        (RANGE(11), [1, 2, 3, 4, 5]),
        (RANGE(19), [1, 2, 3, 4, 5]),
        (RANGE(20), [0, 1, 2, 3, 4, 5]),
        (ROWS(1), [5]),
        (ROWS(2), [4, 5]),
        (ROWS(5), [1, 2, 3, 4, 5]),
        (ROWS(6), [0, 1, 2, 3, 4, 5]),
        (ROWS(7), [0, 1, 2, 3, 4, 5]),
        (UNBOUNDED, [0, 1, 2, 3, 4, 5]),
    ],
)
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a larger window"])
def test_a_window_ends_where_it_says(
    new_device: NewDevice, window: Window, reached: list[int], beside: bool
) -> None:
    """On its own, the area may have dropped the tuples outside the window; beside a larger window
    it may not, and the output check decides."""
    queries = [Query({R: window, S: RANGE(0)})] + [PAIRS] * beside
    times = [0, 9, 10, 11, 20, 20]
    raws = arrivals([*((R, ts, ()) for ts in times), (S, 20, ())])
    results = run(loaded(new_device, build(queries)), raws)
    assert query_rows(results, 0) == [(r, 0, -1, -1) for r in reached]
    if beside:
        assert len(query_rows(results, 1)) == 6


def test_now_joins_what_has_the_same_timestamp(new_device: NewDevice) -> None:
    now = Query({R: RANGE(0), S: RANGE(0)})
    raws = arrivals([(R, 4, ()), (R, 5, ()), (S, 5, ()), (S, 5, ()), (R, 6, ()), (S, 7, ())])
    results = run(loaded(new_device, build([now])), raws)
    assert query_rows(results, 0) == [(1, 0, -1, -1), (1, 1, -1, -1)]


def test_each_stream_has_its_own_window(new_device: NewDevice) -> None:
    queries = [
        Query({R: RANGE(3), S: ROWS(2)}),
        Query({R: ROWS(1), S: UNBOUNDED}),
        Query({R: ROWS(4), S: RANGE(7)}),
    ]
    agrees(new_device, queries, arrivals([(t % 2, t, ()) for t in range(16)]))


def test_ties_join_in_order_of_arrival_once(new_device: NewDevice) -> None:
    rows = [(R, 5, ()), (S, 5, ()), (R, 5, ()), (S, 5, ())]
    results = run(loaded(new_device, build([PAIRS])), arrivals(rows))
    assert query_rows(results, 0) == [(r, s, -1, -1) for r in (0, 1) for s in (0, 1)]


def test_rows_are_counted_in_order_of_arrival_among_ties(new_device: NewDevice) -> None:
    rows = [(R, 5, ()), (R, 5, ()), (R, 5, ()), (S, 5, ())]
    results = run(loaded(new_device, build([Query({R: ROWS(2), S: ROWS(1)})])), arrivals(rows))
    assert query_rows(results, 0) == [(1, 0, -1, -1), (2, 0, -1, -1)]


def test_negative_timestamps_are_times_like_others(new_device: NewDevice) -> None:
    query = Query({R: RANGE(10), S: RANGE(10)})
    agrees(new_device, [query], arrivals([(R, -12, ()), (R, -5, ()), (S, -2, ()), (S, 5, ())]))


# --- self-joins ----------------------------------------------------------------

COPIES = (0, 0, 2)


def test_self_join_of_the_last_row_finds_itself(new_device: NewDevice) -> None:
    """The copies share one counter: when the first arrives, the other's window has moved on."""
    query = Query({R: ROWS(1), S: ROWS(1)})
    raws = arrivals([(0, t, ()) for t in range(4)], COPIES)
    results = run(loaded(new_device, build([query], COPIES)), raws)
    assert query_rows(results, 0) == [(k, k, -1, -1) for k in range(4)]


def test_a_tuple_on_one_copy_moves_the_counter_of_the_other(new_device: NewDevice) -> None:
    device = loaded(new_device, build([Query({R: ROWS(1), S: ROWS(2)})], COPIES))
    none = (0, 0, 0, 0)
    raws = [Raw(R, 0, 0, True, none), Raw(S, 0, 0, True, none), Raw(S, 1, 1, True, none)]
    assert query_rows(run(device, raws), 0) == [(0, 0, -1, -1)]


@pytest.mark.parametrize("windows", [(ROWS(2), ROWS(3)), (RANGE(2), ROWS(2)), (RANGE(0), RANGE(3))])
def test_self_join_windows(new_device: NewDevice, windows: tuple[Window, Window]) -> None:
    query = Query({R: windows[0], S: windows[1]}, ((On(R, 0, "<=", S, 1),),))
    rows = [(0, t // 2, (t % 3, t % 2)) for t in range(12)]
    agrees(new_device, [query], arrivals(rows, COPIES), COPIES)


def test_self_join_beside_another_stream(new_device: NewDevice) -> None:
    query = Query({R: ROWS(3), S: ROWS(2), T: ROWS(2)}, ((On(R, 0, "<>", S, 0),),))
    rows = [(0 if t % 3 else 2, t // 2, (t % 2,)) for t in range(18)]
    agrees(new_device, [query], arrivals(rows, COPIES), COPIES)


# --- selections ----------------------------------------------------------------


@pytest.mark.parametrize(
    "where",
    [
        {R: SMALL},
        {S: SMALL},
        {R: SMALL, S: LARGE},
        {R: LARGE, S: SMALL},
        {R: Where(((0, ">", 0), (0, "<>", 2), (1, "=", 1)))},
        {S: Where(((0, "=", 0), (0, "=", 5), (1, "=", 1)), every=False)},
        {R: Where(((0, "<=", 4),)), S: Where(((1, "true", 0), (0, "false", 0)), every=False)},
        {R: Where(())},
    ],
    ids=str,
)
def test_selections_of_window_and_probe(new_device: NewDevice, where: dict[int, Where]) -> None:
    """The first query's selection bit is not the second's, and the third query admits all tuples,
    so that the bits themselves must keep the others out."""
    queries = [
        Query({R: UNBOUNDED, S: UNBOUNDED}, where={R: LARGE, S: Where(((1, "=", 0),))}),
        Query({R: UNBOUNDED, S: UNBOUNDED}, where=where),
        Query({R: RANGE(1), S: RANGE(1)}),
    ]
    there = [(t % 2, t, (t // 2, t // 4 % 2)) for t in range(12)]
    back = [((t + 1) % 2, 12 + t, (t // 2, t // 4 % 2)) for t in range(12)]
    agrees(new_device, queries, arrivals(there + back))


def test_selections_in_a_chain(new_device: NewDevice) -> None:
    query = Query(
        dict.fromkeys((R, S, T), UNBOUNDED),
        where={R: Where(((0, "=", 0),)), S: Where(((0, "=", 1),)), T: Where(((0, "<>", 1),))},
    )
    rows = [(t % 3, t, (t // 3 % 3,)) for t in range(27)]
    agrees(new_device, [query, Query({R: RANGE(1), S: RANGE(1), T: RANGE(1)})], arrivals(rows))


def test_the_door_drops_what_no_query_selects(new_device: NewDevice) -> None:
    """A mask needs all its bits, one mask is enough, and dropped tuples count in ROWS."""
    query = Query({R: ROWS(2), S: UNBOUNDED}, where={R: Where(((0, "=", 1),))})
    other = Query({R: ROWS(2), S: UNBOUNDED}, where={R: Where(((1, "=", 1),))})
    tables = build([query, other])
    assert tables.admission[R] == (0b01, 0b10)
    rows = [(R, 0, (1, 0)), (R, 1, (1, 1)), (R, 2, (0, 0)), (S, 3, ())]

    device = loaded(new_device, tables)
    results = run(device, arrivals(rows))
    assert sorted(rows_of(results)) == [(0, 3, 1, (1, 0, -1, -1)), (1, 3, 1, (1, 0, -1, -1))]
    assert device.status().dropped == 1

    both = dataclasses.replace(tables, admission=((0b11,), (0,), ()))
    device = loaded(new_device, both)
    run(device, arrivals(rows))
    assert device.status().dropped == 2


def test_without_admission_masks_a_stream_is_shut(new_device: NewDevice) -> None:
    tables = dataclasses.replace(build([PAIRS]), admission=((), (0,), ()))
    device = loaded(new_device, tables)
    results = run(device, arrivals([(R, 0, ()), (S, 1, ()), (R, 2, ())]))
    assert rows_of(results) == []
    assert device.status().dropped == 2
    assert device.status().occupancy == (0, 1, 0)


# --- ticks ---------------------------------------------------------------------


def test_a_tick_moves_clock_and_counter_only(new_device: NewDevice) -> None:
    queries = [Query({R: ROWS(2), S: ROWS(1)}), Query({R: RANGE(5), S: RANGE(5)})]
    rows = [(R, 0, ()), (R, 1, ()), (R, 2, ()), (S, 3, ()), (S, 3, ()), (R, 4, ())]
    raws = arrivals(rows, ticks=[2, 3])
    device = loaded(new_device, build(queries))
    results = run(device, raws)
    assert query_rows(results, 0) == [(1, 1, -1, -1), (3, 1, -1, -1)]
    assert query_rows(results, 1) == [(0, 1, -1, -1), (1, 1, -1, -1), (3, 1, -1, -1)]
    assert sorted(rows_of(results)) == sorted(expected(raws, queries))
    with pytest.raises(BatchRefused):
        device.push(batch([Raw(R, 3, 4, True, (0, 0, 0, 0))]))


def test_a_tick_lets_stored_tuples_die(new_device: NewDevice) -> None:
    device = loaded(new_device, build([Query({R: RANGE(5), S: ROWS(2)})]))
    rows = [(R, 0, ()), (S, 0, ()), (R, 4, ()), (R, 6, ()), (S, 7, ()), (S, 7, ()), (R, 12, ())]
    raws = arrivals(rows, ticks=[3, 4, 5, 6])
    stored = []
    for raw in raws:
        run(device, [raw])
        stored.append(device.status().occupancy[:2])
    assert stored == [(1, 0), (1, 1), (2, 1), (1, 1), (1, 1), (1, 0), (0, 0)]
