"""The facts of the split: what runs where and why, and how much of the device it takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from seustream.compiler.explain.facts.names import View, WindowOf, window_of, windows_text
from seustream.compiler.explain.facts.plan import (
    AttributeFacts,
    ResidualFact,
    attributes,
    normal_form,
)
from seustream.compiler.explain.facts.routes import CrossProduct, cross_products
from seustream.compiler.explain.marks import bar
from seustream.compiler.explain.text import Columns, NamedLines
from seustream.compiler.language import expressions as x
from seustream.compiler.pipeline import Compilation
from seustream.compiler.plan.keys import Keys, keys, keys_of_each
from seustream.compiler.plan.normalise import Normalised
from seustream.hdl import isa
from seustream.hdl.device import WindowKind


@dataclass(frozen=True, slots=True)
class Aliased:
    """A stream of a FROM list and the join area that holds it; none if the host does."""

    alias: str
    stream: str
    area: str | None
    window: WindowOf

    @property
    def home(self) -> str:
        return self.area or self.stream

    @property
    def where(self) -> str:
        return f"in area {self.area}" if self.area else f"of {self.stream}"


@dataclass(frozen=True, slots=True)
class HostWork:
    """A piece of work done in software, and the reason."""

    work: str
    why: str


@dataclass(frozen=True, slots=True)
class QuerySplit:
    """One query: what the device does for it, and what the host does before it delivers the
    columns. `groups` describes how its results are counted, and where, if the query groups them."""

    query: str
    text: str
    runs: str
    why: str
    sources: tuple[Aliased, ...]
    device: tuple[str, ...]
    host: tuple[HostWork, ...]
    columns: tuple[str, ...]
    groups: str
    cross_products: tuple[CrossProduct, ...]
    notes: tuple[str, ...]

    @property
    def window(self) -> str:
        windows = tuple(source.window for source in self.sources)
        return windows_text(windows)

    @property
    def title(self) -> str:
        return f"{self.query}  {self.runs}: {self.why}"

    @property
    def labelled(self) -> Iterator[tuple[str, str]]:
        yield "text", self.text
        renamed = [source for source in self.sources if source.alias != source.home]
        if renamed:
            yield "streams", ", ".join(f"{one.alias} {one.where}" for one in renamed)
        yield "window", self.window
        for number, work in enumerate(self.device):
            yield "device" if number == 0 else "    or", work
        for number, step in enumerate(self.host):
            yield "host" if number == 0 else "  then", f"{step.work}   ({step.why})"
        if self.groups:
            yield "groups", self.groups
        yield "columns", ", ".join(self.columns)
        for found in self.cross_products:
            yield "×", f"subquery {found.subquery}: {found.text}"
        for note in self.notes:
            yield "note", note


@dataclass(frozen=True, slots=True)
class Use:
    """A limit of the device and how much of it is used; `where` is the part that uses most."""

    COLUMNS: ClassVar[Columns] = (
        ("", "resource"),
        ("used", lambda use: f"{use.used:,}"),
        ("of", lambda use: f"{use.limit:,}"),
        ("", lambda use: bar(use.share)),
        ("", lambda use: f"{use.share:.0%}"),
        ("", lambda use: f"area {use.where}" if use.where else ""),
    )

    resource: str
    used: int
    limit: int
    where: str

    @property
    def share(self) -> float:
        return self.used / self.limit if self.limit else 0.0


@dataclass(frozen=True, slots=True)
class QueryKeys:
    """The keys of a single query."""

    query: str
    keys: Keys


@dataclass(frozen=True, slots=True)
class Split:
    """The split. `keys` belongs to the whole query set, even if only a part is shown; `each` lists
    the keys of each query if the set has none."""

    BELOW: ClassVar = (
        ("", "queries"),
        ("what the device sees of each stream", "attributes"),
        ("share of the device", "shares"),
        ("over several devices", "several"),
    )

    queries: tuple[QuerySplit, ...]
    attributes: tuple[AttributeFacts, ...]
    uses: tuple[Use, ...]
    keys: Keys
    each: tuple[QueryKeys, ...]

    @property
    def shares(self) -> tuple[Use, ...]:
        """Returns the shares if a query has any."""
        return self.uses if any(use.used for use in self.uses) else ()

    @property
    def several(self) -> NamedLines:
        """Describes whether and how tuples can be divided by key."""
        lines = [_key_line("", self.keys)]
        if self.keys.columns is None and len(self.each) > 1:
            lines += [_key_line(one.query, one.keys) for one in self.each]
        return NamedLines("", tuple(lines))


def _key_line(query: str, found: Keys) -> tuple[str, str]:
    """Describes the key of the query set, or of a single query."""
    which = f"{query} alone " if query else ""
    if found.columns is None:
        return f"{which}no key", found.why
    by = ", ".join(f"{stream} by {column}" for stream, column in found.columns)
    return (f"{which}by key", f"{by}: {found.why}") if by else (f"{which}any way", found.why)


def split(scope: View) -> Split:
    found = keys(scope.c.program)
    each = keys_of_each(scope.c.program) if found.columns is None else {}
    return Split(
        queries(scope),
        attributes(scope),
        uses(scope),
        found,
        tuple(QueryKeys(name, one) for name, one in each.items()),
    )


def queries(scope: View) -> tuple[QuerySplit, ...]:
    """Returns the queries, each as the device divides it that has it."""
    on = {
        one.division.query.name: (View(device), one)
        for device in scope.c.devices
        for one in device.device_queries
    }
    return tuple(_query(*on.get(one.division.query.name, (scope, one))) for one in scope.normalised)


# --- one query ----------------------------------------------------------------


def _query(scope: View, one: Normalised) -> QuerySplit:
    query, form = one.division.query, normal_form(scope, one)
    slots = one.division.slots or (None,) * len(query.sources)
    device = [" AND ".join(term) or "every combination" for term in form.terms]
    runs = _runs(one)
    if scope.c.number:
        runs = runs.replace("device", f"device {scope.c.number + 1}", 1)
    return QuerySplit(
        query.name,
        " ".join(query.text.split()),
        runs,
        one.division.why,
        tuple(
            Aliased(
                source.alias,
                source.stream.name,
                None if slot is None else scope.slot(slot),
                window_of(source.alias, source.window),
            )
            for source, slot in zip(query.sources, slots, strict=True)
        ),
        tuple(device),
        tuple(_host_work(one, form.residual)),
        tuple(item.name for item in query.items),
        _groups(scope.c, query.name),
        tuple(found for found in cross_products(scope) if found.query == query.name),
        tuple(_notes(scope, one)),
    )


def _groups(c: Compilation, name: str) -> str:
    """Describes the groups that a device forms of a query's results, or why it forms none."""
    names = [one.division.query.name for one in c.device_queries]
    if name not in names:
        return ""
    number = names.index(name)
    found = c.partials.of(number)
    if found is None:
        inputs = {
            node.name: [stream.name for stream in node.inputs] for node in c.program.operations
        }
        why = next((why for reader, why in c.partials.left.items() if name in inputs[reader]), "")
        return f"in software   ({why})" if why else ""
    if number not in {one.query for one in c.tables.grouped.values()}:
        return "in software   (its results are those of another query that is counted)"
    key, value = (
        None if of is None else f"{c.layout.slots[of.slot].name}.{of.column}"
        for of in (found.key, found.value)
    )
    by = f"by {key}" if key else "all in one"
    what = f", with sum, least and greatest {value}" if value else ""
    return f"counted in the device {by}{what}, {found.period:,} ms at a time"


