"""Tests the words that a host loads tables with against the layouts by which the processor reads
them."""

from __future__ import annotations

import random

import pytest
from amaranth.lib import data

from seustream.compiler.wjasip.image import decode, encode
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.control import COMMAND, RESPONSE
from seustream.hdl.control_words import (
    LAST_WORD,
    TERMS,
    Command,
    ControlOperation,
    SelectionEntry,
    Target,
    Verdict,
    load_commands,
)
from seustream.hdl.device import Comparison, Tables
from seustream.hdl.hashing import seed_of
from seustream.hdl.isa import Condition
from seustream.hdl.layouts import Layouts
from seustream.hdl.program import AreaProgram
from seustream.hdl.window import RangeKind
from seustream.hdl.window_tests import WindowTests
from tests.cosim.generate import random_queries
from tests.cosim.queries import build
from tests.hdl.bench import pack, unpack
from tests.hdl.programs import places_of
from tests.hdl.test_selection_and_selectors import HOLDS
from tests.hdl.test_top_and_area import with_guards

TINY = CONFIGURATIONS["tiny"]


@pytest.mark.parametrize("kind", [ControlOperation, Target, Verdict])
def test_every_code_fits_its_field(kind: type) -> None:
    field = {ControlOperation: "operation", Target: "target"}.get(kind)
    width = COMMAND[field].width if field else RESPONSE["verdict"].width
    assert max(kind) < 1 << width


@pytest.mark.parametrize("seed", range(20))
def test_a_command_is_its_members(seed: int) -> None:
    chance = random.Random(seed)
    members = {key: chance.getrandbits(field.width) for key, field in COMMAND}
    assert list(members) == list(Command.__dataclass_fields__)
    assert unpack(COMMAND, pack(COMMAND, members)) == members


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_selection_entry_is_read_as_it_was_meant(name: str) -> None:
    config, chance = CONFIGURATIONS[name], random.Random(name)
    for _ in range(100):
        members = {
            name: chance.getrandbits(width)
            for name, width in (
                ("compares", 1), ("admits", 1), ("every", 1), ("group", 4),
                ("attribute", 2), ("equal", 1), ("negated", 1),
                ("constant", max(config.attribute_width, 16)),
            )
        }  # fmt: skip
        last = chance.random() < 0.5
        read = unpack(Layouts(config).selection_entry, SelectionEntry(**members).encode(last))
        assert read.pop("last") == last
        assert read["kind"] | read["operand"] == members


@pytest.mark.parametrize("condition", Condition)
def test_a_comparison_is_less_or_equal_or_not(condition: Condition) -> None:
    width = 3
    for constant in range(1 << width):
        entry = SelectionEntry.of(Comparison(2, condition, constant), True, 5, width)
        assert (entry.compares, entry.attribute, entry.every, entry.group) == (True, 2, True, 5)
        assert 0 <= entry.constant < 1 << width
        for value in range(1 << width):
            found = value == entry.constant if entry.equal else value < entry.constant
            assert found ^ entry.negated == HOLDS[condition](value, constant)


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.parametrize("seed", range(5))
def test_tables_come_back_from_their_commands(name: str, seed: int) -> None:
    """Reads them as the processor does; a table with a place for each tag or stream gets one entry
    for all."""
    config, chance = CONFIGURATIONS[name], random.Random(seed)
    some = [(0, 1), (0, 1, 2), (0, 0, 2)]
    groups = chance.choice([one for one in some if len(one) <= config.streams])
    while True:
        tables = with_guards(chance, build(random_queries(chance, groups), groups))
        if len(tables.routes) <= config.tags:
            break
    tables = decode(encode(tables, config), config)
    layouts = Layouts(config)
    written = list(load_commands(tables, config))
    assert all(command.operation is ControlOperation.WRITE for command in written)
    by_target: dict[int, list[Command]] = {}
    for command in written:
        by_target.setdefault(command.target, []).append(command)
        for member in ("target", "unit", "address", "data"):
            assert getattr(command, member) < 1 << COMMAND[member].width
    everywhere = {(unit, tag) for unit in range(config.streams) for tag in range(config.tags)}

    for unit in range(config.streams):
        mine = [c for c in by_target[Target.INSTRUCTION] if c.unit == unit]
        assert [c.address for c in mine] == list(range(len(mine)))
        assert [bool(c.data & LAST_WORD) for c in mine] == [*[False] * (len(mine) - 1), True]
        if unit < tables.streams:
            assert tuple(c.data % LAST_WORD for c in mine) == tables.areas[unit].program
        entries = [c for c in by_target[Target.SELECTION] if c.unit == unit]
        assert [c.address for c in entries] == list(range(len(entries)))
        assert [c.data & 1 for c in entries] == [*[0] * (len(entries) - 1), 1]

    indexed = {
        (c.unit, c.address): c.data & 3 for c in by_target.get(Target.INDEX, ()) if c.data & 4
    }
    by_row = {(c.unit, c.address): c for c in by_target.get(Target.JOIN_ROW, ())}
    plans = by_target[Target.PROBE_PLAN]
    assert {(c.unit, c.address) for c in plans} == everywhere
    for c in plans:
        word = data.StructLayout({"interest": layouts.interest, "plan": layouts.probe_plan})
        plan, worth = (unpack(word, c.data)[name] for name in ("plan", "interest"))
        assert pack(word, {"plan": plan, "interest": worth}) == c.data
        if c.unit >= tables.streams:
            continue
        area = tables.areas[c.unit]
        interest = AreaProgram(area.program).interest(c.address)
        assert bool(worth["always"]) == (interest is None)
        assert worth["factors"] == sum(1 << factor for factor in interest or ())
        if config.lanes:
            _check_turns(plan, AreaProgram(area.program), c.address, config)
        if plan["indexed"]:
            guard = area.factors[area.guards[c.address]]
            assert guard.condition is Condition.EQ
            assert (plan["stream"], plan["attribute"]) == (
                guard.probe_stream,
                guard.probe_attribute,
            )
            assert indexed[c.unit, plan["index"]] == guard.window_attribute
        if plan["rows"]:
            kept = [
                unpack(layouts.join_row, by_row[c.unit, plan["row"] + number].data)
                for number in range(plan["rows"])
            ]
            rows = AreaProgram(area.program).rows(c.address, 31) or []
            assert kept == [
                {"needs": sum(1 << n for n in row.needs), "tag": row.tag, "first": row.first}
                for row in rows
            ]
        else:  # no room for what it joins, it joins nothing, or there are no factors
            led = c.address in tables.routes and c.unit in tables.routes[c.address].probes
            assert not (led and config.lanes and AreaProgram(area.program).rows(c.address, 4))

    seeds = by_target[Target.SEED]
    assert [(c.unit, c.address) for c in seeds] == [(u, 0) for u in range(config.streams)]
    assert {c.data for c in seeds} == {seed_of(tables, config)}
    assert {(c.unit, c.address) for c in by_target[Target.TERMS]} == everywhere
    for c in by_target[Target.TERMS]:
        if c.unit < tables.streams:
            terms = AreaProgram(tables.areas[c.unit].program).terms(c.address, TERMS)
            masks = {sum(1 << factor for factor in term) for term in terms} or {0}
            assert {*unpack(layouts.terms, c.data)} == masks

    for c in by_target[Target.DESTINATION]:
        where = unpack(layouts.destination, c.data)
        route = tables.routes.get(c.address)
        probes = route.probes if route else frozenset()
        joins = {
            area for area in probes if AreaProgram(tables.areas[area].program).joins(c.address)
        }
        assert where["areas"] == sum(1 << area for area in joins)
        assert bool(where["output"]) == bool(route and route.queries)
    for c in by_target[Target.QUERIES]:
        route = tables.routes.get(c.address)
        assert c.data == sum(1 << query for query in (route.queries if route else ()))
    _tests_of_windows(tables, written, config)
    for unit, area in enumerate(tables.areas):
        (kind,) = [c for c in by_target[Target.RANGE] if c.unit == unit]
        (rows,) = [c for c in by_target[Target.ROWS] if c.unit == unit]
        assert rows.data == area.retention.rows
        age = area.retention.range
        wanted = {None: RangeKind.FOREVER, -1: RangeKind.NONE}.get(age, RangeKind.TICKS)
        assert RangeKind(kind.address) is wanted
        assert kind.data == (age if wanted is RangeKind.TICKS else 0)
        (route,) = [c for c in by_target[Target.RAW_ROUTE] if c.unit == unit]
        assert route.data == tables.routes[unit].insert | tables.groups[unit] << 1


