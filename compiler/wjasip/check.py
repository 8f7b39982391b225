"""Checks tables before a device takes them.

Besides ranges and references it verifies that the processing of a raw tuple ends: a program only
jumps forward, and no chain of route tags probes an area twice.
"""

from __future__ import annotations

import functools

from seustream.compiler.wjasip.equivalence import TooIntricate, join_alike, losing
from seustream.hdl import isa
from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import ROWS_BITS, interest_mask, term_masks
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
    _want(n <= config.streams, f"{n} streams, the device has {config.streams}", table="groups")
    for stream, group in enumerate(tables.groups):
        _want(group < n, f"stream {group}, whose copy it is, is not there", None, "groups", stream)
    for table, count in (
        ("areas", len(tables.areas)),
        ("selections", len(tables.selections)),
        ("admission", len(tables.admission)),
    ):
        _want(count == n, f"{count} lists for {n} streams", table=table)
    _check_selections(tables, config)
    _check_routes(tables, config)
    _check_grouped(tables, config)
    programs = [_check_area(tables, config, number) for number in range(n)]
    _check_circulation(tables, programs)
    for number, program in enumerate(programs):
        _check_derived(tables, number, program)


def check_program(words: tuple[int, ...], config: DeviceConfig, area: int) -> list[isa.Instruction]:
    """Decodes an area's program; raises `LoadRefused` with area and address."""

    def want(holds: bool, reason: str, address: int | None = None) -> None:
        _want(holds, reason, area, "program", address)

    want(bool(words), "it is empty, it must end in a NOP")
    want(
        len(words) <= config.instructions,
        f"{len(words)} instructions, at most {config.instructions}",
    )
    last = len(words) - 1
    program: list[isa.Instruction] = []
    compares = 0
    for address, word in enumerate(words):
        try:
            instruction = isa.decode(word)
        except isa.UndefinedWord as error:
            raise LoadRefused(str(error), area, "program", address) from None
        program.append(instruction)
        may_write = isa.SCRATCH_REGISTERS[: config.scratch_registers]
        if isinstance(instruction, (isa.Jmp, isa.Jmpct)):
            want(
                address < instruction.address <= last,
                f"{instruction} must go forward, to {address + 1} to {last}",
                address,
            )
        if isinstance(instruction, isa.Cmp):
            compares += 1
            want(
                compares <= config.factors,
                f"{instruction} is comparison {compares}, at most {config.factors}:"
                " the factor array has one comparator a CMP",
                address,
            )
            want(
                max(instruction.window_attribute, instruction.probe_attribute) < config.attributes,
                f"{instruction} names an attribute over {config.attributes - 1}",
                address,
            )
            may_write = isa.FACTOR_REGISTERS[: config.factors]
        if isinstance(instruction, (isa.Cmp, isa.AndRegisters, isa.OrRegisters)):
            known = f"{may_write.start} to {may_write.stop - 1}" if may_write else "a kind it lacks"
            want(
                instruction.r in may_write,
                f"{instruction} must write a register of {known}",
                address,
            )
    want(
        isinstance(program[-1], isa.Nop),
        f"the last instruction is {program[-1]}, it must be NOP",
        last,
    )
    return program


def _want(
    holds: bool,
    reason: str,
    area: int | None = None,
    table: str | None = None,
    row: int | None = None,
) -> None:
    if not holds:
        raise LoadRefused(reason, area, table, row)


def _check_selections(tables: Tables, config: DeviceConfig) -> None:
    for stream, (bits, masks) in enumerate(zip(tables.selections, tables.admission, strict=True)):
        most = config.selections
        _want(len(bits) <= most, f"{len(bits)} selections, at most {most}", stream, "selections")
        for number, selection in enumerate(bits):
            for comparison in selection.comparisons:
                attribute, constant = comparison.attribute, comparison.constant
                _want(
                    attribute < config.attributes,
                    f"it compares attribute {attribute}, which is not there",
                    stream,
                    "selections",
                    number,
                )
                _want(
                    constant >> config.attribute_width == 0,
                    f"constant {constant} is wider than an attribute",
                    stream,
                    "selections",
                    number,
                )
        for number, mask in enumerate(masks):
            _want(
                mask >> len(bits) == 0,
                "it names a selection that is not there",
                stream,
                "admission",
                number,
            )
        entries, most = tables.selection_entries(stream, config.selectors), config.comparisons
        _want(
            entries <= most,
            f"{entries} places for comparisons and admission masks, at most {most}",
            stream,
            "selections",
        )


