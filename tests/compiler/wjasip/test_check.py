"""Every reason for refusing tables, with the place it names."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import pytest

from seustream.compiler.wjasip import check as checks
from seustream.compiler.wjasip.check import check, check_program
from seustream.compiler.wjasip.equivalence import TooIntricate
from seustream.hdl import isa
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.device import (
    Combination,
    Comparison,
    Factor,
    Grouped,
    LoadRefused,
    Retention,
    Route,
    Selection,
    Tables,
    Window,
    WindowKind,
)
from seustream.hdl.isa import (
    AndRegisters,
    Cmp,
    Condition,
    Emit,
    Jmp,
    Jmpct,
    Jmpli,
    Nop,
    OrRegisters,
)
from seustream.hdl.program import AreaProgram, JoinRow
from tests.cosim.queries import (
    RANGE,
    ROWS,
    UNBOUNDED,
    On,
    Query,
    R,
    S,
    T,
    Where,
    assemble,
    build,
    with_area,
)

TINY = CONFIGURATIONS["tiny"]
CHAIN = Query(
    dict.fromkeys((R, S, T), UNBOUNDED),
    ((On(R, 0, "=", S, 0), On(S, 1, "<", T, 2)),),
    {R: Where(((0, "<", 3),)), S: Where(((1, "<>", 3),))},
)
GOOD = build([CHAIN])
FINAL = max(GOOD.routes)

EQ = Condition.EQ
LONGEST_ROWS = TINY.longest_rows


def refused(tables: Tables, config: DeviceConfig = TINY) -> LoadRefused:
    with pytest.raises(LoadRefused) as caught:
        check(tables, config)
    return caught.value


Place = tuple[int | None, str | None, int | None]


def place(refusal: LoadRefused) -> Place:
    return refusal.area, refusal.table, refusal.row


def change(**members: object) -> Tables:
    return dataclasses.replace(GOOD, **members)  # type: ignore[arg-type]


def routed(**routes: Route | None) -> Tables:
    """Returns GOOD with route rows replaced, added or (None) removed; `t7` is tag 7."""
    rows = {**GOOD.routes, **{int(tag[1:]): route for tag, route in routes.items()}}
    return change(routes={tag: route for tag, route in rows.items() if route is not None})


def test_good_tables_pass() -> None:
    pair = build([Query({R: UNBOUNDED, S: UNBOUNDED}, ((On(R, 0, "=", S, 0),),), {})], (0, 1))
    for config in CONFIGURATIONS.values():
        check(GOOD if config.streams > 2 else pair, config)


# --- programs -----------------------------------------------------------------


def words(*code: isa.Instruction | int) -> tuple[int, ...]:
    return tuple(each if isinstance(each, int) else each.encode() for each in code)


@pytest.mark.parametrize(
    ("code", "address", "reason"),
    [
        ([], None, "it is empty, it must end in a NOP"),
        ([Nop()] * 1025, None, "1025 instructions, at most 1024"),
        ([0x00001, Nop()], 0, "word 00001 encodes no instruction"),
        ([Nop(), 1 << 20, Nop()], 1, "word 100000 encodes no instruction"),
        ([Nop(), Jmp(0), Nop()], 1, "JMP 0 must go forward, to 2 to 2"),
        ([Nop(), Jmp(1), Nop()], 1, "JMP 1 must go forward, to 2 to 2"),
        ([Jmp(3), Nop(), Nop()], 0, "JMP 3 must go forward, to 1 to 2"),
        ([Nop(), Jmpct(9, 0), Nop()], 1, "JMPCT 9,0 must go forward, to 2 to 2"),
        ([Jmpct(9, 0), Nop()], 0, "JMPCT 9,0 must go forward, to 1 to 1"),
        ([Jmpct(9, 2), Nop()], 0, "JMPCT 9,2 must go forward, to 1 to 1"),
        ([Nop(), Cmp(0, 0, 0, EQ, 16), Nop()], 1, "must write a register of 0 to 15"),
        ([Cmp(0, 0, 0, EQ, 63), Nop()], 0, "must write a register of 0 to 15"),
        ([AndRegisters(0, 1, 15), Nop()], 0, "AND 0,1,15 must write a register of 16 to 31"),
        ([OrRegisters(0, 1, 32), Nop()], 0, "OR 0,1,32 must write a register of 16 to 31"),
        (
            [
                *[Cmp(0, 0, 0, EQ, r % 3) for r in range(9)],
                Nop(),
                *[Cmp(1, 0, 0, EQ, 4)] * 9,
                Nop(),
            ],
            17,
            "CMP 1,0,0,1,4 is comparison 17, at most 16: the factor array has one comparator a CMP",
        ),
        ([Nop(), Jmpli()], 1, "the last instruction is JMPLI, it must be NOP"),
        ([Emit(0, 3)], 0, "the last instruction is JOIN 0,3, it must be NOP"),
    ],
)
def test_programs_refused(
    code: Iterable[isa.Instruction | int], address: int | None, reason: str
) -> None:
    refusal = refused(with_area(GOOD, S, program=words(*code)))
    assert reason in refusal.reason
    assert place(refusal) == (S, "program", address)


@pytest.mark.parametrize(
    ("members", "code", "reason"),
    [
        ({"instructions": 2}, [Nop()] * 3, "3 instructions, at most 2"),
        ({"factors": 4}, [Cmp(0, 0, 0, EQ, 4), Nop()], "must write a register of 0 to 3"),
        (
            {"factors": 1},
            [Cmp(0, 0, 0, EQ, 0), Nop(), Cmp(0, 0, 0, Condition.TRUE, 0), Nop()],
            "CMP 0,0,0,6,0 is comparison 2, at most 1",
        ),
        (
            {"scratch_registers": 2},
            [AndRegisters(0, 1, 18), Nop()],
            "must write a register of 16 to 17",
        ),
        (
            {"scratch_registers": 0},
            [AndRegisters(0, 1, 16), Nop()],
            "must write a register of a kind",
        ),
        ({"attributes": 2}, [Cmp(2, 0, 0, EQ, 0), Nop()], "names an attribute over 1"),
        ({"attributes": 2}, [Cmp(0, 0, 3, EQ, 0), Nop()], "names an attribute over 1"),
    ],
)
def test_programs_a_smaller_device_refuses(
    members: dict[str, Any], code: list[isa.Instruction], reason: str
) -> None:
    with pytest.raises(LoadRefused) as caught:
        check_program(words(*code), dataclasses.replace(TINY, **members), 2)
    assert reason in caught.value.reason
    assert place(caught.value)[:2] == (2, "program")
    check_program(words(*code), TINY, 2)


def test_a_program_of_all_instructions_passes() -> None:
    code = [
        Cmp(3, 3, 3, Condition.FALSE, 15),
        Jmpli(),
        AndRegisters(63, 47, 31),
        OrRegisters(62, 0, 16),
        Jmpct(255, 6),
        Emit(63, 3),
        Jmp(8),
        Nop(),
        Nop(),
    ]
    assert check_program(words(*code), TINY, 0) == code
    check_program(words(*[Nop()] * 1024), TINY, 0)
    check_program(words(*[Cmp(0, 0, 0, EQ, 0)] * 16, Nop()), TINY, 0)


def test_rows_that_are_not_what_the_program_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake in the rows that loaders derive is found before a device uses them."""
    derive = AreaProgram.rows

    def one_missing(self: AreaProgram, tag: int, most: int) -> list[JoinRow] | None:
        rows = derive(self, tag, most)
        return rows and rows[:-1]

    monkeypatch.setattr(AreaProgram, "rows", one_missing)
    refusal = refused(GOOD)
    assert refusal.reason == "they are not what the program joins"
    assert place(refusal) == (R, "join rows", T)


