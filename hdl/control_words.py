"""Defines the commands that a host sends to a WJASIP's control unit, and the answers.

A command is one word of the control stream and is answered by one word of the response
stream. Tables are written to the half of every memory that is not in use; `COMMIT` waits
until nothing is in flight and exchanges the halves, `ABORT` discards what was written.
A refusal therefore leaves the running tables as they were.

    BEGIN                       start writing tables
    WRITE   target unit address data
    COMMIT  data[0]: also empty the windows
    ABORT
    RESET                       empty the windows, clear clock and counters
    PAUSE / RESUME              hold raw tuples at the input / go on
    READ    address             a counter, see `Counter`; the counters of units may lag by as
                                many cycles as there are of them

`load_commands` turns the tables of an image into commands; `Verdict` lists what the
device may answer.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from seustream.hdl import isa
from seustream.hdl.config import DeviceConfig
from seustream.hdl.device import Area, Comparison, Grouped, Tables
from seustream.hdl.hashing import seed_of
from seustream.hdl.program import AreaProgram, JoinRow
from seustream.hdl.window_tests import KIND_BITS, STEP_BITS, THEN_BITS, WindowTest, WindowTests


class ControlOperation(enum.IntEnum):
    BEGIN = 0
    WRITE = 1
    COMMIT = 2
    ABORT = 3
    RESET = 4
    PAUSE = 5
    RESUME = 6
    READ = 7


class Target(enum.IntEnum):
    """Targets of a WRITE. `unit` is an area or stream.

    INSTRUCTION  unit; address; word | LAST at the highest address; in order from 0
    PROBE_PLAN   unit; route tag; which pairs of its probes are worth executing (`Layouts.interest`), and what the
                 area does with these probes (`Layouts.probe_plan`)
    DESTINATION  route tag; areas to probe | output (for all units at once)
    QUERIES      route tag; set of queries. Before it, as PART: the tag's first window test and, from bit
                 `GROUP_PLAN_AT` on, how its results are grouped (`Layouts.group_plan`)
    RAW_ROUTE    unit; stores | group of the stream
    TEST         number of a window test; what it compares and where it leads (`word_of`). Before it, as PART:
                 its higher limit, then its lower one
    SELECTION    unit; entries of its selection table, in order (`SelectionEntry`)
    RANGE        unit; address: 0 none, 1 data ticks, 2 forever
    ROWS         unit; data: rows
    INDEX        unit; address: index; data: window attribute | enable << 2
    TERMS        unit; route tag; conjunctions of factors, at least one of which holds in every pair worth
                 executing (`Layouts.terms`)
    SEED         unit; data: seed of the hash of its indexes
    JOIN_ROW     unit; row; what a pair needs to join, and as which route tag (`Layouts.join_row`)
    SET          set; its queries. Before it, as PART: the test that follows
    FILTER       unit; index of four selection bits << 4 | their values; data: of the queries over this stream
                 alone, those that need none of the four bits that are 0
    PART         data of a table that is wider than a command; the last two are kept
    """

    INSTRUCTION = 0
    PROBE_PLAN = 1
    DESTINATION = 2
    QUERIES = 3
    RAW_ROUTE = 4
    TEST = 5
    SELECTION = 6
    RANGE = 7
    ROWS = 8
    INDEX = 9
    TERMS = 10
    SEED = 11
    JOIN_ROW = 12
    SET = 13
    PART = 14
    FILTER = 15


class Verdict(enum.IntEnum):
    """Answer to a command."""

    OK = 0
    NOT_LOADING = 1  # WRITE, COMMIT or ABORT without BEGIN
    LOADING = 2  # BEGIN or RESET during a load
    BAD_TARGET = 3  # no such target or unit
    BAD_ADDRESS = 4  # beyond the table, or an instruction or selection entry out of order
    UNDEFINED_WORD = 5  # encodes no instruction
    BAD_JUMP = 6  # not forward
    BAD_REGISTER = 7  # writes a register that it must not write
    TOO_MANY_COMPARES = 8  # more CMPs than the configuration has factors
    NO_LAST_NOP = 9  # the last instruction is no NOP, or a jump leads past it
    INCOMPLETE = 10  # COMMIT while a program or a selection table lacks its last entry


class Counter(enum.IntEnum):
    """Counters that READ returns. The first group counts as `seustream.hdl.device.Status` does."""

    TAKEN = 0
    TICKS = 1
    DROPPED = 2
    PAIRS = 3
    CIRCULATED = 4
    DELIVERED = 5
    HANDED_OVER = 6
    CYCLES = 7
    HITS = 8
    STALLS = 9
    REWINDS = 10
    STATE = 11  # loaded | loading << 1 | paused << 2
    OCCUPANCY = 16  # and the next streams - 1
    CYCLES_OF_UNITS = 64  # busy and blocked of each of `units`, in this order


_UNITS, _UNITS_OF_AREA = (
    ("door", "sequencer", "router", "fetch", "output"),
    ("window", "loader", "scanner", "execution"),
)


def units(config: DeviceConfig) -> list[str]:
    """Names the units of a processor whose cycles are counted; those of an area with its number."""
    areas = range(config.streams)
    own = [*_UNITS, "grouping"] if config.groups else _UNITS
    return [*own, *(f"{unit} {area}" for area in areas for unit in _UNITS_OF_AREA)]


FILTERED = 4
"""Selection bits that the output looks up at once."""
FILTER_BITS = 6
"""Width of a FILTER address: which selection bits, and their values."""
GROUP_PLAN_AT = 16
TERMS = 4
"""Conjunctions of factors per route tag; four of sixteen factors each fill a command's data."""
ROW_BITS, ROWS_BITS = 7, 5
JOIN_ROWS = 1 << ROW_BITS
"""Join rows of an area, which restate its program for as many tags as there is room for."""
NEEDS_BITS = (
    len(isa.FACTOR_REGISTERS)
    + len(isa.WINDOW_SELECTION_REGISTERS)
    + len(isa.PROBE_SELECTION_REGISTERS)
)
_MOST_ROWS = (1 << ROWS_BITS) - 1
LAST_WORD = 1 << isa.WORD_BITS