def _check_routes(tables: Tables, config: DeviceConfig) -> None:
    n, queries = tables.streams, len(tables.windows)
    _want(
        queries <= config.queries, f"{queries} queries, at most {config.queries}", table="windows"
    )
    longest = {WindowKind.RANGE: config.longest_range, WindowKind.ROWS: config.longest_rows}
    for query, windows in enumerate(tables.windows):
        _want(len(windows) == n, f"{len(windows)} windows for {n} streams", None, "windows", query)
        for stream, window in enumerate(windows):
            most = longest.get(window.kind, window.size)
            _want(window.size <= most, f"{window} is longer than {most}", stream, "windows", query)
    for stream in range(n):
        _want(stream in tables.routes, "a raw stream has no row", None, "routes", stream)
    for tag, route in tables.routes.items():
        areas = [f"area {area}" for area in sorted(route.probes) if area >= n]
        missing = areas + [f"query {query}" for query in sorted(route.queries) if query >= queries]
        for holds, reason in (
            (tag < config.tags, f"the last tag is {config.tags - 1}"),
            (not route.insert or tag < n, "it inserts, only raw tuples may"),
            (not missing, f"it names {', '.join(missing)}, which is not there"),
        ):
            _want(holds, reason, None, "routes", tag)
    if not tables.filters:
        return
    filters = len(tables.filters)
    _want(filters == queries, f"{filters} filters for {queries} queries", table="filters")
    for tag, route in tables.routes.items():
        bits = len(tables.selections[tag]) if tag < n else 0
        for query in sorted(route.queries):
            _want(
                tables.filters[query] >> bits == 0,
                f"it names a selection that tuples of route tag {tag} do not have",
                tag if tag < n else None,
                "filters",
                query,
            )


def _check_grouped(tables: Tables, config: DeviceConfig) -> None:
    for tag, grouped in tables.grouped.items():
        route = tables.routes.get(tag)
        known = all(
            place is None or (place[0] < tables.streams and place[1] < config.attributes)
            for place in (grouped.key, grouped.value)
        )
        for holds, reason in (
            (
                route is not None and grouped.query in route.queries,
                f"it groups query {grouped.query}, which the tag does not satisfy",
            ),
            (known, "it names an attribute that is not there"),
            (grouped.period > 0, f"its periods are {grouped.period} ticks long"),
        ):
            _want(holds, reason, None, "grouped", tag)


def _check_area(tables: Tables, config: DeviceConfig, number: int) -> AreaProgram:
    area: Area = tables.areas[number]
    most = config.factors
    _want(
        len(area.factors) <= most,
        f"{len(area.factors)} factors, at most {most}",
        number,
        "factors",
    )
    for row, factor in enumerate(area.factors):
        _want(
            max(factor.window_attribute, factor.probe_attribute) < config.attributes
            and factor.probe_stream < tables.streams,
            "it names an attribute that is not there",
            number,
            "factors",
            row,
        )
    selections = len(tables.selections[number])
    for row, combination in enumerate(area.combinations):
        for what, named, count in (
            ("factor", combination.factors, len(area.factors)),
            ("selection of the window", combination.window_selections, selections),
            ("selection of the probe", combination.probe_selections, config.probe_selections),
        ):
            strange = max(named, default=-1)
            _want(
                strange < count,
                f"it names {what} {strange}, which is not there",
                number,
                "combinations",
                row,
            )
        for tag in (combination.pre_tag, combination.post_tag):
            _want(
                tag in tables.routes,
                f"it names tag {tag}, which has no route",
                number,
                "combinations",
                row,
            )
    age, kept = area.retention.range, area.retention.rows
    _want(
        age is None or -1 <= age <= config.longest_range,
        f"it keeps tuples for {age} ticks, want -1 (none) to {config.longest_range}",
        number,
        "retention",
    )
    most = config.longest_rows
    _want(kept <= most, f"it keeps {kept} rows, at most {most}", number, "retention")
    check_program(area.program, config, number)
    program = AreaProgram(area.program)
    _check_guards(tables, number, program)
    for address, instruction in enumerate(program.instructions):
        _want(
            not isinstance(instruction, isa.Emit) or instruction.tag in tables.routes,
            f"{instruction}: the tag has no route",
            number,
            "program",
            address,
        )
    return program


