"""The stages of the machine: join areas and their programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from seustream.compiler.explain.facts.names import View, bracketed, marks, retention_text
from seustream.compiler.explain.facts.plan import (
    AttributeFacts,
    SelectionFacts,
    attributes,
    requests,
)
from seustream.compiler.explain.marks import circled, plural
from seustream.compiler.explain.text import Columns
from seustream.compiler.plan.areas import factor_numbers
from seustream.compiler.plan.divide import JoinFactor
from seustream.compiler.plan.guards import equalities
from seustream.compiler.wjasip.assembler import show
from seustream.hdl import isa
from seustream.hdl.isa import Instruction

# --- areas --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FactorRegister:
    """A factor as an area evaluates it; its result is in register `register`."""

    COLUMNS: ClassVar[Columns] = (
        ("register", lambda one: f"r{one.register}"),
        ("", "mark"),
        ("factor", "condition"),
        ("compares", "compares"),
    )

    register: int
    factor: int
    mark: str
    condition: str
    compares: str


@dataclass(frozen=True, slots=True)
class CombinationFacts:
    """One combination: a probe tuple with tag `pre` that meets the conditions becomes one with tag
    `post`."""

    COLUMNS: ClassVar[Columns] = (
        ("tag", "pre"),
        ("carries", "carries"),
        ("factors", lambda row: marks(row.factors) or "×"),
        ("selections", lambda row: " ".join(row.selections)),
        ("becomes", "post"),
        ("then", "then"),
    )

    pre: int
    carries: tuple[str, ...]
    factors: tuple[int, ...]
    selections: tuple[str, ...]
    post: int
    queries: tuple[str, ...]
    probes: tuple[str, ...]

    @property
    def then(self) -> str:
        results = f"⇒ {', '.join(self.queries)}" if self.queries else ""
        probes = f"→ probe {', '.join(self.probes)}" if self.probes else ""
        return f"{results} {probes}".strip()


@dataclass(frozen=True, slots=True)
class Lookup:
    """Probes with this tag look up the window tuples that satisfy factor `factor`."""

    tag: int
    factor: int
    mark: str


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """An equality index over one column of an area's window tuples."""

    column: str
    lookups: tuple[Lookup, ...]


@dataclass(frozen=True, slots=True)
class ScanFacts:
    """Probes with these tags are compared with every window tuple, for the reason in `why`."""

    tags: tuple[int, ...]
    why: str

    @property
    def words(self) -> str:
        return f"{_tags(len(self.tags))} {', '.join(map(str, self.tags))}"


@dataclass(frozen=True, slots=True)
class RowFacts:
    """Window tuples compared at once (`lanes`), and the cycles that takes: `comparators` serve the
    `factors` of the busiest kind, which are on `columns`."""

    lanes: int
    cycles: int
    factors: int
    columns: tuple[str, ...]
    comparators: int


@dataclass(frozen=True, slots=True)
class AreaFacts:
    """A join area. Its selections are those of its own tuples, evaluated at admission, and those
    that its combinations require of a probe."""

    BELOW: ClassVar = (("", "factors"), ("", "selections"), ("", "combinations"))

    area: str
    attributes: tuple[AttributeFacts, ...]
    factors: tuple[FactorRegister, ...]
    combinations: tuple[CombinationFacts, ...]
    indexes: tuple[IndexFacts, ...]
    scans: tuple[ScanFacts, ...]
    row: RowFacts | None
    selections: tuple[SelectionFacts, ...]
    admits: tuple[str, ...]
    keeps: str
    capacity: int
    instructions: int

    @property
    def title(self) -> str:
        size = f", {plural(self.instructions, 'instruction')}" if self.instructions else ""
        return f"area {self.area}{size}"

    @property
    def admitted(self) -> str:
        return " or ".join(self.admits) or "every tuple"

    @property
    def labelled(self) -> Iterator[tuple[str, str]]:
        columns = ", ".join(f"{a.attribute} = {a.column}" for a in self.attributes)
        yield "attributes", columns or "none"
        yield "keeps", f"{self.keeps}, in a buffer of {self.capacity:,} tuples"
        yield "admits", self.admitted
        for index in self.indexes:
            found = ", ".join(f"{lookup.tag} ({lookup.mark})" for lookup in index.lookups)
            yield "indexed", f"by {index.column} for {_tags(len(index.lookups))} {found}"
        for scan in self.scans:
            yield "scanned", f"for {scan.words}: {scan.why}"
        if (row := self.row) and row.cycles > 1:
            yield (
                "a row",
                f"of {row.lanes} tuples takes {row.cycles} cycles: {row.factors} factors of"
                f" {', '.join(row.columns)}, {row.comparators} compared at once",
            )