@dataclass(frozen=True, slots=True)
class Command:
    """One word of the control stream."""

    operation: ControlOperation
    target: int = 0
    unit: int = 0
    address: int = 0
    data: int = 0


OPERATION_BITS, TARGET_BITS, UNIT_BITS, ADDRESS_BITS, DATA_BITS = 3, 4, 2, 10, 64


@dataclass(frozen=True, slots=True)
class SelectionEntry:
    """An entry of a stream's selection table. An entry that `compares` contributes to a selection bit. Its place
    in the row selects the bit, together with the row's `group` if there are fewer selectors than bits. The bit
    needs all of its entries (`every`) or one of them. An entry holds if the attribute is less than the
    constant, or with `equal` if it equals it; `negated` inverts this. An entry that `admits` has a mask in
    `constant`: it admits a tuple with all of these bits (`every`), or with one of them. An entry that does
    neither is empty."""

    compares: bool = False
    admits: bool = False
    every: bool = False
    group: int = 0
    attribute: int = 0
    equal: bool = False
    negated: bool = False
    constant: int = 0

    HEAD_BITS = 12

    def encode(self, last: bool) -> int:
        head = last | self.compares << 1 | self.admits << 2 | self.every << 3 | self.group << 4
        head |= self.attribute << 8 | self.equal << 10 | self.negated << 11
        return head | self.constant << self.HEAD_BITS

    @classmethod
    def of(cls, comparison: Comparison, every: bool, group: int, width: int) -> SelectionEntry:
        """Encodes a comparison of attributes of `width` bits. `> c` becomes `not < c + 1`, if c + 1 fits."""
        is_, condition, constant = isa.Condition, comparison.condition, comparison.constant
        equal = condition in (is_.EQ, is_.NE)
        negated = condition in (is_.NE, is_.GE, is_.GT, is_.TRUE)
        if condition in (is_.GT, is_.LE):
            constant += 1
        if constant >> width:
            # Every value is less than this constant, and not less than 0.
            negated, constant = not negated, 0
        if condition in (is_.TRUE, is_.FALSE):
            constant = 0  # no value is less
        return cls(True, False, every, group, comparison.attribute, equal, negated, constant)


