"""Provenance: what each part of a compilation was made from, back to the text, and what it became.

before  a compilation
after   parts (query, comparison, factor, selection, what the host decides, subquery, tag, step,
        instruction, word of the image) and the links between them, from what was written to what
        executes it

A part's identifier is its kind and its number: `factor:1`, `tag:3`, `instruction:0:12`. Numbers are
those of EXPLAIN. The links lead down from a comparison to everything that serves it, and up from an
instruction or a result's tag to everything that asked for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from seustream.compiler.errors import Span
from seustream.compiler.explain.facts.names import View
from seustream.compiler.language import expressions as x
from seustream.compiler.pipeline import Compilation
from seustream.compiler.plan.areas import factor_numbers
from seustream.compiler.plan.decompose import Subquery
from seustream.compiler.plan.divide import JoinFactor, Leaf
from seustream.compiler.wjasip.image import places
from seustream.hdl import isa


@dataclass(frozen=True, slots=True)
class Traced:
    """One part of a compilation; `spans` are its places in the text, if it is text."""

    id: str
    kind: str
    label: str
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Provenance:
    """The parts by identifier, and the links, each from an earlier stage to a later one."""

    parts: dict[str, Traced]
    links: frozenset[tuple[str, str]]

    def sources(self, part: str) -> frozenset[str]:
        """Returns everything a part was made from. The sources of a step or a subquery exclude what
        its factors or selections mean to others that share them."""
        above = defaultdict(set)
        for start, end in self.links:
            above[end].add(start)
        return _reached(part, above, ("step:", "subquery:"))

    def products(self, part: str) -> frozenset[str]:
        """Returns everything that was made from a part."""
        below = defaultdict(set)
        for start, end in self.links:
            below[start].add(end)
        return _reached(part, below)


def _reached(
    part: str, follow: Mapping[str, Iterable[str]], narrow: tuple[str, ...] = ()
) -> frozenset[str]:
    """Returns the parts that links reach; from a part whose kind is in `narrow`, they end at a
    condition."""
    found: set[str] = set()
    waiting = [part]
    while waiting:
        here = waiting.pop()
        for other in set(follow.get(here, ())) - found:
            found.add(other)
            if not (narrow and here.startswith(narrow) and other.startswith(_CONDITIONS)):
                waiting.append(other)
    return frozenset(found)


_CONDITIONS = ("factor:", "selection:")


def provenance(c: Compilation) -> Provenance:
    """Returns the parts of one device's compilation and their links."""
    made = _Links(c)
    made.conditions()
    made.host()
    made.routes()
    for slot in range(len(c.programs)):
        made.program(slot)
    made.image()
    return Provenance(made.parts, frozenset(made.links))