def _check_derived(tables: Tables, number: int, derived: AreaProgram) -> None:
    """Proves what a loader derives from a program: the masks by which the lanes drop pairs, and the rows by
    which the processor decides if they are few enough."""
    program = derived.instructions
    for tag, route in sorted(tables.routes.items()):
        if number not in route.probes:
            continue
        lossy = losing(program, tag, interest_mask(derived, tag), term_masks(derived, tag))
        _want(lossy is None, "it drops pairs that the program joins", number, lossy, tag)
        rows = derived.rows(tag, _MOST_ROWS)
        if rows is None:
            continue
        try:
            same = join_alike(program, tag, rows)
        except TooIntricate:
            raise LoadRefused("too intricate to be proved", number, "join rows", tag) from None
        _want(same, "they are not what the program joins", number, "join rows", tag)


def _check_guards(tables: Tables, number: int, program: AreaProgram) -> None:
    area = tables.areas[number]
    for tag, index in area.guards.items():

        def want(holds: bool, reason: str, tag: int = tag) -> None:
            _want(holds, reason, number, "guards", tag)

        want(tag in tables.routes, "the tag has no route")
        want(index < len(area.factors), f"it names factor {index}, which is not there")
        condition = area.factors[index].condition
        want(condition is Condition.EQ, f"factor {index} compares by {condition.symbol}, not =")
        rows = [row for row in area.combinations if row.pre_tag == tag]
        want(bool(rows), "the tag has no combination")
        want(
            all(index in row.factors for row in rows),
            f"it is factor {index}, which a combination of the tag does not require",
        )
        # The program is what decides, and a program written by hand need not agree.
        factor = area.factors[index]
        own = (factor.window_attribute, factor.probe_stream, factor.probe_attribute, Condition.EQ)
        same = {
            place
            for place, it in enumerate(program.compares)
            if (it.window_attribute, it.probe_stream, it.probe_attribute, it.condition) == own
        }
        want(
            all(term & same for term in program.terms(tag, _MOST_TERMS)),
            f"it is factor {index}, which its program does not require",
        )


def _check_circulation(tables: Tables, programs: list[AreaProgram]) -> None:
    """Follows every tag that a raw tuple can reach; an area may be probed once on the way."""

    @functools.cache
    def posts_of(area: int, tag: int) -> dict[int, tuple[str, int]]:
        """Returns the tags that a tag may become in an area, each with the row by which it does."""
        stated = {
            row.post_tag: ("combinations", number)
            for number, row in enumerate(tables.areas[area].combinations)
            if row.pre_tag == tag
        }
        executed = {
            instruction.tag: ("program", address)
            for address, instruction in programs[area].path(tag)
            if isinstance(instruction, isa.Emit)
        }
        return stated | executed

    open_states = [(stream, 1 << stream) for stream in range(tables.streams)]
    seen = set(open_states)
    while open_states:
        tag, bound = open_states.pop()
        grouped = tables.grouped.get(tag)
        for place in () if grouped is None else (grouped.key, grouped.value):
            _want(
                place is None or bool(bound >> place[0] & 1),
                "it groups by a stream that the tag does not carry",
                None,
                "grouped",
                tag,
            )
        for area in tables.routes[tag].probes:
            posts = posts_of(area, tag)
            _want(
                not (bound >> area & 1 and posts),
                "it probes a stream that it carries already",
                area,
                "routes",
                tag,
            )
            for post, where in posts.items():
                _want(
                    post >= tables.streams,
                    f"tag {tag} joins to tag {post}, a raw tuple's",
                    area,
                    *where,
                )
                state = (post, bound | 1 << area)
                if state not in seen:
                    seen.add(state)
                    open_states.append(state)
