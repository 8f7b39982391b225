"""Checks tables before a device takes them.

Besides ranges and references it verifies that the processing of a raw tuple ends: a program only
jumps forward, and no chain of route tags probes an area twice.
"""

from __future__ import annotations

import functools

from seustream.compiler.wjasip.equivalence import TooIntricate, join_alike
from seustream.hdl import isa
from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import ROWS_BITS
from seustream.hdl.device import Area, LoadRefused, Tables, WindowKind
from seustream.hdl.isa import Condition
from seustream.hdl.program import AreaProgram

_MOST_ROWS = (1 << ROWS_BITS) - 1
"""The most rows of a route tag; if there are more, the processor runs the program."""
_MOST_TERMS = 32
"""For a guard, up to this many ways to a JOIN are looked at one by one; of more ways, only what they
have in common."""


def check(tables: Tables, config: DeviceConfig) -> None:
    """Raises `LoadRefused` if a device of this configuration must not take the tables."""
    n = tables.streams
    _want(n <= config.streams, f"{n} streams, the device has {config.streams}")
    _want(all(group < max(n, 1) for group in tables.groups), "a stream's group does not exist")
    for what, count in (
        ("areas", len(tables.areas)),
        ("lists of selections", len(tables.selections)),
        ("lists of admission masks", len(tables.admission)),
    ):
        _want(count == n, f"{count} {what} for {n} streams")
    _check_selections(tables, config)
    _check_routes(tables, config)
    _check_grouped(tables, config)
    joins = [_check_area(tables, config, number) for number in range(n)]
    _check_circulation(tables, joins)
    for number, program in enumerate(joins):
        _check_rows(tables, number, program)


def check_program(words: tuple[int, ...], config: DeviceConfig, area: int) -> list[isa.Instruction]:
    """Decodes an area's program; raises `LoadRefused` with area and address."""
    if not words:
        raise LoadRefused("the program is empty, it must end in a NOP", area)
    if len(words) > config.instructions:
        raise LoadRefused(f"{len(words)} instructions, at most {config.instructions}", area)
    last = len(words) - 1
    program, compares = [], 0
    for address, word in enumerate(words):
        try:
            instruction = isa.decode(word)
        except isa.UndefinedWord as error:
            raise LoadRefused(str(error), area, address) from None
        if (
            isinstance(instruction, (isa.Jmp, isa.Jmpct))
            and not address < instruction.address <= last
        ):
            raise LoadRefused(
                f"{instruction} must go forward, to {address + 1} to {last}", area, address
            )
        if isinstance(instruction, isa.Cmp):
            compares += 1
            if compares > config.factors:
                raise LoadRefused(
                    f"{instruction} is comparison {compares}, at most {config.factors}:"
                    " the factor array has one comparator a CMP",
                    area,
                    address,
                )
            _check_register(instruction, isa.FACTOR_REGISTERS[: config.factors], area, address)
            if config.attributes <= max(instruction.window_attribute, instruction.probe_attribute):
                raise LoadRefused(
                    f"{instruction} names an attribute over {config.attributes - 1}", area, address
                )
        if isinstance(instruction, (isa.AndRegisters, isa.OrRegisters)):
            scratch = isa.SCRATCH_REGISTERS[: config.scratch_registers]
            _check_register(instruction, scratch, area, address)
        program.append(instruction)
    if not isinstance(program[-1], isa.Nop):
        raise LoadRefused(f"the last instruction is {program[-1]}, it must be NOP", area, last)
    return program


def _check_register(
    instruction: isa.AndRegisters | isa.OrRegisters | isa.Cmp,
    may_write: range,
    area: int,
    address: int,
) -> None:
    if instruction.r not in may_write:
        want = f"{may_write.start} to {may_write.stop - 1}" if may_write else "a kind it lacks"
        raise LoadRefused(f"{instruction} must write a register of {want}", area, address)


def _want(holds: bool, reason: str, area: int | None = None) -> None:
    if not holds:
        raise LoadRefused(reason, area)