def test_rows_that_could_not_be_proved_in_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def intricate(*_: object) -> bool:
        raise TooIntricate

    monkeypatch.setattr(checks, "join_alike", intricate)
    refusal = refused(GOOD)
    assert refusal.reason == "too intricate to be proved"
    assert place(refusal) == (R, "join rows", T)


@pytest.mark.parametrize("table", ["terms", "interest"])
def test_masks_that_would_lose_what_the_program_joins(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    derive = getattr(AreaProgram, table)

    def too_narrow(self: AreaProgram, tag: int, *most: int) -> object:
        found = derive(self, tag, *most)
        wrong = {"terms": frozenset([frozenset([15])]), "interest": frozenset()}
        return wrong[table] if tag == R and self.joins(tag) else found

    monkeypatch.setattr(AreaProgram, table, too_narrow)
    refusal = refused(GOOD)
    assert refusal.reason == "it drops pairs that the program joins"
    assert place(refusal) == (S, table, R)


def test_a_join_to_a_tag_without_a_route() -> None:
    refusal = refused(with_area(GOOD, T, program=assemble(Nop(), Emit(0, 200), Nop())))
    assert refusal.reason == "JOIN 0,200: the tag has no route"
    assert place(refusal) == (T, "program", 1)


# --- areas --------------------------------------------------------------------

FACTOR = Factor(0, 0, 0, EQ)
ROW = Combination(R, (), (), (), FINAL)


@pytest.mark.parametrize(
    ("members", "table", "row", "reason"),
    [
        ({"factors": (FACTOR,) * 17}, "factors", None, "17 factors, at most 16"),
        (
            {"factors": (FACTOR, Factor(4, 0, 0, EQ))},
            "factors",
            1,
            "it names an attribute that is not there",
        ),
        (
            {"factors": (Factor(0, 3, 0, EQ),)},
            "factors",
            0,
            "it names an attribute that is not there",
        ),
        (
            {"factors": (FACTOR, FACTOR, Factor(0, 0, 4, EQ))},
            "factors",
            2,
            "it names an attribute that is not there",
        ),
        (
            {"combinations": (ROW, dataclasses.replace(ROW, factors=(0, 2)))},
            "combinations",
            1,
            "it names factor 2, which is not there",
        ),
        (
            {"combinations": (dataclasses.replace(ROW, window_selections=(1,)),)},
            "combinations",
            0,
            "it names selection of the window 1, which is not there",
        ),
        (
            {"combinations": (ROW, dataclasses.replace(ROW, probe_selections=(15,)))},
            "combinations",
            1,
            "it names selection of the probe 15, which is not there",
        ),
        (
            {"combinations": (dataclasses.replace(ROW, pre_tag=200),)},
            "combinations",
            0,
            "it names tag 200, which has no route",
        ),
        (
            {"combinations": (ROW, ROW, dataclasses.replace(ROW, post_tag=201))},
            "combinations",
            2,
            "it names tag 201, which has no route",
        ),
        (
            {"retention": Retention(TINY.longest_range + 1)},
            "retention",
            None,
            f"it keeps tuples for {TINY.longest_range + 1} ticks, want -1",
        ),
        (
            {"retention": Retention(-2)},
            "retention",
            None,
            "it keeps tuples for -2 ticks, want -1",
        ),
        (
            {"retention": Retention(-1, LONGEST_ROWS + 1)},
            "retention",
            None,
            f"it keeps {LONGEST_ROWS + 1} rows, at most {LONGEST_ROWS}",
        ),
        ({"guards": {200: 0}}, "guards", 200, "the tag has no route"),
        ({"guards": {R: 2}}, "guards", R, "it names factor 2, which is not there"),
        ({"guards": {T: 1}}, "guards", T, "factor 1 compares by >, not ="),
        ({"guards": {R: 0, S: 0}}, "guards", S, "the tag has no combination"),
        (
            {
                "combinations": (ROW, dataclasses.replace(ROW, factors=(0,))),
                "guards": {R: 0},
            },
            "guards",
            R,
            "it is factor 0, which a combination of the tag does not require",
        ),
    ],
)
def test_areas_refused(
    members: dict[str, object], table: str, row: int | None, reason: str
) -> None:
    refusal = refused(with_area(GOOD, S, **members))
    assert reason in refusal.reason
    assert place(refusal) == (S, table, row)


def test_a_guard_that_the_program_does_not_require() -> None:
    """The processor would look at no other window tuples, and the models would."""
    guarded = with_area(GOOD, S, guards={R: 0})
    check(guarded, TINY)
    needs = AreaProgram(GOOD.areas[S].program).compares[0]
    where = needs.window_attribute, needs.probe_stream, needs.probe_attribute, needs.condition
    scratch = isa.SCRATCH_REGISTERS.start
    for joins, is_right in (
        ((AndRegisters(0, 1, scratch), Emit(scratch, FINAL)), True),
        ((OrRegisters(0, 1, scratch), Emit(scratch, FINAL)), False),
        ((Emit(0, FINAL), Emit(1, FINAL)), False),
        ((Emit(1, FINAL),), False),
        ((Cmp(*where, 2), OrRegisters(0, 2, scratch), Emit(scratch, FINAL)), True),
    ):
        code = (Cmp(*where, 0), Cmp(*where[:3], Condition.LT, 1), *joins, Nop())
        tables = with_area(guarded, S, program=assemble(*code))
        if is_right:
            check(tables, TINY)
        else:
            refusal = refused(tables)
            assert refusal.reason == "it is factor 0, which its program does not require"
            assert place(refusal) == (S, "guards", R)
        check(with_area(tables, S, guards={}), TINY)


# --- the other tables ---------------------------------------------------------


def compared(attribute: int, constant: int) -> tuple[tuple[Selection, ...], ...]:
    """Adds a second selection to S."""
    wrong = Selection(True, (Comparison(attribute, EQ, constant),))
    return (GOOD.selections[R], (*GOOD.selections[S], wrong), GOOD.selections[T])


@pytest.mark.parametrize(
    ("tables", "where", "reason"),
    [
        (
            build([CHAIN], (0, 1, 2, 3, 4)),
            (None, "groups", None),
            "5 streams, the device has 4",
        ),
        (
            change(groups=(0, 3, 2)),
            (None, "groups", S),
            "stream 3, whose copy it is, is not there",
        ),
        (change(areas=GOOD.areas[:2]), (None, "areas", None), "2 lists for 3 streams"),
        (change(selections=()), (None, "selections", None), "0 lists for 3 streams"),
        (change(admission=((),) * 4), (None, "admission", None), "4 lists for 3 streams"),
        (
            change(selections=((), (Selection(True, ()),) * 17, ()), admission=((),) * 3),
            (S, "selections", None),
            "17 selections, at most 16",
        ),
        (
            change(selections=compared(4, 0)),
            (S, "selections", 1),
            "it compares attribute 4, which is not there",
        ),
        (
            change(selections=compared(0, 65536)),
            (S, "selections", 1),
            "constant 65536 is wider than",
        ),
        (
            change(admission=((), (), (1,))),
            (T, "admission", 0),
            "it names a selection that is not there",
        ),
        (
            change(admission=((1, 0b100), (), ())),
            (R, "admission", 1),
            "it names a selection that is not there",
        ),
        (
            change(
                selections=((), (Selection(False, ()),) * 2, ()), admission=((), (3,) * 128, ())
            ),
            (S, "selections", None),
            "258 places for comparisons and admission masks, at most 256",
        ),
        (change(windows=GOOD.windows * 65), (None, "windows", None), "65 queries, at most 64"),
        (
            change(windows=(GOOD.windows[0][:2],)),
            (None, "windows", 0),
            "2 windows for 3 streams",
        ),
        (
            change(windows=(GOOD.windows[0], (UNBOUNDED, RANGE(TINY.longest_range + 1), ROWS(1)))),
            (S, "windows", 1),
            f"RANGE {TINY.longest_range + 1} is longer than {TINY.longest_range}",
        ),
        (
            change(windows=(GOOD.windows[0], (ROWS(1), ROWS(1), ROWS(LONGEST_ROWS + 1)))),
            (T, "windows", 1),
            f"ROWS {LONGEST_ROWS + 1} is longer than {LONGEST_ROWS}",
        ),
        (routed(t1=None), (None, "routes", S), "a raw stream has no row"),
        (routed(t256=Route()), (None, "routes", 256), "the last tag is 255"),
        (
            routed(t3=Route(insert=True)),
            (None, "routes", 3),
            "it inserts, only raw tuples may",
        ),
        (
            routed(t3=Route(probes=frozenset({3}))),
            (None, "routes", 3),
            "it names area 3, which is not there",
        ),
        (
            routed(t4=Route(queries=frozenset({0, 1}))),
            (None, "routes", 4),
            "it names query 1, which is not there",
        ),
        (change(filters=(0, 0)), (None, "filters", None), "2 filters for 1 queries"),
        (
            change(filters=(1,)),
            (None, "filters", 0),
            "it names a selection that tuples of route tag 4 do not have",
        ),
        (
            dataclasses.replace(
                routed(t1=Route(True, GOOD.routes[S].probes, frozenset({0}))), filters=(2,)
            ),
            (S, "filters", 0),
            "it names a selection that tuples of route tag 1 do not have",
        ),
    ],
)
def test_tables_refused(tables: Tables, where: Place, reason: str) -> None:
    refusal = refused(tables)
    assert reason in refusal.reason
    assert place(refusal) == where


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"streams": 2}, "3 streams, the device has 2"),
        ({"selections": 0}, "1 selections, at most 0"),
        ({"attributes": 1}, "it compares attribute 1, which is not there"),
        ({"tags": 8}, "the last tag is 7"),
        ({"comparisons": 1}, "2 places for comparisons and admission masks, at most 1"),
        ({"comparisons": 2}, None),
        ({"attribute_width": 8}, None),
    ],
)
def test_tables_a_smaller_device_refuses(members: dict[str, Any], reason: str | None) -> None:
    config = dataclasses.replace(TINY, **members)
    if reason is None:
        check(GOOD, config)
    else:
        assert reason in refused(GOOD, config).reason


