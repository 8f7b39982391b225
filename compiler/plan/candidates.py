"""Candidates: joins by which a device finds where a pattern may match.

before  p: PATTERN A a; B+ b; C c WHERE [k] AND a.x < c.x WITHIN 10 s
after   p#1: FROM E a, E c WHERE a.type = 'A' AND c.type = 'C' AND a.k = c.k AND a.x < c.x WINDOW 10 s
        p reads E and p#1

Every match holds events that the join finds, as the join requires nothing that the pattern does not. The
engine therefore only looks for matches among the events from the first to the last of each result. It
checks what no join expresses: groups, absences, strictness, the order of events.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from seustream.compiler.catalogue import TIME_COLUMN, Column, Stream
from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import BIGINT, Kind, Type
from seustream.compiler.logical.program import Program, Query, Source
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Class
from seustream.compiler.plan.statistics import TYPICAL_ROWS, Statistics
from seustream.hdl.config import DeviceConfig
from seustream.hdl.device import Window, WindowKind
from seustream.hdl.isa import Condition

MOST = 0.5
"""Candidates per event beyond which the engine looks at nearly all events anyway."""
_SHARES = {Condition.EQ: 0.01, Condition.NE: 0.99}
_ORDER = 1 / 3
_TYPE = 0.1
"""The default share of events that have a type, and of pairs for which a condition holds."""


def with_candidates(program: Program, config: DeviceConfig, statistics: Statistics) -> Program:
    """Adds a join to the program for each pattern whose work it reduces."""
    queries, streams, patterns = list(program.queries), list(program.streams), []
    for pattern in program.patterns:
        found = _Candidates.of(pattern, config)
        if isinstance(found, str):
            patterns.append(replace(pattern, whole=found))
            continue
        expected = found.expected(statistics)
        if expected > MOST:
            why = f"a join would find {expected:,.3g} candidates for an event"
            patterns.append(replace(pattern, whole=why))
            continue
        query = found.query()
        stream = Stream(query.name, (Column("ts_oldest", BIGINT, nullable=False),), query.text)
        queries.append(query)
        streams.append(stream)
        patterns.append(replace(pattern, candidates=stream))
    return replace(
        program, queries=tuple(queries), streams=tuple(streams), patterns=tuple(patterns)
    )


def without_candidates(program: Program, why: Mapping[str, str] | None = None) -> Program:
    """Removes the joins that `why` names, or all, as if there had been none."""
    gone = {p.candidates.name for p in program.patterns if p.candidates is not None}
    gone &= gone if why is None else why.keys()
    if not gone:
        return program
    return replace(
        program,
        queries=tuple(query for query in program.queries if query.name not in gone),
        streams=tuple(stream for stream in program.streams if stream.name not in gone),
        patterns=tuple(
            replace(
                pattern, candidates=None, whole="" if why is None else why[pattern.candidates.name]
            )
            if pattern.candidates is not None and pattern.candidates.name in gone
            else pattern
            for pattern in program.patterns
        ),
    )


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The single events of a pattern that its join covers, and the conditions on them."""

    pattern: ir.PatternQuery
    chosen: tuple[int, ...]
    terms: tuple[x.Expression, ...]

    @classmethod
    def of(cls, pattern: ir.MatchQuery, config: DeviceConfig) -> _Candidates | str:
        """Returns the candidates of a pattern, or the reason why it has none."""
        if why := _why_not(pattern):
            return why
        assert isinstance(pattern, ir.PatternQuery)
        first, *between, last = pattern.anchors
        chosen = (first, *between[: config.streams - 2], last)
        used = [set[str]() for _ in chosen]
        terms = []
        for term in _conditions(pattern, chosen):
            read = [set(names) for names in used]
            for column in x.columns(term):
                read[column.source].add(column.name)
            if all(len(names) <= config.attributes for names in read):
                used = read
                terms.append(term)
        return cls(pattern, chosen, tuple(terms))

    def query(self) -> Query:
        """Returns the join, which only arrivals of the last event complete."""
        pattern = self.pattern
        assert pattern.window is not None
        window = Window(WindowKind.RANGE, pattern.window)
        name = f"{pattern.name}#1"
        sources = tuple(
            Source(pattern.elements[i].variable, pattern.stream, window, pattern.span, pattern.span)
            for i in self.chosen
        )
        return Query(
            name,
            sources,
            x.conjunction(self.terms),
            (),
            (),
            None,
            False,
            f"candidates of {pattern.text}",
            pattern.span,
            defines=name,
            keeps_oldest=True,
            last=len(sources) - 1,
        )

    def expected(self, statistics: Statistics) -> float:
        """Estimates the number of results per event of the stream."""
        stream = self.pattern.stream.name.lower()
        rows = statistics.rows.get(stream, TYPICAL_ROWS)
        typed = self.pattern.type_column

        def share(e: x.Expression) -> float:
            match e:
                case x.And():
                    return math.prod(map(share, e.terms))
                case x.Or():
                    return min(1.0, sum(map(share, e.terms)))
                case x.Compare():
                    columns = [c.name.lower() for c in x.columns(e)]
                    known = [
                        statistics.distinct[stream, name]
                        for name in columns
                        if (stream, name) in statistics.distinct
                    ]
                    if e.condition not in _SHARES:
                        return _ORDER
                    equal = 1 / max(known) if known else _SHARES[Condition.EQ]
                    if not known and columns == [typed]:
                        equal = _TYPE
                    return equal if e.condition is Condition.EQ else 1 - equal
            return 1.0

        return math.prod(map(share, self.terms)) * rows ** (len(self.chosen) - 1)