def load_commands(tables: Tables, config: DeviceConfig, by_rows: bool = True) -> Iterator[Command]:
    """Lists all WRITE commands that load these tables, without BEGIN and COMMIT. Unless `by_rows`,
    every pair runs the program, even if rows would do."""
    programs = [AreaProgram(area.program) for area in tables.areas]
    seed = seed_of(tables, config)
    for unit in range(config.streams):
        if unit < tables.streams:
            led = {tag for tag, route in tables.routes.items() if by_rows and unit in route.probes}
            yield from _area(unit, tables.areas[unit], programs[unit], led, config)
            stores = tables.routes[unit].insert
            group, entries = tables.groups[unit], _selection_table(tables, unit, config)
        else:  # a stream the image does not use
            unused = AreaProgram(_UNUSED_AREA.program)
            yield from _area(unit, _UNUSED_AREA, unused, set(), config)
            stores, group, entries = False, unit, [SelectionEntry()]
        yield Command(ControlOperation.WRITE, Target.SEED, unit, 0, seed)
        yield Command(ControlOperation.WRITE, Target.RAW_ROUTE, unit, 0, int(stores) | group << 1)
        for address, entry in enumerate(entries):
            word = entry.encode(address == len(entries) - 1)
            yield Command(ControlOperation.WRITE, Target.SELECTION, unit, address, word)
    for tag in range(config.tags):
        areas = output = 0
        if tag in tables.routes:
            route = tables.routes[tag]
            # A probe that cannot join anything need not be sent.
            areas = sum(1 << area for area in route.probes if programs[area].joins(tag))
            output = bool(route.queries) << config.streams
        yield Command(ControlOperation.WRITE, Target.DESTINATION, 0, tag, areas | output)
    yield from output_commands(tables, config)


def output_commands(tables: Tables, config: DeviceConfig) -> Iterator[Command]:
    """Writes the tables of the output: the queries of each route tag, their window tests, and the filters
    of the queries over one stream."""
    tests = WindowTests.of(tables, config.streams)
    for tag in range(config.tags):
        queries = 0
        if tag in tests.first:
            queries = sum(1 << query for query in tables.routes[tag].queries)
            yield _part(tests.first[tag] | _group_plan(tables.grouped.get(tag)) << GROUP_PLAN_AT)
        yield Command(ControlOperation.WRITE, Target.QUERIES, 0, tag, queries)
    for number, test in enumerate(tests.tests):
        if number or 0 in tests.first.values():
            yield from (_part(limit) for limit in reversed(test.limits))
            yield Command(ControlOperation.WRITE, Target.TEST, 0, number, word_of(test))
    for number, left in enumerate(tests.sets):
        yield _part(left.next)
        yield Command(ControlOperation.WRITE, Target.SET, 0, number, left.queries)

    for stream in range(tables.streams):
        if over_one := tables.routes[stream].queries:
            yield from _filters(tables, stream, over_one)


def _group_plan(grouped: Grouped | None) -> int:
    if grouped is None:
        return 0
    plan, at = 1 | grouped.query << 1, 7
    for place in (grouped.key, grouped.value):
        if place is not None:
            plan |= (1 | place[0] << 1 | place[1] << 3) << at
        at += 5
    return plan