def test_extremes_pass() -> None:
    longest = Window(WindowKind.RANGE, TINY.longest_range)
    most = Window(WindowKind.ROWS, LONGEST_ROWS)
    check(change(windows=((longest, most, UNBOUNDED),) * 64), TINY)
    check(with_area(GOOD, R, retention=Retention(TINY.longest_range, LONGEST_ROWS)), TINY)
    check(change(selections=compared(3, 65535)), TINY)
    check(routed(t255=Route()), TINY)
    check(change(admission=((), (1,) * 255, ())), TINY)
    check(with_area(GOOD, S, guards={R: 0}), TINY)
    # A device without an index ignores guards.
    check(with_area(GOOD, S, guards={R: 0}), dataclasses.replace(TINY, indexes=0))


# --- circulation --------------------------------------------------------------


def test_a_tag_may_not_probe_what_it_carries() -> None:
    """A raw R, joined in S, goes back to R: through the program only, or through combinations
    only."""
    first = min(tag for tag in GOOD.routes if tag > T and GOOD.routes[tag].probes == {T})
    back = routed(**{f"t{first}": Route(probes=frozenset({R}))})
    stated = with_area(
        with_area(back, R, combinations=(Combination(first, (), (), (), FINAL),)),
        R,
        program=assemble(Nop()),
    )
    executed = with_area(back, R, combinations=(), program=assemble(Emit(63, FINAL), Nop()))
    for tables in (stated, executed):
        refusal = refused(tables)
        assert refusal.reason == "it probes a stream that it carries already"
        assert place(refusal) == (R, "routes", first)