def _check_turns(plan: dict, program: AreaProgram, tag: int, config: DeviceConfig) -> None:
    """Asserts that turns go from the first to the last one with a factor that decides the tag's
    pairs."""
    places = places_of([compare.window_attribute for compare in program.compares], config)
    needed = {*range(len(places))}
    if plan["rows"]:
        of_rows = [row.needs for row in program.rows(tag, 31) or ()]
        needed &= set().union(*of_rows, *program.terms(tag, TERMS), program.interest(tag) or ())
    turns = {places[factor]["turn"] for factor in needed} or {0}
    assert plan["turns"] == {"first": min(turns), "last": max(turns)}


def _tests_of_windows(tables: Tables, commands: list[Command], config: DeviceConfig) -> None:
    """Asserts that the words say what was made of the windows (`test_window_tests`)."""
    wanted, layouts = WindowTests.of(tables, config.streams), Layouts(config)
    parts = {Target.TEST: 2, Target.SET: 1, Target.QUERIES: 1}
    kept: list[int] = []
    found: dict[Target, dict[int, tuple[int, ...]]] = {target: {} for target in parts}
    for c in commands:
        if c.target is Target.PART:
            kept.append(c.data)
        elif c.target in parts and (kept or c.target is not Target.QUERIES):
            assert len(kept) == parts[c.target]
            found[c.target][c.address] = (c.data, *kept)
            kept = []
    assert {tag: part for tag, (_, part) in found[Target.QUERIES].items()} == wanted.first
    for number, test in enumerate(wanted.tests):
        if number or 0 in wanted.first.values():
            data, high, low = found[Target.TEST].pop(number)
            word = data | (low | high << layouts.limit) << layouts.window_test["low"].offset
            assert unpack(layouts.window_test, word) == {
                "steps": [{"then": step.then, "index": step.index} for step in test.steps],
                "kinds": list(test.kinds),
                "low": test.limits[0],
                "high": test.limits[1],
            }
    assert not found[Target.TEST]
    for number, left in enumerate(wanted.sets):
        assert found[Target.SET].pop(number) == (left.queries, left.next)
    assert not found[Target.SET]


def test_a_stream_that_is_not_used_lets_nothing_in() -> None:
    config = DeviceConfig(streams=3)
    tables = build([random_queries(random.Random(0), (0, 1))[0]], (0, 1))
    (entry,) = [c for c in load_commands(tables, config)
                if c.target is Target.SELECTION and c.unit == 2]  # fmt: skip
    read = unpack(Layouts(config).selection_entry, entry.data)
    assert read["last"]
    assert not any(read["kind"].values())
