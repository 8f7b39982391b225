"""The compiler, top to bottom: every pass in order, each stage with a name.

A pass takes the state and returns it with one more member filled in. `compile_text` runs them all;
`stop_after` ends at a stage, to show it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace

from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.catalogue import Stream
from seustream.compiler.errors import CompileError, Problem, Problems, SourceText, Span
from seustream.compiler.language.bind import ParameterValue
from seustream.compiler.logical import program as logical
from seustream.compiler.plan import cost, thesis
from seustream.compiler.plan.areas import allocate
from seustream.compiler.plan.candidates import with_candidates, without_candidates
from seustream.compiler.plan.decompose import Subquery, decompose
from seustream.compiler.plan.divide import Division, divide
from seustream.compiler.plan.guards import guard
from seustream.compiler.plan.layout import Layout, lay_out, uses_device
from seustream.compiler.plan.limits import LimitExceeded, first_over, pack, within
from seustream.compiler.plan.normalise import DEFAULT_MAX_TERMS, Normalised, normalise
from seustream.compiler.plan.partial import GroupPlan, grouped_tags, with_partials
from seustream.compiler.plan.place import Placement, everything, place
from seustream.compiler.plan.requests import Requests, request
from seustream.compiler.plan.routes import RoutePlan
from seustream.compiler.plan.simplify import simplify
from seustream.compiler.plan.statistics import Estimate, Statistics
from seustream.compiler.wjasip.codegen import with_programs
from seustream.compiler.wjasip.image import encode
from seustream.compiler.xsql.analyse import Analysis
from seustream.compiler.xsql.parse import Statement, parse, tokens
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.device import Tables
from seustream.hdl.isa import Instruction

Planner = Callable[[Requests, int, Estimate], RoutePlan]
FITS = ("auto", "strict")
PLANS: dict[str, Planner] = {"cost": cost.plan, "thesis": thesis.plan}


@dataclass(frozen=True, slots=True)
class Options:
    config: DeviceConfig = CONFIGURATIONS["default"]
    plan: str = "cost"
    max_terms: int = DEFAULT_MAX_TERMS
    statistics: Statistics = field(default_factory=Statistics)
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)  # by name
    libraries: Libraries = field(default_factory=Libraries, compare=False)  # of APAS queries
    bounded: bool = False  # whether the input ends, so that a pattern needs no WITHIN
    fit: str = "auto"  # "strict": a query that no device holds is an error
    devices: int | None = 1  # 0: the engine joins everything; None: as many as it takes
    streams: tuple[Stream, ...] = ()  # defined before the text, as if it created them
    apas: bool = False  # the text is one APAS query over those streams


@dataclass(frozen=True)
class Compilation:
    """The compilation of a text to an image; members are filled in from the top."""

    source: SourceText
    options: Options
    after: Compilation | None = None  # of the text's beginning, which this one continues
    analysis: Analysis | None = None  # the state after the last statement
    statements: list[Statement] = field(default_factory=list)
    written: logical.Program = field(default_factory=logical.Program)  # conditions as written
    program: logical.Program = field(default_factory=logical.Program)  # conditions simplified
    placement: Placement = field(default_factory=Placement)
    number: int = 0  # of the device that the members from here on belong to
    others: tuple[Compilation, ...] = ()  # the same queries, for each device after the first
    layout: Layout = field(default_factory=lambda: Layout((), (), {}))
    divisions: tuple[Division, ...] = ()
    normalised: tuple[Normalised, ...] = ()
    subqueries: tuple[Subquery, ...] = ()
    requests: Requests = field(default_factory=lambda: Requests((), (), (), ()))
    partials: GroupPlan = field(default_factory=GroupPlan)
    routes: RoutePlan = field(default_factory=lambda: RoutePlan([], []))
    tables: Tables = field(default_factory=lambda: Tables((), (), (), (), {}, ()))
    programs: tuple[tuple[Instruction, ...], ...] = ()
    image: bytes = b""

    @functools.cached_property
    def tokens(self) -> list[tuple[str, str, int, int]]:
        """Returns every token of the text."""
        return [] if self.options.apas else tokens(self.source)

    @property
    def streams(self) -> tuple[Stream, ...]:
        return self.program.streams

    @property
    def slot_names(self) -> tuple[str, ...]:
        return tuple(slot.name for slot in self.layout.slots)

    @property
    def devices(self) -> tuple[Compilation, ...]:
        """Returns the compilation for each device that has queries."""
        return (self, *self.others) if self.device_queries else ()

    @property
    def elsewhere(self) -> dict[str, str]:
        """Returns the queries that this device does not get, and the reasons."""
        placed = {
            name: f"device {number} has it"
            for number, names in enumerate(self.placement.devices, start=1)
            if number != self.number + 1
            for name in names
        }
        return self.placement.software | placed

    @property
    def device_queries(self) -> tuple[Normalised, ...]:
        """Returns the queries that the device works for, by their number there."""
        return tuple(one for one in self.normalised if one.division.on_device)


Pass = Callable[[Compilation], Compilation]


def _tokens(c: Compilation) -> Compilation:
    return c  # computed only when shown


def _front_end(c: Compilation) -> Compilation:
    """Parses and analyses together, so that both report all their errors."""
    problems = Problems()
    before = c.after
    start = 0 if before is None else len(before.source.text)
    statements = [] if c.options.apas else parse(c.source, problems, start)
    if before is not None and before.analysis is not None:
        analysis = before.analysis.continued(c.source, problems)
    else:
        analysis = Analysis(
            c.source,
            problems,
            {stream.name.lower(): stream for stream in c.options.streams},
            parameters=c.options.parameters,
            bounded=c.options.bounded,
            libraries=c.options.libraries,
        )
    program = analysis.run_apas() if c.options.apas else analysis.run(statements)
    problems.raise_any(c.source)
    return replace(c, analysis=analysis, statements=statements, written=program, program=program)


def _predicate(c: Compilation) -> Compilation:
    before = c.after
    known = (
        {}
        if before is None
        else {
            id(one): done
            # The written queries come first; candidates of patterns follow.
            for one, done in zip(before.written.queries, before.program.queries, strict=False)
        }
    )
    queries = tuple(
        known.get(id(q)) or replace(q, where=simplify(q.where)) for q in c.program.queries
    )
    return replace(c, after=None, program=replace(c.program, queries=queries))


def _candidates(c: Compilation) -> Compilation:
    """Adds joins that find where patterns may match, if there is a device to run them."""
    options = c.options
    if options.devices == 0:
        return c
    return replace(c, program=with_candidates(c.program, options.config, options.statistics))


def _layout(c: Compilation) -> Compilation:
    config = c.options.config
    layout = lay_out(c.program, config.attribute_width, c.elsewhere, config.attributes)
    return replace(c, layout=layout)


def _divide(c: Compilation) -> Compilation:
    return replace(c, divisions=divide(c.program, c.layout, c.elsewhere))


def _normalise(c: Compilation) -> Compilation:
    return replace(c, normalised=normalise(c.divisions, c.options.max_terms))


def _decompose(c: Compilation) -> Compilation:
    return replace(c, subqueries=decompose(c.normalised))


def _requests(c: Compilation) -> Compilation:
    return replace(c, requests=request(c.subqueries, c.layout, c.options.config))


def _partials(c: Compilation) -> Compilation:
    """Forms groups once all limits are met, in as many attributes as remain."""
    layout, requests, partials = with_partials(
        c.program, c.layout, c.normalised, c.requests, c.options.config
    )
    return replace(c, layout=layout, requests=requests, partials=partials)


def _routes(c: Compilation) -> Compilation:
    estimate = Estimate(c.options.statistics, c.layout)
    routes = PLANS[c.options.plan](c.requests, len(c.layout.slots), estimate)
    within("route tags", len(routes.tags), c.options.config.tags)
    return replace(c, routes=routes)


def _areas(c: Compilation) -> Compilation:
    tables = allocate(c.normalised, c.requests, c.routes, c.layout, c.options.config)
    grouped = grouped_tags(c.partials, c.routes, c.requests)
    return replace(c, tables=replace(tables, grouped=grouped))


def _guards(c: Compilation) -> Compilation:
    estimate = Estimate(c.options.statistics, c.layout)
    return replace(c, tables=guard(c.tables, c.requests, c.routes, estimate, c.options.config))


def _listing(c: Compilation) -> Compilation:
    tables, programs = with_programs(
        c.tables, c.options.plan == "thesis", c.options.config, c.slot_names
    )
    return replace(c, tables=tables, programs=programs)


def _image(c: Compilation) -> Compilation:
    return replace(c, image=encode(c.tables, c.options.config))


def _others(c: Compilation) -> Compilation:
    """Runs the passes again for each device after the first."""
    found = []
    for number in range(1, len(c.placement.devices)) if c.number == 0 else ():
        passes = [one_pass for _, one_pass in PASSES[_ORDER[_layout] : -1]]
        found.append(_through(passes, replace(c, number=number)))
    return replace(c, others=tuple(found))


# (stage, pass): a stage ends with the last pass of its name.
PASSES: tuple[tuple[str, Pass], ...] = (
    ("tokens", _tokens),
    ("tree", _front_end),
    ("predicate", _predicate),
    ("dnf", _candidates),
    ("dnf", _layout),
    ("dnf", _divide),
    ("dnf", _normalise),
    ("subqueries", _decompose),
    ("requests", _requests),
    ("requests", _partials),
    ("routes", _routes),
    ("areas", _areas),
    ("areas", _guards),
    ("listing", _listing),
    ("split", _image),
    ("split", _others),
)
_ORDER = {one_pass: number for number, (_, one_pass) in enumerate(PASSES)}
STAGES: tuple[str, ...] = tuple(dict.fromkeys(stage for stage, _ in PASSES))


def compile_text(
    text: str,
    name: str = "<query>",
    options: Options | None = None,
    stop_after: str = STAGES[-1],
    after: Compilation | None = None,
) -> Compilation:
    """Compiles a text; raises `CompileError` with all of its problems. It may continue another
    compilation, whose statements are not analysed again."""
    if stop_after not in STAGES:
        raise ValueError(f"no stage {stop_after!r}; stages: {', '.join(STAGES)}")
    options = options or (Options() if after is None else after.options)
    if options.plan not in PLANS:
        raise ValueError(f"no plan {options.plan!r}; plans: {', '.join(PLANS)}")
    if options.fit not in FITS:
        raise ValueError(f"no fit {options.fit!r}; fits: {', '.join(FITS)}")
    before = "" if after is None else after.source.text
    state = Compilation(SourceText(before + text, name), options, after)
    return _run(state, range(STAGES.index(stop_after) + 1))


def finished(c: Compilation) -> Compilation:
    """Runs the remaining passes for a compilation that stopped after `tree`."""
    return _run(c, range(STAGES.index("tree") + 1, len(STAGES)))


def without(c: Compilation, names: Collection[str]) -> Compilation:
    """Leaves some queries out of a compilation; the streams stay."""
    if not names:
        return c

    def stays(name: str) -> bool:
        return name not in names and name.partition("#")[0] not in names

    program = without_candidates(c.program)
    program = replace(
        program,
        queries=tuple(query for query in program.queries if stays(query.name)),
        operations=tuple(one for one in program.operations if stays(one.name)),
        patterns=tuple(pattern for pattern in program.patterns if stays(pattern.name)),
        asked_apas=tuple(query for query in program.asked_apas if stays(query.name)),
    )
    state = replace(c, program=program, placement=Placement())
    return _run(state, range(STAGES.index("predicate") + 1, len(STAGES)))


def _run(state: Compilation, stages: Container[int]) -> Compilation:
    """Runs the passes of some stages. Most query sets fit, so only one that turns out not to is
    placed."""
    passes = [one for stage, one in PASSES if STAGES.index(stage) in stages]
    before = [one for one in passes if _ORDER[one] < _ORDER[_layout]]
    try:
        state = _through(before, state)
        if len(before) == len(passes):
            return state
        try:
            return _through(passes[len(before) :], _placed(state))
        except LimitExceeded as over:
            return _through(passes[len(before) :], _fitted(state, over))
    except LimitExceeded as limit:
        raise CompileError(state.source, [_limit_problem(state, limit)]) from None
    except RecursionError:
        raise CompileError(state.source, [_TOO_DEEP]) from None


def _through(passes: Sequence[Pass], state: Compilation) -> Compilation:
    for one_pass in passes:
        state = one_pass(state)
    return state


# --- placement ----------------------------------------------------------------


def _for_devices(c: Compilation) -> list[logical.Query]:
    return [query for query in c.program.queries if uses_device(query)]


def _placed(c: Compilation) -> Compilation:
    """Places all queries in the engine if no device is wanted, else all on the first device."""
    if c.options.devices != 0:
        return c
    return replace(c, placement=everything(_for_devices(c), "no device is asked for"))


def _fitted(c: Compilation, over: LimitExceeded) -> Compilation:
    """Spreads queries that exceed a limit, unless that is to be an error. Selections belong in the
    engine as long as the joins are on devices."""
    options, some = c.options, _for_devices(c)
    placement = place(
        some, lambda some: _over(c, some), options.config, options.statistics, options.devices
    )
    joins = {query.name for query in some if len(query.sources) > 1 and query.last is None}
    if options.fit == "strict" and joins & placement.software.keys():
        raise over
    program = without_candidates(c.program, placement.software)
    left = {query.name for query in program.queries}
    software = {name: why for name, why in placement.software.items() if name in left}
    return replace(c, program=program, placement=replace(placement, software=software))


# --- limits -------------------------------------------------------------------


def _plan(c: Compilation, queries: Sequence[logical.Query]) -> None:
    """Runs every pass from the layout on, for a subset of the queries. They keep the order of the text,
    on which some limits depend."""
    passes = [one_pass for _, one_pass in PASSES[_ORDER[_layout] : _ORDER[_image]]]
    chosen = {query.name for query in queries}
    some = tuple(query for query in c.program.queries if query.name in chosen)
    state = replace(c, program=replace(c.program, queries=some), placement=Placement())
    _through(passes, state)


def _over(c: Compilation, queries: Sequence[logical.Query]) -> LimitExceeded | None:
    """Returns the limit that these queries exceed together, if any."""
    try:
        _plan(c, queries)
    except LimitExceeded as exceeded:
        return exceeded
    return None


def _limit_problem(c: Compilation, limit: LimitExceeded) -> Problem:
    """Names the query that exceeded the limit, and how the set would fit."""

    def fits(queries: Sequence[logical.Query]) -> bool:
        return _over(c, queries) is None

    queries = [query for query in _for_devices(c) if len(query.sources) > 1 and query.last is None]
    first = first_over(queries, fits)
    query = queries[first]
    # The whole set may exceed another limit than this query does.
    limit = _over(c, queries[: first + 1]) or limit
    devices, alone = pack(queries, fits)
    advice = []
    if devices:
        inside = "; ".join(
            f"device {number}: {_named(group)}" for number, group in enumerate(devices, start=1)
        )
        what = "the others need" if alone else "the set needs"
        advice.append(f"{what} {len(devices)} device{'s' * (len(devices) > 1)}: {inside}")
    if alone:
        held = f"no device of configuration {c.options.config.name!r} holds {_named(alone)} alone"
        advice.append(held)
        fewer = replace(c, options=replace(c.options, max_terms=1))
        if c.options.max_terms > 1 and not any(_over(fewer, [q]) for q in alone):
            advice.append("with --max-terms 1 it would: the host then decides its alternatives")
    more = f"--devices {len(devices)} gives so many, " if len(devices) > 1 else ""
    advice.append(f"{more}--fit auto lets the engine join what has no room")
    return Problem(
        "limit",
        f"query {query.name} exceeds a limit of the device: {limit}",
        query.span,
        "; ".join(advice),
    )


def _named(queries: Sequence[logical.Query]) -> str:
    """Returns the names of queries, shortened if there are many."""
    names = [query.name for query in queries]
    if len(names) > _FEW_NAMES:
        names[_FEW_NAMES - 2 :] = [f"and {len(names) - _FEW_NAMES + 2} more"]
    return ", ".join(names)


_FEW_NAMES = 12

_TOO_DEEP = Problem(
    "too-deep", "an expression is nested too deep", Span(0, 1), "write the condition flatter"
)
