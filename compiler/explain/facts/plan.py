"""The stages of the logical plan: normal form, subqueries, join request table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from seustream.compiler.explain.facts.names import (
    View,
    WindowOf,
    bracketed,
    marks,
    window_of,
    windows_text,
)
from seustream.compiler.explain.marks import GLUE, WIDTH, circled
from seustream.compiler.explain.text import Columns, NamedLines
from seustream.compiler.language import expressions as x
from seustream.compiler.plan.divide import JoinFactor, Leaf, SelectionTerm
from seustream.compiler.plan.normalise import Normalised


def _decided(one: Any) -> str:
    """Returns where a comparison of codes becomes final."""
    return "in the device" if one.exact else "on the host"


# --- normal form --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ResidualFact:
    """A condition that the host must still check, and why."""

    condition: str
    why: str


@dataclass(frozen=True, slots=True)
class NormalForm:
    """A query's condition as terms for the device and the rest for the host. Selections are in
    brackets."""

    query: str
    on_device: bool
    why: str
    condition: str
    terms: tuple[tuple[str, ...], ...]
    residual: tuple[ResidualFact, ...]
    fell_back: bool

    @property
    def title(self) -> str:
        return f"{self.query}  {self.condition}"

    @property
    def labelled(self) -> Iterator[tuple[str, str]]:
        if not self.on_device:
            yield "host", f"not in the device: {self.why}"
            return
        for number, term in enumerate(self.terms, start=1):
            yield f"term {number}", " AND ".join(term) or "every combination"
        for residual in self.residual:
            yield "residual", f"{residual.condition}   ({residual.why})"
        if self.fell_back:
            yield "fallback", "the one term is what all terms have in common"


@dataclass(frozen=True, slots=True)
class Coded:
    """A compared column and its code in the device."""

    COLUMNS: ClassVar[Columns] = (
        ("column", lambda one: f"{one.stream}.{one.column}"),
        ("type", "type"),
        ("code", "encoding"),
        ("decided", _decided),
    )

    stream: str
    column: str
    type: str
    encoding: str
    exact: bool


@dataclass(frozen=True, slots=True)
class Dnf:
    BELOW: ClassVar = (("", "queries"), ("codes of the columns compared", "encodings"))

    queries: tuple[NormalForm, ...]
    encodings: tuple[Coded, ...]


def dnf(scope: View) -> Dnf:
    return Dnf(tuple(normal_form(scope, one) for one in scope.normalised), encodings(scope))


def normal_form(scope: View, one: Normalised) -> NormalForm:
    why = {part.condition: part.why for part in one.division.parts}
    too_large = f"the normal form has more than {scope.c.options.max_terms} terms"
    return NormalForm(
        one.division.query.name,
        one.division.on_device,
        one.division.why,
        x.show(one.division.query.where),
        tuple(tuple(map(_leaf, term)) for term in one.terms),
        tuple(ResidualFact(x.show(e), why.get(e) or too_large) for e in one.residual),
        one.fell_back,
    )


def _leaf(leaf: Leaf) -> str:
    return bracketed(leaf) if isinstance(leaf, SelectionTerm) else leaf.text


def encodings(scope: View) -> tuple[Coded, ...]:
    used = {
        (q.sources[column.source].stream.name, column.name)
        for q in scope.queries
        for column in x.columns(q.where)
    }
    rows = []
    for stream in scope.c.program.streams:
        for (name, column), encoding in scope.c.layout.encodings.items():
            expression = scope.c.layout.computed.get((name, column))
            if name == stream.name and ((name, column) in used or expression is not None):
                found = stream.column(column) if expression is None else expression
                kind = "" if found is None else str(found.type)
                rows.append(Coded(name, column, kind, str(encoding), encoding.is_exact))
    return tuple(rows)


# --- subqueries ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SubqueryFacts:
    COLUMNS: ClassVar[Columns] = (
        ("#", "number"),
        ("streams", "streams"),
        ("condition", "checked"),
        ("window", "window"),
        ("asked by", "parents"),
        ("", "sharing"),
    )

    number: int
    streams: tuple[str, ...]
    condition: str
    windows: tuple[WindowOf, ...]
    parents: tuple[str, ...]
    shared: bool

    @property
    def checked(self) -> str:
        return self.condition or "every combination"

    @property
    def sharing(self) -> str:
        return "shared" if self.shared else ""

    @property
    def window(self) -> str:
        return windows_text(self.windows)


def subqueries(scope: View) -> tuple[SubqueryFacts, ...]:
    wanted = scope.subqueries
    return tuple(
        SubqueryFacts(
            s.number,
            tuple(map(scope.slot, s.slots)),
            " AND ".join(
                scope.factor(leaf) if isinstance(leaf, JoinFactor) else bracketed(leaf)
                for leaf in s.leaves
            ),
            tuple(window_of(scope.slot(n), w) for n, w in zip(s.slots, s.windows, strict=True)),
            tuple(scope.c.device_queries[parent].division.query.name for parent in s.parents),
            len(s.parents) > 1,
        )
        for s in scope.c.subqueries
        if s.number in wanted
    )


# --- join request table -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RequestRow:
    COLUMNS: ClassVar[Columns] = (
        ("query", "subquery"),
        ("streams", "streams"),
        ("factors", lambda row: marks(row.factors) or "–"),
        ("selections", lambda row: " ".join(row.selections)),
        ("window", "window"),
        ("asked by", "parents"),
    )

    subquery: int
    streams: tuple[str, ...]
    factors: tuple[int, ...]
    selections: tuple[str, ...]
    windows: tuple[WindowOf, ...]
    parents: tuple[str, ...]

    @property
    def window(self) -> str:
        return windows_text(self.windows)


@dataclass(frozen=True, slots=True)
class FactorFacts:
    """A join factor, numbered from 1 as its mark is."""

    COLUMNS: ClassVar[Columns] = (
        ("", "mark"),
        ("condition", "condition"),
        ("in", "subqueries"),
    )

    number: int
    mark: str
    condition: str
    subqueries: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SelectionFacts:
    """A selection bit: its condition, and the comparisons of codes that decide it."""

    COLUMNS: ClassVar[Columns] = (
        ("", "mark"),
        ("stream", "stream"),
        ("bit", "bit"),
        ("condition", "condition"),
        ("on codes", "codes"),
        ("in", "subqueries"),
    )

    mark: str
    stream: str
    bit: int
    condition: str
    codes: str
    subqueries: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AttributeFacts:
    """A column that the device sees, and its place there."""

    COLUMNS: ClassVar[Columns] = (
        ("stream", "stream"),
        ("attribute", "attribute"),
        ("column", "column"),
        ("type", "type"),
        ("code", "encoding"),
        ("decided", _decided),
    )

    stream: str
    attribute: int
    column: str
    type: str
    encoding: str
    exact: bool


@dataclass(frozen=True, slots=True)
class RequestTable:
    BELOW: ClassVar = (
        ("", "rows"),
        ("factors", "factors"),
        ("selections", "selections"),
        ("attributes", "attributes"),
    )

    rows: tuple[RequestRow, ...]
    factors: tuple[FactorFacts, ...]
    selections: tuple[SelectionFacts, ...]
    attributes: tuple[AttributeFacts, ...]

    @property
    def legend(self) -> NamedLines:
        """Returns the marks of factors and selections, on one line if all are short."""
        signs = [f"{one.mark} {one.condition}" for one in self.factors]
        signs += [f"{one.mark} {one.condition}" for one in self.selections]
        if all(len(sign) < WIDTH // 2 for sign in signs):
            signs = ["   ".join(sign.replace(" ", GLUE) for sign in signs)] if signs else []
        return NamedLines("", tuple(("", sign) for sign in signs))


def requests(scope: View) -> RequestTable:
    table, wanted = scope.c.requests, scope.subqueries
    by_number = {s.number: s for s in subqueries(scope)}
    rows = [row for row in table.rows if row.subquery.number in wanted]
    users: dict[int, list[int]] = {}
    bit_users: dict[tuple[int, int], list[int]] = {}
    for row in rows:
        for factor in row.factors:
            users.setdefault(factor, []).append(row.subquery.number)
        for pair in row.selections:
            bit_users.setdefault(pair, []).append(row.subquery.number)
    return RequestTable(
        tuple(
            RequestRow(
                row.subquery.number,
                tuple(map(scope.slot, row.slots)),
                tuple(number + 1 for number in row.factors),
                tuple(scope.selection_mark(slot, bit) for slot, bit in row.selections),
                by_number[row.subquery.number].windows,
                by_number[row.subquery.number].parents,
            )
            for row in rows
        ),
        tuple(
            FactorFacts(
                number + 1,
                circled(number + 1),
                scope.factor(factor),
                tuple(users[number]),
            )
            for number, factor in enumerate(table.factors)
            if number in users
        ),
        tuple(
            SelectionFacts(
                scope.selection_mark(slot, bit),
                scope.slot(slot),
                bit,
                table.selections[slot][bit].text,
                _codes(table.selections[slot][bit]),
                tuple(numbers),
            )
            for (slot, bit), numbers in sorted(bit_users.items())
        ),
        attributes(scope),
    )


def _codes(term: SelectionTerm) -> str:
    """Shows the comparisons of codes that make up a selection bit."""
    joined = " AND " if term.every else " OR "
    return joined.join(f"{t.column} {t.condition.symbol} {t.code:#x}" for t in term.tests)


def attributes(scope: View) -> tuple[AttributeFacts, ...]:
    """Returns the attributes of the wanted queries' streams, numbered for all queries together."""
    rows = []
    used = {slot for s in scope.c.subqueries if s.number in scope.subqueries for slot in s.slots}
    for position, slot in enumerate(scope.c.layout.slots):
        names = scope.c.requests.attributes[position] if position in used else ()
        for number, name in enumerate(names):
            column = slot.stream.column(name)
            encoding = scope.c.layout.encodings[slot.stream.name, name]
            kind = "" if column is None else str(column.type)
            exact = encoding.is_exact
            rows.append(AttributeFacts(slot.name, number, name, kind, str(encoding), exact))
    return tuple(rows)