def _runs(one: Normalised) -> str:
    if one.division.query.where == x.FALSE:
        return "nowhere"
    if not one.division.on_device:
        return "host"
    whole = not one.residual and not one.division.query.aggregated
    return "device" if whole else "device, then host"


def _host_work(one: Normalised, residual: Iterable[ResidualFact]) -> Iterable[HostWork]:
    """Returns the work left to the host, in the order it is done."""
    query = one.division.query
    if query.where == x.FALSE:
        return
    if len(one.terms) > 1:
        yield HostWork("drop repeats", f"its {len(one.terms)} terms may overlap")
    for condition in residual:
        yield HostWork(f"check {condition.condition}", condition.why)
    if not one.division.on_device and query.where != x.TRUE:
        yield HostWork(f"check {x.show(query.where)}", one.division.why)
    if query.group_by:
        keys = ", ".join(map(x.show, query.group_by))
        yield HostWork(f"group by {keys}", "groups are formed in software")
    aggregates = dict.fromkeys(
        x.show(part)
        for e in (*(item.expression for item in query.items), query.having)
        if e is not None
        for part in x.walk(e)
        if isinstance(part, x.AggregateCall)
    )
    if aggregates:
        yield HostWork(f"compute {', '.join(aggregates)}", "aggregates are computed in software")
    if query.having is not None:
        yield HostWork(f"keep groups with {x.show(query.having)}", "groups are formed in software")


def _notes(scope: View, one: Normalised) -> Iterable[str]:
    """Yields remarks on what may surprise: a fallback, windows that may exceed a buffer."""
    config = scope.c.options.config
    if one.fell_back:
        yield (
            f"more than {scope.c.options.max_terms} terms: the device checks what all of them"
            " have in common, the host the rest"
        )
    for source in one.division.query.sources if one.division.on_device else ():
        if source.window.kind is WindowKind.UNBOUNDED:
            yield (
                f"window of {source.alias} is unbounded; past {config.capacity:,} tuples the device"
                " hands the oldest to the host"
            )
        elif source.window.kind is WindowKind.ROWS and source.window.size > config.capacity:
            yield (
                f"window of {source.alias} holds {source.window.size:,} rows, a buffer"
                f" {config.capacity:,}; the host joins the others"
            )


# --- limits -------------------------------------------------------------------


def uses(scope: View) -> tuple[Use, ...]:
    """Returns every limit of the device under its name in errors, for the whole set of queries."""
    c, limits = scope.c, scope.c.options.config
    areas = range(len(c.layout.slots))
    wide = c.requests.attributes or ((),)
    bits = c.requests.selections or ((),)
    programs = c.programs or ((),)
    factors = [
        sum(isinstance(i, isa.Cmp) and i.r in isa.FACTOR_REGISTERS for i in program)
        for program in programs
    ]
    scratch = [
        len({i.r for i in program if isinstance(i, (isa.AndRegisters, isa.OrRegisters))})
        for program in programs
    ]

    entries = [c.tables.selection_entries(slot, limits.selectors) for slot in areas] or [0]

    def most(resource: str, used: list[int], limit: int) -> Use:
        largest = max(used)
        where = scope.slot(used.index(largest)) if largest and areas else ""
        return Use(resource, largest, limit, where)

    return (
        Use("streams", len(areas), limits.streams, ""),
        Use("queries", len(c.device_queries), limits.queries, ""),
        Use("route tags", len(c.routes.tags), limits.tags, ""),
        most("attributes used", [len(names) for names in wide], limits.attributes),
        most("factors in an area", factors, limits.factors),
        most("scratch registers", scratch, limits.scratch_registers),
        most("selections", [len(terms) for terms in bits], limits.selections),
        most("comparisons", entries, limits.comparisons),
        most("selections in a probe", [len(terms) for terms in bits], limits.probe_selections),
        most("instructions", [len(p) for p in programs], limits.instructions),
    )