def _tags(count: int) -> str:
    return "tag" if count == 1 else "tags"


def areas(scope: View) -> tuple[AreaFacts, ...]:
    tags = scope.tags
    used = {number for tag in tags for number in scope.c.routes.tags[tag].bound}
    return tuple(_area(scope, slot) for slot in range(len(scope.c.layout.slots)) if slot in used)


def _area(scope: View, slot: int) -> AreaFacts:
    c = scope.c
    area = c.tables.areas[slot]
    numbers = factor_numbers(slot, c.routes)
    steps = sorted((s for s in scope.steps if s.area == slot), key=lambda s: (s.pre, s.post))
    used = {number for step in steps for number in step.factors}
    factors = tuple(
        FactorRegister(
            register,
            number + 1,
            circled(number + 1),
            scope.factor(c.requests.factors[number]),
            _as_compared(scope, c.requests.factors[number], slot),
        )
        for register, number in enumerate(numbers)
        if number in used
    )
    combinations = []
    for step in steps:
        after = c.tables.routes[step.post]
        combinations.append(
            CombinationFacts(
                step.pre,
                scope.slots(c.routes.tags[step.pre].bound),
                tuple(number + 1 for number in step.factors),
                tuple(scope.selection_mark(*pair) for pair in scope.step_selections(step)),
                step.post,
                scope.device_queries(after.queries),
                scope.slots(after.probes),
            )
        )
    name, checked = scope.slot(slot), {mark for row in combinations for mark in row.selections}
    program = c.programs[slot] if c.programs else ()
    return AreaFacts(
        name,
        tuple(a for a in attributes(scope) if a.stream == name),
        factors,
        tuple(combinations),
        _indexes(scope, slot, numbers),
        _scans(scope, slot),
        _row(scope, slot),
        tuple(s for s in requests(scope).selections if s.stream == name or s.mark in checked),
        _admits(scope, slot),
        retention_text(area.retention),
        c.options.config.capacity,
        len(program),
    )


def _indexes(scope: View, slot: int, numbers: list[int]) -> tuple[IndexFacts, ...]:
    area = scope.c.tables.areas[slot]
    lookups: dict[int, list[Lookup]] = {}
    for tag in _probing(scope, slot):
        if tag in area.guards:
            factor = area.guards[tag]
            number = numbers[factor] + 1
            attribute = area.factors[factor].window_attribute
            lookups.setdefault(attribute, []).append(Lookup(tag, number, circled(number)))
    columns = scope.c.requests.attributes[slot]
    return tuple(IndexFacts(columns[a], tuple(found)) for a, found in sorted(lookups.items()))


def _scans(scope: View, slot: int) -> tuple[ScanFacts, ...]:
    area, config = scope.c.tables.areas[slot], scope.c.options.config
    reasons: dict[str, list[int]] = {}
    for tag in _probing(scope, slot):
        if tag in area.guards:
            continue
        if not equalities(area, tag):
            why = "no equality common to all combinations"
        elif config.indexes:
            why = f"no index left of {config.indexes}"
        else:
            why = f"configuration {config.name} has no index"
        reasons.setdefault(why, []).append(tag)
    return tuple(ScanFacts(tuple(tags), why) for why, tags in reasons.items())