def test_a_raw_tuple_may_not_join_with_its_own_window() -> None:
    own = routed(t0=Route(True, frozenset({R})))
    refusal = refused(with_area(own, R, program=assemble(Emit(63, FINAL), Nop())))
    assert refusal.reason == "it probes a stream that it carries already"
    assert place(refusal) == (R, "routes", R)


def test_nothing_joins_to_a_raw_tag() -> None:
    executed = with_area(
        GOOD, S, program=assemble(Jmpct(R, 2), Emit(63, T), Nop()), combinations=()
    )
    stated = with_area(GOOD, S, combinations=(ROW, dataclasses.replace(ROW, post_tag=T)))
    for tables, row in ((executed, ("program", 1)), (stated, ("combinations", 1))):
        refusal = refused(tables)
        assert refusal.reason == "tag 0 joins to tag 2, a raw tuple's"
        assert place(refusal) == (S, *row)


def test_a_ring_of_tags_is_refused() -> None:
    """Tag 3 joins to itself: without the check, a raw tuple would circulate for ever."""
    ring = routed(t3=Route(probes=frozenset({S})))
    code = assemble(Jmpct(R, 2), Emit(63, 3), Jmpct(3, 4), Emit(63, 3), Nop())
    refusal = refused(with_area(ring, S, program=code, combinations=()))
    assert refusal.reason == "it probes a stream that it carries already"
    assert place(refusal) == (S, "routes", 3)