def _check_selections(tables: Tables, config: DeviceConfig) -> None:
    for stream, (bits, masks) in enumerate(zip(tables.selections, tables.admission, strict=True)):
        where = f"stream {stream}: "
        most = config.selections
        _want(len(bits) <= most, where + f"{len(bits)} selections, at most {most}")
        for selection in bits:
            for comparison in selection.comparisons:
                _want(
                    comparison.attribute < config.attributes,
                    where + f"selection on attribute {comparison.attribute}",
                )
                _want(
                    comparison.constant >> config.attribute_width == 0,
                    where + f"constant {comparison.constant} is wider than an attribute",
                )
        _want(
            all(mask >> len(bits) == 0 for mask in masks),
            where + "an admission mask names a selection that is not there",
        )
        entries, most = tables.selection_entries(stream, config.selectors), config.comparisons
        _want(
            entries <= most,
            where + f"{entries} places for comparisons and admission masks, at most {most}",
        )


def _check_routes(tables: Tables, config: DeviceConfig) -> None:
    n, queries = tables.streams, len(tables.windows)
    _want(queries <= config.queries, f"{queries} queries, at most {config.queries}")
    for number, windows in enumerate(tables.windows):
        _want(len(windows) == n, f"query {number}: {len(windows)} windows for {n} streams")
        _want(
            all(
                window.size <= config.longest_range
                for window in windows
                if window.kind is WindowKind.RANGE
            ),
            f"query {number}: a RANGE is longer than {config.longest_range} ticks",
        )
        _want(
            all(
                window.size <= config.longest_rows
                for window in windows
                if window.kind is WindowKind.ROWS
            ),
            f"query {number}: a ROWS window is longer than {config.longest_rows}",
        )
    for stream in range(n):
        _want(stream in tables.routes, f"raw stream {stream} has no route row")
    for tag, route in tables.routes.items():
        _want(tag < config.tags, f"route tag {tag}, at most {config.tags - 1}")
        _want(not route.insert or tag < n, f"route tag {tag} inserts, only raw tuples may")
        _want(all(area < n for area in route.probes), f"route tag {tag} probes an area not there")
        _want(
            all(query < queries for query in route.queries),
            f"route tag {tag} satisfies a query not there",
        )
    if not tables.filters:
        return
    _want(len(tables.filters) == queries, f"{len(tables.filters)} filters for {queries} queries")
    for tag, route in tables.routes.items():
        bits = len(tables.selections[tag]) if tag < n else 0
        for query in route.queries:
            _want(
                tables.filters[query] >> bits == 0,
                f"route tag {tag} satisfies query {query}, whose filter names a selection that it has not",
            )


def _check_grouped(tables: Tables, config: DeviceConfig) -> None:
    for tag, grouped in tables.grouped.items():
        where = f"the groups of route tag {tag} "
        route = tables.routes.get(tag)
        _want(
            route is not None and grouped.query in route.queries,
            where + f"are of query {grouped.query}, which the tag does not satisfy",
        )
        for place in (grouped.key, grouped.value):
            _want(
                place is None or (place[0] < tables.streams and place[1] < config.attributes),
                where + "name an attribute that is not there",
            )
        _want(grouped.period > 0, where + f"are of periods of {grouped.period} ticks")


def _check_area(tables: Tables, config: DeviceConfig, number: int) -> list[isa.Instruction]:
    area: Area = tables.areas[number]
    most = config.factors
    _want(len(area.factors) <= most, f"{len(area.factors)} factors, at most {most}", number)
    for factor in area.factors:
        _want(
            max(factor.window_attribute, factor.probe_attribute) < config.attributes
            and factor.probe_stream < tables.streams,
            "a factor names an attribute that is not there",
            number,
        )
    for row in area.combinations:
        _want(
            all(index < len(area.factors) for index in row.factors)
            and all(index < len(tables.selections[number]) for index in row.window_selections)
            and all(index < config.probe_selections for index in row.probe_selections),
            "a combination names a factor or selection that is not there",
            number,
        )
        for tag in (row.pre_tag, row.post_tag):
            _want(
                tag in tables.routes, f"a combination names tag {tag}, which has no route", number
            )
    age, rows = area.retention.range, area.retention.rows
    _want(
        age is None or -1 <= age <= config.longest_range,
        f"it keeps tuples for {age} ticks, want -1 (none) to {config.longest_range}",
        number,
    )
    longest = config.longest_rows
    _want(rows <= longest, f"it keeps {rows} rows, at most {longest}", number)
    program = check_program(area.program, config, number)
    _check_guards(tables, number)
    for address, instruction in enumerate(program):
        if isinstance(instruction, isa.Emit) and instruction.tag not in tables.routes:
            raise LoadRefused(f"{instruction}: the tag has no route", number, address)
    return program