class _Links:
    def __init__(self, c: Compilation) -> None:
        self.c, self.view = c, View(c)
        self.parts: dict[str, Traced] = {}
        self.links: set[tuple[str, str]] = set()
        for query in c.program.queries:
            self._part(f"query:{query.name}", query.name, (query.span,))

    def _part(self, id: str, label: str, spans: tuple[Span, ...] = ()) -> str:
        self.parts.setdefault(id, Traced(id, id.partition(":")[0], label, spans))
        return id

    def _link(self, start: str, end: str) -> None:
        self.links.add((start, end))

    def conditions(self) -> None:
        """Adds queries, their comparisons, and the factors, selections and subqueries made from
        these."""
        requests = self.c.requests
        for number, factor in enumerate(requests.factors, start=1):
            self._part(f"factor:{number}", self.view.factor(factor))
        for slot, terms in enumerate(requests.selections):
            for bit, term in enumerate(terms):
                label = f"{self.view.selection_mark(slot, bit)} {term.text}"
                self._part(f"selection:{slot}:{bit}", label)
        for row in requests.rows:
            subquery = row.subquery
            me = self._part(f"subquery:{subquery.number}", f"subquery {subquery.number}")
            for parent in subquery.parents:
                query = self.c.device_queries[parent].division.query
                self._link(f"query:{query.name}", me)
            for leaf in subquery.leaves:
                self._link(self._number(leaf), me)
        for row in requests.rows:
            for parent in row.subquery.parents:
                self._written(parent, row.subquery)

    def _written(self, parent: int, subquery: Subquery) -> None:
        """Links the places in a query's text to the subquery that has its conditions from them."""
        one = self.c.device_queries[parent]
        query = f"query:{one.division.query.name}"
        for leaf in (leaf for term in one.terms for leaf in term if leaf in subquery.leaves):
            for span in leaf.spans:
                text = self.c.source.text[span.start : span.end]
                written = self._part(f"comparison:{span.start}:{span.end}", text, (span,))
                self._link(query, written)
                self._link(written, self._number(leaf))
                self._link(written, f"subquery:{subquery.number}")

    def host(self) -> None:
        """Adds the conjuncts that the host decides, and the reason for each."""
        for one in self.c.device_queries:
            name = one.division.query.name
            for number, part in enumerate(one.division.parts):
                if part.why is None:
                    continue
                me = self._part(f"host:{name}:{number}", f"{name}: {part.why}")
                self._link(f"query:{name}", me)
                for e in x.walk(part.condition):
                    if isinstance(e, x.Compare) and e.span is not None:
                        text = self.c.source.text[e.span.start : e.span.end]
                        id = f"comparison:{e.span.start}:{e.span.end}"
                        self._link(f"query:{name}", self._part(id, text, (e.span,)))
                        self._link(id, me)

    def _number(self, leaf: Leaf) -> str:
        requests = self.c.requests
        if isinstance(leaf, JoinFactor):
            return f"factor:{requests.factors.index(leaf) + 1}"
        return f"selection:{leaf.slot}:{requests.selections[leaf.slot].index(leaf)}"

    def routes(self) -> None:
        """Adds tags, linked from the subqueries that they serve, and the steps between them."""
        for tag in self.c.routes.tags:
            carries = ", ".join(self.view.slots(tag.bound))
            me = self._part(f"tag:{tag.number}", f"tag {tag.number} ({carries})")
            served = tag.subqueries
            if tag.inserts:  # a raw tuple's tag serves every reader of its stream
                served = {s.number for s in self.c.subqueries if tag.bound <= set(s.slots)}
            for number in served:
                self._link(f"subquery:{number}", me)
        for number, step in enumerate(self.c.routes.steps):
            me = self._part(
                f"step:{number}", f"tag {step.pre} in {self.view.slot(step.area)} → tag {step.post}"
            )
            for factor in step.factors:
                self._link(f"factor:{factor + 1}", me)
            for slot, bit in self.view.step_selections(step):
                self._link(f"selection:{slot}:{bit}", me)
            self._link(f"tag:{step.post}", me)  # whose subqueries the step serves

    def program(self, slot: int) -> None:
        """Adds the instructions of an area. A comparison belongs to its factor, a jump to its tag;
        an instruction that combines registers or sends a pair on serves the steps that the register
        serves."""
        numbers = factor_numbers(slot, self.c.routes)
        steps = {
            (step.pre, step.post): f"step:{number}"
            for number, step in enumerate(self.c.routes.steps)
            if step.area == slot
        }
        program, of_tag = self.c.programs[slot], {}
        tag = -1
        for address, instruction in enumerate(program):
            if isinstance(instruction, isa.Jmpct):
                tag = instruction.tag
            of_tag[address] = tag
        wanted: dict[int, set[str]] = defaultdict(set)  # by register, the steps it serves
        for address, instruction in reversed(list(enumerate(program))):
            label = f"{self.view.slot(slot)} {address}: {instruction}"
            me = self._part(f"instruction:{slot}:{address}", label)
            sources = set(steps.values())
            match instruction:
                case isa.Emit(register, post):
                    sources = {steps[of_tag[address], post]}
                    wanted[register] |= sources
                case isa.AndRegisters(a, b, register) | isa.OrRegisters(a, b, register):
                    sources = wanted.pop(register)
                    wanted[a] |= sources
                    wanted[b] |= sources
                case isa.Cmp() if instruction.r < len(numbers):
                    sources = {f"factor:{numbers[instruction.r] + 1}"}
                case isa.Jmpct(tag, _):
                    sources = {f"tag:{tag}"}
            for source in sources:
                self._link(source, me)

    def image(self) -> None:
        """Adds the words of the image: the bytes of each row of its tables, and what the row
        encodes."""
        for name, (start, end) in places(self.c.tables, self.c.options.config).items():
            if sources := self._said(*(_numbered(part) for part in name.split("/"))):
                label = f"{start:04x} {name.replace(':', ' ')}: {self.c.image[start:end].hex(' ')}"
                me = self._part(f"word:{start}", label)
                for source in sources:
                    self._link(source, me)

    def _said(self, section: tuple[str, int], row: tuple[str, int] = ("", 0)) -> list[str]:
        """Returns the parts that a row of the image encodes; none for a section that has rows of
        its own."""
        (table, slot), (kind, number) = section, row
        match table, kind:
            case "areas", "program":
                return [f"instruction:{slot}:{number}"]
            case "areas", "factors":
                return [f"factor:{factor_numbers(slot, self.c.routes)[number] + 1}"]
            case "areas", "combinations":
                one = self.c.tables.areas[slot].combinations[number]
                ends = (one.pre_tag, slot, one.post_tag)
                steps = enumerate(self.c.routes.steps)
                return [f"step:{n}" for n, s in steps if (s.pre, s.area, s.post) == ends]
            case "areas", "guards":
                return [f"tag:{sorted(self.c.tables.areas[slot].guards)[number]}"]
            case "selections", "bits":
                return [f"selection:{slot}:{number}"]
            case "admission", _:
                return [f"tag:{slot}"]  # of the stream's raw tuples
            case "routes", _:
                return [f"tag:{sorted(self.c.tables.routes)[slot]}"]
            case "windows", _:
                return [f"query:{self.c.device_queries[slot].division.query.name}"]
        return []


def _numbered(part: str) -> tuple[str, int]:
    name, _, number = part.partition(":")
    return name, int(number)