def test_what_no_raw_tuple_gets_to_may_be_a_ring() -> None:
    """Tags 200 and 201 lead to each other, but no raw tuple reaches them."""
    idle = routed(t200=Route(probes=frozenset({S})), t201=Route(probes=frozenset({S})))
    code = assemble(Jmpct(200, 2), Emit(63, 201), Jmpct(201, 4), Emit(63, 200), Nop())
    check(with_area(idle, S, program=code, combinations=()), TINY)


def test_a_join_jumped_over_is_not_reached() -> None:
    code = assemble(Jmp(2), Emit(63, T), Jmpct(T, 4), Emit(63, R), Nop())
    never = routed(t2=Route(), t1=Route(True), t0=Route(True, frozenset({S})))
    check(with_area(never, S, program=code, combinations=()), TINY)


def test_a_full_table_of_tags_passes() -> None:
    """Raw R goes through S, T and U; each area joins to its third of all tags, in a program and
    combinations of maximal length. The check must look up only once what a tag can become, or it
    hangs."""
    thirds = [range(4, 88), range(88, 172), range(172, 256)]
    tables = build([CHAIN], (0, 1, 2, 3))
    routes = {stream: Route(stream > R) for stream in range(4)}
    routes[R] = Route(False, frozenset({S}))
    before = [R]
    for area, (tags, probes) in enumerate(zip(thirds, ({T}, {3}, set()), strict=True), start=1):
        routes |= {tag: Route(probes=frozenset(probes)) for tag in tags}
        joins = [Emit(63, tags[n % len(tags)]) for n in range(1023)]
        rows = tuple(Combination(pre, (), (), (), post) for pre in before for post in tags)
        program = assemble(*joins, Nop())
        tables = with_area(tables, area, program=program, factors=(), combinations=rows)
        before = list(tags)
    check(dataclasses.replace(tables, routes=routes), TINY)