def _check_rows(tables: Tables, number: int, program: list[isa.Instruction]) -> None:
    """Checks the rows of a program, by which the processor decides if they are few enough."""
    derived = AreaProgram(tables.areas[number].program)
    for tag, route in sorted(tables.routes.items()):
        rows = derived.rows(tag, _MOST_ROWS) if number in route.probes else None
        if rows is None:
            continue
        what = f"the rows of route tag {tag} "
        try:
            _want(join_alike(program, tag, rows), what + "are not what its program joins", number)
        except TooIntricate:
            raise LoadRefused(what + "are too intricate to be proved", number) from None


def _check_guards(tables: Tables, number: int) -> None:
    area = tables.areas[number]
    for tag, index in area.guards.items():
        where = f"the guard of tag {tag} "
        _want(tag in tables.routes, where + "is of a tag that has no route", number)
        _want(
            index < len(area.factors), where + f"names factor {index}, which is not there", number
        )
        condition = area.factors[index].condition
        _want(condition is Condition.EQ, where + f"compares by {condition.symbol}, not =", number)
        rows = [row for row in area.combinations if row.pre_tag == tag]
        _want(bool(rows), where + "is of a tag without a combination", number)
        _want(
            all(index in row.factors for row in rows),
            where + f"is factor {index}, which a combination of the tag does not require",
            number,
        )
        # The program is what decides, and a program written by hand need not agree.
        factor, derived = area.factors[index], AreaProgram(area.program)
        own = (factor.window_attribute, factor.probe_stream, factor.probe_attribute, Condition.EQ)
        same = {
            place
            for place, it in enumerate(derived.compares)
            if (it.window_attribute, it.probe_stream, it.probe_attribute, it.condition) == own
        }
        _want(
            all(term & same for term in derived.terms(tag, _MOST_TERMS)),
            where + f"is factor {index}, which its program does not require",
            number,
        )


def _check_circulation(tables: Tables, programs: list[list[isa.Instruction]]) -> None:
    """Follows every tag that a raw tuple can reach; an area may be probed once on the way."""

    @functools.cache
    def posts_of(area: int, tag: int) -> set[int]:
        stated = {row.post_tag for row in tables.areas[area].combinations if row.pre_tag == tag}
        return stated | _joins_reached(programs[area], tag)

    open_states = [(stream, 1 << stream) for stream in range(tables.streams)]
    seen = set(open_states)
    while open_states:
        tag, bound = open_states.pop()
        grouped = tables.grouped.get(tag)
        for place in () if grouped is None else (grouped.key, grouped.value):
            _want(
                place is None or bool(bound >> place[0] & 1),
                f"the groups of route tag {tag} are by a stream that it does not carry",
            )
        for area in tables.routes[tag].probes:
            posts = posts_of(area, tag)
            if bound >> area & 1 and posts:
                raise LoadRefused(f"route tag {tag} probes a stream it already carries", area)
            for post in posts:
                _want(post >= tables.streams, f"tag {tag} joins to tag {post}, a raw tuple's", area)
                state = (post, bound | 1 << area)
                if state not in seen:
                    seen.add(state)
                    open_states.append(state)


def _joins_reached(program: list[isa.Instruction], tag: int) -> set[int]:
    """Returns the post-tags of the JOINs on the path of a probe tuple with this tag."""
    posts, address = set(), 0
    while address < len(program):
        instruction = program[address]
        address += 1
        if isinstance(instruction, isa.Emit):
            posts.add(instruction.tag)
        elif isinstance(instruction, isa.Jmp) or (
            isinstance(instruction, isa.Jmpct) and instruction.tag != tag
        ):
            address = instruction.address
    return posts