def _row(scope: View, slot: int) -> RowFacts | None:
    """Describes how the factor array compares a row of window tuples; None if there is no array."""
    config, columns = scope.c.options.config, scope.c.requests.attributes[slot]
    if not config.lanes:
        return None
    of_kind: dict[int, list[int]] = {}
    for factor in scope.c.tables.areas[slot].factors:
        of_kind.setdefault(factor.window_attribute % config.kinds, []).append(
            factor.window_attribute
        )
    busiest = max(of_kind.values(), key=len, default=[])
    cycles = max(1, -(-len(busiest) // config.comparators_alike))
    names = tuple(columns[attribute] for attribute in sorted(set(busiest)))
    return RowFacts(config.lanes, cycles, len(busiest), names, config.comparators_alike)


def _probing(scope: View, slot: int) -> list[int]:
    """Returns the tags that probe an area, ascending."""
    return sorted({step.pre for step in scope.steps if step.area == slot})


def _as_compared(scope: View, factor: JoinFactor, slot: int) -> str:
    """Shows a factor with the probe's side on the left, as CMP has it."""
    window, probe, condition = factor.left, factor.right, factor.condition.mirrored()
    if factor.right.slot == slot:
        window, probe, condition = factor.right, factor.left, factor.condition
    return (
        f"probe {scope.slot(probe.slot)}.{probe.column} {condition.symbol} window {window.column}"
    )


def _admits(scope: View, slot: int) -> tuple[str, ...]:
    """Returns the alternatives that admit a raw tuple; empty if every tuple is admitted."""
    terms = scope.c.requests.selections[slot]
    masks = scope.c.tables.admission[slot]
    if 0 in masks:
        return ()
    return tuple(
        " AND ".join(bracketed(term) for bit, term in enumerate(terms) if mask >> bit & 1)
        for mask in masks
    )


# --- listing ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MachineLine:
    """An instruction: its address, its word, its text, and what it does for the queries."""

    COLUMNS: ClassVar[Columns] = (
        ("", "address"),
        ("", "word"),
        ("", "instruction"),
        ("", lambda line: f"; {line.comment}"),
    )

    address: int
    word: str
    instruction: str
    comment: str


@dataclass(frozen=True, slots=True)
class SelectionRegister:
    """A register that reads a selection bit of the window tuple, or of a probe from a stream."""

    COLUMNS: ClassVar[Columns] = (
        ("register", lambda one: f"r{one.register}"),
        ("reads", "mark"),
        ("of the", "of"),
        ("condition", "condition"),
    )

    register: int
    mark: str
    condition: str
    of: str


@dataclass(frozen=True, slots=True)
class Listing:
    BELOW: ClassVar = (("", "registers"), ("", "lines"))

    area: str
    registers: tuple[SelectionRegister, ...]
    lines: tuple[MachineLine, ...]
    limit: int

    @property
    def title(self) -> str:
        return f"area {self.area}: {plural(len(self.lines), 'instruction')} of {self.limit:,}"


def listings(scope: View) -> tuple[Listing, ...]:
    """Lists every area's program. A program serves all queries at once, so one query's share is not
    cut out of it; results of others appear as `other queries`."""
    return tuple(
        Listing(
            scope.slot(slot),
            tuple(_selection_registers(scope, slot)),
            tuple(_Commentator(scope, slot, program).lines()),
            scope.c.options.config.instructions,
        )
        for slot, program in enumerate(scope.c.programs)
    )


def _selection_registers(scope: View, slot: int) -> Iterable[SelectionRegister]:
    """Yields the registers that some combination of the area reads, regardless of the query."""
    steps = [step for step in scope.c.routes.steps if step.area == slot]
    window = {(slot, bit) for step in steps for bit in step.window_selections}
    probes = {
        (min(scope.c.routes.tags[step.pre].bound), bit)
        for step in steps
        for bit in step.probe_selections
    }
    for registers, pairs, of in (
        (isa.WINDOW_SELECTION_REGISTERS, window, "window tuple"),
        (isa.PROBE_SELECTION_REGISTERS, probes, "probe"),
    ):
        for owner, bit in sorted(pairs):
            text = scope.c.requests.selections[owner][bit].text
            whose = of if owner == slot else f"{of} {scope.slot(owner)}"
            yield SelectionRegister(registers[bit], scope.selection_mark(owner, bit), text, whose)


class _Commentator:
    """Reads a program in order and tracks what every register stands for."""

    def __init__(self, scope: View, slot: int, program: Sequence[Instruction]) -> None:
        self.scope, self.slot, self.program = scope, slot, program
        self.factors = factor_numbers(slot, scope.c.routes)
        self.made: dict[int, tuple[int, ...]] = {}  # conjunctions: the registers they combine
        self.holds: dict[int, str] = {isa.TRUE_REGISTER: "always"}
        for bit, register in enumerate(isa.PROBE_SELECTION_REGISTERS):
            self.holds[register] = f"probe's bit {bit}"
        for bit in range(len(scope.c.requests.selections[slot])):
            self.holds[isa.WINDOW_SELECTION_REGISTERS[bit]] = scope.selection_mark(slot, bit)

    def lines(self) -> list[MachineLine]:
        names = self.scope.c.slot_names
        return [
            MachineLine(
                address,
                f"{instruction.encode():05X}",
                show(instruction, names),
                self._comment(instruction),
            )
            for address, instruction in enumerate(self.program)
        ]

    def _comment(self, instruction: Instruction) -> str:
        match instruction:
            case isa.Cmp():
                return self._compare(instruction)
            case isa.AndRegisters(a, b, r):
                self.made[r] = (*self.made.get(a, (a,)), *self.made.get(b, (b,)))
                return f"r{r} ← {self._register(r)}"
            case isa.OrRegisters(a, b, r):
                return f"r{r} ← {self._register(a)} ∨ {self._register(b)}"
            case isa.Jmpct(tag, address):
                self._probe_is(tag)
                return f"probe carries tag {tag} ({self._carried(tag)})? else to {address}"
            case isa.Emit(r, tag):
                return (
                    f"{self._register(r)}: emit tag {tag} ({self._carried(tag)}) {self._after(tag)}"
                )
            case isa.Jmpli():
                return f"no comparison holds? to {len(self.program) - 1}"
            case isa.Jmp(address):
                return f"to {address}"
            case _:
                return "end of the pair"

    def _compare(self, cmp: isa.Cmp) -> str:
        if cmp.condition == isa.Condition.TRUE:
            self.holds[cmp.r] = "always"
            return f"r{cmp.r} ← 1, for combinations without a factor"
        number = self.factors[cmp.r]
        self.holds[cmp.r] = circled(number + 1)
        factor = self.scope.factor(self.scope.c.requests.factors[number])
        return f"r{cmp.r} ← {circled(number + 1)} {factor}"

    def _probe_is(self, tag: int) -> None:
        """Records that from here on the probe's selection bits are those of this raw tuple's
        stream."""
        bound = self.scope.c.routes.tags[tag].bound
        if len(bound) == 1:
            probe = min(bound)
            for bit in range(len(self.scope.c.requests.selections[probe])):
                mark = self.scope.selection_mark(probe, bit)
                self.holds[isa.PROBE_SELECTION_REGISTERS[bit]] = mark

    def _register(self, register: int) -> str:
        parts = self.made.get(register, (register,))
        return " ∧ ".join(self.holds.get(part, f"r{part}") for part in parts)

    def _carried(self, tag: int) -> str:
        return ",".join(self.scope.slots(self.scope.c.routes.tags[tag].bound))

    def _after(self, tag: int) -> str:
        """Returns the destination of a tuple with this tag."""
        route = self.scope.c.tables.routes[tag]
        ways = []
        if route.queries:
            mine = self.scope.device_queries(route.queries)
            ways.append(f"⇒ {', '.join(mine) or 'other queries'}")
        if route.probes:
            ways.append(f"→ probe {', '.join(self.scope.slots(route.probes))}")
        return " ".join(ways)