# --- groups -------------------------------------------------------------------


def test_good_groups_pass() -> None:
    for key in (None, (R, 0), (T, 3)):
        check(dataclasses.replace(GOOD, grouped={FINAL: Grouped(0, key, (S, 1), 1)}), TINY)


@pytest.mark.parametrize(
    ("tag", "grouped", "reason"),
    [
        (FINAL, Grouped(1, None, None, 1), "it groups query 1, which the tag does not satisfy"),
        (R, Grouped(0, None, None, 1), "it groups query 0, which the tag does not satisfy"),
        (200, Grouped(0, None, None, 1), "it groups query 0, which the tag does not satisfy"),
        (FINAL, Grouped(0, (3, 0), None, 1), "it names an attribute that is not there"),
        (FINAL, Grouped(0, None, (S, 4), 1), "it names an attribute that is not there"),
        (FINAL, Grouped(0, None, None, 0), "its periods are 0 ticks long"),
    ],
)
def test_groups(tag: int, grouped: Grouped, reason: str) -> None:
    refusal = refused(dataclasses.replace(GOOD, grouped={tag: grouped}))
    assert refusal.reason == reason
    assert place(refusal) == (None, "grouped", tag)


def test_groups_by_a_stream_that_is_not_there() -> None:
    pair = build(
        [Query(dict.fromkeys((R, S), UNBOUNDED), ((On(R, 0, "=", S, 0),),), {})], (0, 1, 2)
    )
    tag = max(tag for tag, route in pair.routes.items() if route.queries)
    check(dataclasses.replace(pair, grouped={tag: Grouped(0, (S, 0), None, 1)}), TINY)
    refusal = refused(dataclasses.replace(pair, grouped={tag: Grouped(0, (T, 0), None, 1)}))
    assert refusal.reason == "it groups by a stream that the tag does not carry"
    assert place(refusal) == (None, "grouped", tag)