def _filters(tables: Tables, stream: int, queries: frozenset[int]) -> Iterator[Command]:
    """Lists, for every value of each four selection bits, the queries over one stream whose filters it passes."""
    for address in range(1 << FILTER_BITS):
        place, bits = divmod(address, 1 << FILTERED)
        missing = ~bits & (1 << FILTERED) - 1
        passed = (q for q in queries if not tables.needs(q) >> FILTERED * place & missing)
        word = sum(1 << query for query in passed)
        yield Command(ControlOperation.WRITE, Target.FILTER, stream, address, word)


def _part(data: int) -> Command:
    return Command(ControlOperation.WRITE, Target.PART, 0, 0, data)


def word_of(test: WindowTest) -> int:
    """Encodes a test without its limits: where it leads, and what it compares (`Layouts.window_test`)."""
    word = at = 0
    for step in test.steps:
        word |= (step.then | step.index << THEN_BITS) << at
        at += THEN_BITS + STEP_BITS
    for kind in test.kinds:
        word |= kind << at
        at += KIND_BITS
    return word


def _area(
    unit: int, area: Area, program: AreaProgram, led: set[int], config: DeviceConfig
) -> Iterator[Command]:
    """Writes the tables of an area; `led` is the set of tags whose probes are sent here."""
    last = len(area.program) - 1
    for address, word in enumerate(area.program):
        data = word | (LAST_WORD if address == last else 0)
        yield Command(ControlOperation.WRITE, Target.INSTRUCTION, unit, address, data)
    indexed = _indexed_attributes(area, config)
    for number in range(config.indexes):
        data = indexed[number] | 4 if number < len(indexed) else 0
        yield Command(ControlOperation.WRITE, Target.INDEX, unit, number, data)
    rows, places = _join_rows(program, led, config)
    for number, row in enumerate(rows):
        yield Command(ControlOperation.WRITE, Target.JOIN_ROW, unit, number, row)
    for tag in range(config.tags):
        data = _probe_plan(area, program, tag, indexed, places.get(tag, range(0)), config)
        yield Command(ControlOperation.WRITE, Target.PROBE_PLAN, unit, tag, data)
        yield Command(ControlOperation.WRITE, Target.TERMS, unit, tag, _terms(program, tag, config))
    age = area.retention.range
    kind = 2 if age is None else int(age >= 0)
    yield Command(ControlOperation.WRITE, Target.RANGE, unit, kind, max(age or 0, 0))
    yield Command(ControlOperation.WRITE, Target.ROWS, unit, 0, area.retention.rows)


_UNUSED_AREA = Area(program=(isa.Nop().encode(),))


def _probe_plan(
    area: Area,
    program: AreaProgram,
    tag: int,
    indexed: list[int],
    rows: range,
    config: DeviceConfig,
) -> int:
    """Encodes an area's plan for probes of a tag: `Layouts.interest`, followed by `Layouts.probe_plan`."""
    interest = interest_mask(program, tag)
    plan = 1 << config.factors if interest is None else interest
    at = config.factors + 1
    plan |= (rows.start | len(rows) << ROW_BITS) << at + 7
    if config.lanes:
        turns, bits = _turns(program, tag, bool(rows), config), (config.turns - 1).bit_length()
        plan |= (turns[0] | turns[-1] << bits) << at + 7 + ROW_BITS + ROWS_BITS
    if tag in area.guards:
        guard = area.factors[area.guards[tag]]
        if guard.window_attribute in indexed:
            plan |= 1 << at | indexed.index(guard.window_attribute) << at + 1
            plan |= guard.probe_stream << at + 3 | guard.probe_attribute << at + 5
    return plan