def _why_not(pattern: ir.MatchQuery) -> str:
    """Returns why no join finds candidates of a pattern; empty if one may."""
    stream = pattern.stream
    if not isinstance(pattern, ir.PatternQuery):
        return "MATCH_RECOGNIZE is matched row by row"
    if pattern.variants:
        return "it has optional parts"
    if pattern.empty:
        return "its condition is never true"
    if stream.defined_by is not None or stream.table:
        return f"it reads a {'table' if stream.table else 'derived stream'}"
    if pattern.window is None:
        return "its window has no bound"
    if not pattern.elements[-1].single:
        return "it does not end with a single event"
    if len(pattern.anchors) < 2:
        return "it has one single event"
    if pattern.strict:
        return "its first fault is an error"
    if stream.column(ir.TIME) is not TIME_COLUMN or ir.TIME in pattern.partition:
        return "its stream has a column called ts"
    return ""


def _conditions(pattern: ir.PatternQuery, chosen: tuple[int, ...]) -> Iterator[x.Expression]:
    """Lists the conditions of the pattern on these events, types and keys first."""
    for source, element in enumerate(chosen):
        if (term := _of_type(pattern, element, source)) is not None:
            yield term
    last = len(chosen) - 1
    for name in pattern.partition:
        column = pattern.stream.column(name)
        assert column is not None
        if column.type.kind is not Kind.CHAR:  # where trailing blanks do not count
            for source in range(last):
                left, right = (_column(pattern, chosen, at, column) for at in (source, last))
                yield x.Compare(Condition.EQ, left, right, column.type)
    for conjunct in pattern.conjuncts:
        if conjunct.cls in (Class.CONSTANT, Class.PAIR) and set(conjunct.refs) <= set(chosen):
            yield from x.conjuncts(_over_sources(pattern, chosen, conjunct.expression))


def _of_type(pattern: ir.PatternQuery, element: int, source: int) -> x.Expression | None:
    types = pattern.elements[element].types
    if not types or pattern.type_column is None:
        return None
    column = pattern.stream.column(pattern.type_column)
    if column is None or column.type.kind is not Kind.VARCHAR:
        return None
    alias = pattern.elements[element].variable
    left = x.ColumnReference(source, column.name, column.type, column.nullable, alias)
    return x.disjunction(
        tuple(x.Compare(Condition.EQ, left, x.Literal(name, _TEXT), column.type) for name in types)
    )


_TEXT = Type(Kind.VARCHAR)


def _column(
    pattern: ir.PatternQuery, chosen: tuple[int, ...], source: int, column: Column
) -> x.ColumnReference:
    alias = pattern.elements[chosen[source]].variable
    return x.ColumnReference(source, column.name, column.type, column.nullable, alias)


def _over_sources(
    pattern: ir.PatternQuery, chosen: tuple[int, ...], e: x.Expression
) -> x.Expression:
    """Rewrites a condition on events as one on the sources of the join."""
    if isinstance(e, ir.Value):
        column = pattern.stream.column(e.attribute)
        assert column is not None
        return _column(pattern, chosen, chosen.index(e.element), column)
    return x.rebuild(e, lambda part: _over_sources(pattern, chosen, part))
