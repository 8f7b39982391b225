"""Analyses a PATTERN statement against the catalogue, and reports everything that is wrong with it.

before  `tree.Pattern`
after   `ir.PatternQuery`
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from seustream.compiler.catalogue import NO_STREAM, STREAM_OF_TABLE, TIME_COLUMN, Stream
from seustream.compiler.errors import Problems, SourceText, Span, suggest
from seustream.compiler.language import expressions as x
from seustream.compiler.language import syntax as s
from seustream.compiler.language.bind import Binder, ParameterValue
from seustream.compiler.language.indexable import indexable
from seustream.compiler.language.options import query_options
from seustream.compiler.language.overloads import LISTS
from seustream.compiler.language.syntax import Name
from seustream.compiler.language.types import MILLISECONDS, Kind
from seustream.compiler.pattern import ir, tree
from seustream.compiler.pattern.classify import classify
from seustream.compiler.pattern.ir import Class, Mode, Skip, Strategy
from seustream.compiler.pattern.scope import ElementScope
from seustream.compiler.pattern.variants import (
    MOST_WAYS,
    Bound,
    Variant,
    clauses_of,
    constant,
    has_choice,
    ways,
)

DEFAULT_TYPE_COLUMN = "type"
_SKIPS = {"no_skip": Skip.NONE, "skip_to_next": Skip.NEXT, "skip_past_last": Skip.PAST_LAST}
_LARGEST = (1 << 63) - 1


@dataclass
class PatternContext:
    """The context in which a pattern is analysed. `bounded` input ends, so WITHIN may be missing."""

    source: SourceText
    problems: Problems
    streams: Mapping[str, Stream]
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)
    bounded: bool = False

    def report(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        self.problems.add(code, f"{code} {message}", span, hint)

    def text(self, span: Span) -> str:
        return " ".join(self.source.text[span.start : span.end].split())

    def stream(self, name: Name) -> Stream:
        """Returns the stream of this name; an unknown one has every column."""
        found = self.streams.get(name.text.lower())
        if found is not None and not found.table:
            return found
        if found is not None:
            self.report("P002", f"{found.name} {NO_STREAM}", name.span, STREAM_OF_TABLE)
        else:
            hint = suggest(name.text, [stream.name for stream in self.timed], "streams")
            self.report("P002", f"there is no stream {name.text}", name.span, hint)
        return Stream(name.text, (), unknown=True)

    @property
    def timed(self) -> list[Stream]:
        """Returns the streams except tables."""
        return [stream for stream in self.streams.values() if not stream.table]

    def partition(self, names: Sequence[Name], stream: Stream) -> tuple[str, ...]:
        found = []
        for name in names:
            column = stream.column(name.text)
            if column is None:
                hint = suggest(name.text, [c.name for c in stream.columns], "attributes")
                text = f"stream {stream.name} has no attribute {name.text}"
                self.report("P003", text, name.span, hint)
            elif column.type.kind is Kind.LIST:
                self.report("P015", "a list is no key of PARTITION BY", name.span, LISTS)
            else:
                found.append(ir.TIME if column is TIME_COLUMN else column.name.lower())
        return tuple(found)

    def window(self, within: tree.Within | None, span: Span) -> int | None:
        """Returns WITHIN in milliseconds."""
        if within is None:
            if not self.bounded:
                hint = "add WITHIN 10 min: on an endless stream a match may wait for ever"
                self.report("P010", "WITHIN is missing", Span(span.end - 1, span.end), hint)
            return None
        factor = MILLISECONDS.get(within.unit.text.lower())
        if factor is None:
            hint = suggest(within.unit.text, MILLISECONDS, "units")
            self.report("P011", f"{within.unit.text} is no unit of time", within.unit.span, hint)
            return 1
        size = within.size * factor
        if size <= 0:
            hint = "elements follow each other strictly, so that nothing fits into no time"
            self.report("P010", "a window of no time", within.span, hint)
        elif size.denominator > 1:
            text = f"{float(size):g} ms is no whole number of milliseconds"
            self.report("P011", text, within.span, "use a smaller unit")
        elif size > _LARGEST >> 2:
            self.report("P011", "a window of more than 2^61 milliseconds", within.span)
        return max(int(size), 1)


def analyse(statement: tree.Pattern, name: str, context: PatternContext) -> ir.PatternQuery:
    """Returns the query. If a problem was reported, the result approximates it and must not be run."""
    stream, type_column = _stream(statement, context)
    clauses = tuple(clauses_of(statement.sequence))
    elements = tuple(_element(written, context) for written in clauses)
    if all(element.negated for element in elements):
        hint = "an absence needs a neighbour: PATTERN A; !B; C"
        context.report("P007", "no element of the sequence has events", statement.span, hint)
    scope = ElementScope(
        elements, _aliases(clauses, context), _types(clauses), stream, context.parameters
    )
    strategy, mode = _strategy(statement)
    query = ir.PatternQuery(
        name=name,
        elements=elements,
        conjuncts=(),
        window=context.window(statement.within, statement.span),
        strategy=strategy,
        mode=mode,
        skip=_SKIPS[statement.skip],
        partition=context.partition(statement.partition, stream),
        outputs=outputs(statement.items, scope, context),
        stream=stream,
        type_column=type_column,
        text=context.text(statement.span),
        span=statement.span,
        written=context.source.text[statement.body.start : statement.body.end].strip(),
        strict=query_options(statement.options, context.problems).strict,
    )
    bound = conditions(statement.where, scope, context)
    if not has_choice(statement.sequence):
        return _decided(query, bound, statement, context)
    return _varied(query, bound, statement, context)


def _decided(
    query: ir.PatternQuery, bound: Bound, statement: tree.Pattern, context: PatternContext
) -> ir.PatternQuery:
    """Adds the conditions to the query."""
    if query.strategy is Strategy.ANY and query.mode is Mode.GROUP:
        positive = [element for element in query.elements if not element.negated]
        if any(element.kleene for element in positive) and (reason := _no_maximum(positive)):
            span = statement.strategy[1] if statement.strategy else statement.span
            hint = "USING ANY SUBSETS counts every choice of members, USING NEXT takes the next"
            context.report("P016", f"no group is the largest: {reason}", span, hint)
    conjuncts, empty = classified(bound, query.elements, context, query.strategy)
    return replace(query, conjuncts=conjuncts, empty=empty)


def _varied(
    query: ir.PatternQuery, bound: Bound, statement: tree.Pattern, context: PatternContext
) -> ir.PatternQuery:
    """Adds the variants to the query: each way through its sequence is a pattern."""
    grouped = query.strategy is Strategy.ANY and query.mode is Mode.GROUP
    found = ways(statement.sequence, grouped)
    events = {
        frozenset(i for i, there in way if there and not query.elements[i].negated) for way in found
    }
    if len(events) < len(found):
        hint = "write + for *, and let a choice have none at all: (A+ a | B+ b)?"
        text = "ways that differ in absences alone"
        context.report("P016", text, statement.span, hint)
    if len(found) > MOST_WAYS:
        text = f"there are {len(found):,} ways through the sequence, at most {MOST_WAYS}"
        context.report("P016", text, statement.span, "make fewer elements optional")
        return query
    variants = []
    for number, way in enumerate(found, 1):
        variant = Variant(query.elements, way, grouped)
        if all(element.negated for element in variant.elements):
            continue
        own = replace(
            query,
            name=f"{query.name}#{number}",
            elements=variant.elements,
            outputs=variant.outputs(query),
            places=tuple(number for number, _ in way),
        )
        decided = _decided(own, variant.conditions(bound), statement, context)
        if not decided.empty:
            variants.append(decided)
    if not variants:
        every = classified(bound, query.elements, context, query.strategy)[1]
        return replace(query, empty=every or "every way through the sequence")
    return replace(query, variants=tuple(variants))


def _stream(statement: tree.Pattern, context: PatternContext) -> tuple[Stream, str | None]:
    if statement.source is not None:
        stream = context.stream(statement.source.stream)
        type_by = statement.source.type_by
        at = type_by.span if type_by is not None else statement.source.stream.span
    else:
        type_by, at = None, statement.span
        if len(context.timed) != 1:
            known = ", ".join(s.name for s in context.timed)
            hint = f"say FROM one of {known}" if known else "CREATE STREAM name (type text, ...)"
            context.report("P002", "FROM is missing", statement.span, hint)
            return Stream("?", (), unknown=True), None
        (stream,) = context.timed
    name = type_by.text if type_by is not None else DEFAULT_TYPE_COLUMN
    column = next((c for c in stream.columns if c.name.lower() == name.lower()), None)
    if column is not None and column.type.is_text:
        return stream, column.name.lower()
    typed = any(element.types for element in clauses_of(statement.sequence))
    if not stream.unknown and (typed or type_by is not None):
        what = "no column" if column is None else f"no text, but {column.type}, in column"
        texts = [c.name for c in stream.columns if c.type.is_text]
        hint = f"say which column is the type: TYPE BY {texts[0] if texts else 'column'}"
        context.report("P002", f"stream {stream.name} has {what} {name}", at, hint)
    return stream, None


def _element(written: tree.ElementClause, context: PatternContext) -> ir.Element:
    variable = (
        written.alias.text if written.alias else "_or_".join(written.types or ("any",)).lower()
    )
    quantifier = written.quantifier
    if quantifier is None and written.negated and written.optional:
        hint = "leave it out: an absence forbids events, and needs none"
        context.report("P008", "an absence that may be missing", written.span, hint)
    if quantifier is None:
        return ir.Element(variable, written.types, written.negated)
    if written.negated:
        hint = "an absence is one element: no such event at all"
        context.report("P008", "a quantifier on an absence", quantifier.span, hint)
        return ir.Element(variable, written.types, True)
    check_quantifier(quantifier, context)
    return ir.Element(variable, written.types, False, quantifier.least, quantifier.most)


def check_quantifier(quantifier: tree.Quantifier, context: PatternContext) -> None:
    written = context.text(quantifier.span)
    if quantifier.most == 0 or (quantifier.least < 1 and written[0] in "{^" and "," not in written):
        hint = "at least 1; any number, or none, is written *"
        context.report("P009", "a group of no events", quantifier.span, hint)
    elif quantifier.most is not None and quantifier.most < quantifier.least:
        text = f"at least {quantifier.least}, and at most {quantifier.most}"
        context.report("P009", text, quantifier.span, "the smaller number comes first")


def _aliases(elements: Sequence[tree.ElementClause], context: PatternContext) -> dict[str, int]:
    found: dict[str, int] = {}
    for index, element in enumerate(elements):
        if element.alias is None:
            continue
        folded = element.alias.text.lower()
        if folded in found:
            text = f"there is already a variable {element.alias.text}"
            context.report("P004", text, element.alias.span, "give it another name")
        else:
            found[folded] = index
    return found


def _called(element: tree.ElementClause) -> str:
    """Returns a name for an element without one of its own."""
    return "_or_".join(element.types or ("any",)).lower()


def _types(elements: Sequence[tree.ElementClause]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for index, element in enumerate(elements):
        found.setdefault(_called(element), []).append(index)
    return found


def conditions(
    where: s.Expression | None, scope: ElementScope, context: PatternContext
) -> list[tuple[x.Expression, Span]]:
    """Binds WHERE, split at its ANDs."""
    found = []
    binder = Binder(scope, context.problems, bars=True)
    for part in _split(where):
        before = len(context.problems.found)
        expression = binder.condition(part)
        if len(context.problems.found) == before:
            found.append((expression, part.span))
    return found


def classified(
    bound: Bound, elements: Sequence[ir.Element], context: PatternContext, strategy: Strategy
) -> tuple[tuple[ir.Conjunct, ...], str]:
    """Classifies conditions; also returns one without variables that makes the result empty."""
    found: list[ir.Conjunct] = []
    empty = ""
    for expression, span in bound:
        refs = ir.references(expression)
        if not refs:
            if constant(expression) is not True:
                empty = empty or context.text(span)
            continue
        cls = classify(expression, elements, span, context.problems)
        if cls is None:
            continue
        form = indexable(expression)
        forms = (x.conjuncts(form), (form,), (expression,))
        # A part about other events would forbid, filter or take other ones than the whole; but of matches
        # alone it is a condition like the whole.
        of_matches = cls is Class.PAIR and strategy is Strategy.ANY
        for parts in forms:
            classes = [classify(part, elements, span, context.problems) for part in parts]
            means = [(of, ir.references(part)) for of, part in zip(classes, parts, strict=True)]
            if of_matches or all(one == (cls, refs) for one in means):
                break
        for part, (of, refers) in zip(parts, means, strict=True):
            assert of is not None
            text = context.text(span) if parts == (expression,) else x.show(part)
            found.append(ir.Conjunct(of, refers, part, text, span))
    return tuple(found), empty


def _split(e: s.Expression | None) -> list[s.Expression]:
    if e is None:
        return []
    if isinstance(e, s.Connective) and e.operator == "AND":
        return [part for operand in e.operands for part in _split(operand)]
    return [e]


def _strategy(statement: tree.Pattern) -> tuple[Strategy, Mode]:
    written = statement.strategy[0] if statement.strategy else "any"
    if written == "next":
        return Strategy.NEXT, Mode.SUBSETS
    if written == "strict":
        return Strategy.STRICT, Mode.SUBSETS
    return Strategy.ANY, Mode.SUBSETS if written == "any_subsets" else Mode.GROUP


def _no_maximum(positive: Sequence[ir.Element]) -> str | None:
    if not any(element.single for element in positive):
        return "there is no single element beside it"
    if any(a.kleene and b.kleene for a, b in itertools.pairwise(positive)):
        return "two groups stand beside each other"
    if positive[0].kleene and positive[-1].kleene:
        return "there is one at each end"
    return None


def outputs(
    items: Sequence[tree.ReturnItem] | None, scope: ElementScope, context: PatternContext
) -> tuple[ir.OutputColumn, ...]:
    """Returns the columns of RETURN; `*` is every positive element."""
    found: list[tuple[str, x.Expression | ir.Whole, Span]] = []
    if items is None:
        for index, element in enumerate(scope.elements):
            if not element.negated:
                pick = ir.Pick.EACH if element.kleene else ir.Pick.ONE
                found.append((element.variable, ir.Whole(index, pick), Span(0, 0)))
    scope = replace(scope, returns=True, within="RETURN")
    binder = Binder(scope, context.problems, bars=True)
    for number, item in enumerate(items or (), start=1):
        expression = scope.output(item.expression, binder)
        if item.alias is not None:
            name = item.alias.text
        elif isinstance(expression, ir.Whole):
            name = scope.elements[expression.element].variable
        elif isinstance(expression, ir.Value):
            name = _attribute_name(item.expression, scope, expression)
        else:
            name = f"c{number}"
        found.append((name, expression, item.span))
    return tuple(
        ir.OutputColumn(name, expression, _each(expression, scope, span, context))
        for name, (_, expression, span) in zip(
            _distinct([n for n, _, _ in found]), found, strict=True
        )
    )


def _attribute_name(written: s.Expression, scope: ElementScope, value: ir.Value) -> str:
    """Returns an attribute's name in the stream's spelling, or the time's as written."""
    column = scope.stream.column(value.attribute)
    if value.attribute != ir.TIME and column is not None:
        return column.name
    if isinstance(written, s.FunctionCall) and written.attribute is not None:
        return written.attribute.text
    return written.parts[-1].text if isinstance(written, s.Reference) else value.attribute


def _each(
    e: x.Expression | ir.Whole, scope: ElementScope, span: Span, context: PatternContext
) -> int | None:
    """Returns the group whose members a column lists."""
    if isinstance(e, ir.Whole):
        return e.element if e.pick is ir.Pick.EACH else None
    groups = {
        part.element
        for part in ir.parts(e)
        if isinstance(part, ir.Value) and part.pick is ir.Pick.EACH
    }
    if len(groups) > 1:
        names = " and ".join(scope.elements[i].variable for i in sorted(groups))
        hint = "first(v), last(v) and aggregates are single values"
        context.report("P015", f"a list over {names} at once", span, hint)
    return min(groups, default=None)


def _distinct(names: Sequence[str]) -> list[str]:
    """Returns the names, with repeated ones numbered from 2."""
    given: set[str] = set()
    found = []
    for name in names:
        distinct, number = name, 1
        while distinct.lower() in given:
            number += 1
            distinct = f"{name}_{number}"
        given.add(distinct.lower())
        found.append(distinct)
    return found