def _turns(program: AreaProgram, tag: int, by_rows: bool, config: DeviceConfig) -> range:
    """The turns of a row that a tag's probes need: those that compare factors of its rows or, without rows, all
    turns. The turn of a factor follows from the number of earlier factors of the same kind."""
    kinds = [cmp.window_attribute % config.kinds for cmp in program.compares]
    turns = [kinds[:n].count(kind) // config.comparators_alike for n, kind in enumerate(kinds)]
    if by_rows:
        terms = {need for row in program.rows(tag, _MOST_ROWS) or () for need in row.needs}
        needed = terms | set(program.interest(tag) or ()) | set().union(*program.terms(tag, TERMS))
        turns = [turn for factor, turn in enumerate(turns) if factor in needed]
    return range(min(turns, default=0), max(turns, default=0) + 1)


def _join_rows(
    program: AreaProgram, tags: set[int], config: DeviceConfig
) -> tuple[list[int], dict[int, range]]:
    """The rows of an area, as in `Layouts.join_row`, and the range of rows of each tag. A tag for which there
    is no room is left to the program; without lanes there are no factors to decide by."""
    rows: list[int] = []
    places: dict[int, range] = {}
    known: dict[tuple[int, ...], range] = {}
    for tag in sorted(tags) if config.lanes else ():
        own = tuple(_join_row(row) for row in program.rows(tag, _MOST_ROWS) or ())
        if own not in known and len(rows) + len(own) <= JOIN_ROWS:
            known[own] = range(len(rows), len(rows) + len(own))
            rows += own
        if own in known:
            places[tag] = known[own]
    return rows, places


def _join_row(row: JoinRow) -> int:
    return (
        sum(1 << need for need in row.needs) | row.tag << NEEDS_BITS | row.first << NEEDS_BITS + 8
    )


def interest_mask(program: AreaProgram, tag: int) -> int | None:
    """Returns factors of which at least one holds in every pair that is worth executing; None: every pair
    may be."""
    interest = program.interest(tag)
    return None if interest is None else sum(1 << factor for factor in interest)


def term_masks(program: AreaProgram, tag: int) -> list[int]:
    """Returns conjunctions of factors, at most `TERMS`, at least one of which holds in every pair that is worth
    executing."""
    found = program.terms(tag, TERMS)
    return [sum(1 << factor for factor in term) for term in sorted(found, key=sorted)] or [0]


def _terms(program: AreaProgram, tag: int, config: DeviceConfig) -> int:
    """Encodes conjunctions as masks of factors; the first one is repeated to fill all places."""
    masks = term_masks(program, tag)
    masks += masks[:1] * (TERMS - len(masks))
    return sum(mask << config.factors * place for place, mask in enumerate(masks))


def _indexed_attributes(area: Area, config: DeviceConfig) -> list[int]:
    """The window attributes that the area's indexes serve, at most one per index."""
    guards = (area.factors[factor] for _, factor in sorted(area.guards.items()))
    return list(dict.fromkeys(guard.window_attribute for guard in guards))[: config.indexes]


def _selection_table(tables: Tables, unit: int, config: DeviceConfig) -> list[SelectionEntry]:
    """Lists the rows of comparisons, each in the place of its selection bit, then the admission masks, in the last
    place."""
    places, width = config.selectors, config.attribute_width
    rows: list[list[SelectionEntry]] = []
    selections = tables.selections[unit]
    for group, first in enumerate(range(0, len(selections), places)):
        columns = []
        for selection in selections[first : first + places]:
            # Without comparisons, "every one holds" is true and "one holds" is false.
            empty = isa.Condition.TRUE if selection.every else isa.Condition.FALSE
            comparisons = selection.comparisons or (Comparison(0, empty, 0),)
            columns.append(
                [SelectionEntry.of(c, selection.every, group, width) for c in comparisons]
            )
        columns += [[]] * (places - len(columns))
        rows += map(list, itertools.zip_longest(*columns, fillvalue=_NOTHING))
    last_row = len(rows) - 1
    for mask, every in tables.masks(unit):
        if last_row < 0 or rows[last_row][-1] != _NOTHING:
            rows.append([_NOTHING] * places)
            last_row = len(rows) - 1
        rows[last_row][-1] = SelectionEntry(admits=True, every=every, constant=mask)
    return list(itertools.chain(*rows)) or [_NOTHING]


_NOTHING = SelectionEntry()
