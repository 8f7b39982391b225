"""A PATTERN statement against the catalogue: what it says, or everything that is wrong with it.

before  `tree.Pattern`
after   `ir.PatternQuery`
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from seustream.compiler.catalogue import Stream
from seustream.compiler.errors import Problems, SourceText, Span, suggest
from seustream.compiler.language import expressions as x
from seustream.compiler.language import syntax as s
from seustream.compiler.language.bind import Binder, ParameterValue, is_strict
from seustream.compiler.language.evaluate import compile_row
from seustream.compiler.language.syntax import Name
from seustream.compiler.language.types import MILLISECONDS
from seustream.compiler.pattern import ir, tree
from seustream.compiler.pattern.classify import classify
from seustream.compiler.pattern.ir import Mode, Skip, Strategy
from seustream.compiler.pattern.scope import ElementScope

DEFAULT_TYPE_COLUMN = "type"
_SKIPS = {"no_skip": Skip.NONE, "skip_to_next": Skip.NEXT, "skip_past_last": Skip.PAST_LAST}
_LARGEST = (1 << 63) - 1


@dataclass
class PatternContext:
    """The surroundings a pattern is read against. `bounded` input ends, so that WITHIN may be missing."""

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
        """The stream of this name; of an unknown one every column is there."""
        found = self.streams.get(name.text.lower())
        if found is not None:
            return found
        known = [stream.name for stream in self.streams.values()]
        hint = suggest(name.text, known, "streams")
        self.report("P002", f"there is no stream {name.text}", name.span, hint)
        return Stream(name.text, (), unknown=True)

    def partition(self, names: Sequence[Name], stream: Stream) -> tuple[str, ...]:
        found = []
        for name in names:
            column = stream.column(name.text)
            if column is None:
                hint = suggest(name.text, [c.name for c in stream.columns], "attributes")
                text = f"stream {stream.name} has no attribute {name.text}"
                self.report("P003", text, name.span, hint)
            else:
                found.append(column.name.lower())
        return tuple(found)

    def window(self, within: tree.Within | None, span: Span) -> int | None:
        """WITHIN in milliseconds."""
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
    """The query; with a problem reported, something near it that must not be run."""
    stream, type_column = _stream(statement, context)
    elements = tuple(_element(written, context) for written in statement.elements)
    if all(element.negated for element in elements):
        hint = "an absence needs a neighbour: PATTERN A; !B; C"
        context.report("P007", "no element of the sequence has events", statement.span, hint)
    scope = ElementScope(
        elements,
        _aliases(statement.elements, context),
        _types(statement.elements),
        stream,
        context.parameters,
    )
    conjuncts, empty = conditions(statement.where, scope, context)
    strategy, mode = _strategy(statement, elements, context)
    return ir.PatternQuery(
        name=name,
        elements=elements,
        conjuncts=conjuncts,
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
        empty=empty,
        strict=is_strict(statement.options, context.problems),
    )


def _stream(statement: tree.Pattern, context: PatternContext) -> tuple[Stream, str | None]:
    if statement.source is not None:
        stream = context.stream(statement.source.stream)
        type_by = statement.source.type_by
        at = type_by.span if type_by is not None else statement.source.stream.span
    else:
        type_by, at = None, statement.span
        if len(context.streams) != 1:
            known = ", ".join(s.name for s in context.streams.values())
            hint = f"say FROM one of {known}" if known else "CREATE STREAM name (type text, ...)"
            context.report("P002", "FROM is missing", statement.span, hint)
            return Stream("?", (), unknown=True), None
        (stream,) = context.streams.values()
    name = type_by.text if type_by is not None else DEFAULT_TYPE_COLUMN
    column = next((c for c in stream.columns if c.name.lower() == name.lower()), None)
    if column is not None and column.type.is_text:
        return stream, column.name.lower()
    typed = any(element.types for element in statement.elements)
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
    if quantifier is None:
        return ir.Element(variable, written.types, written.negated)
    if written.negated:
        hint = "an absence is one element: no such event at all"
        context.report("P008", "a quantifier on an absence", quantifier.span, hint)
        return ir.Element(variable, written.types, True)
    check_quantifier(quantifier, context)
    return ir.Element(variable, written.types, False, quantifier.least, quantifier.most)


def check_quantifier(quantifier: tree.Quantifier, context: PatternContext) -> None:
    if quantifier.least < 1:
        context.report("P009", "a group of no events", quantifier.span, "at least 1")
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
    """The name of an element without one of its own."""
    return "_or_".join(element.types or ("any",)).lower()


def _types(elements: Sequence[tree.ElementClause]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for index, element in enumerate(elements):
        found.setdefault(_called(element), []).append(index)
    return found


def conditions(
    where: s.Expression | None, scope: ElementScope, context: PatternContext
) -> tuple[tuple[ir.Conjunct, ...], str]:
    """WHERE split at its ANDs; and a condition without variables that makes the result empty."""
    found: list[ir.Conjunct] = []
    empty = ""
    binder = Binder(scope, context.problems, bars=True)
    for part in _split(where):
        before = len(context.problems.found)
        expression = binder.condition(part)
        if len(context.problems.found) > before:
            continue
        refs = ir.references(expression)
        if not refs:
            if not _holds(expression):
                empty = empty or context.text(part.span)
            continue
        cls = classify(expression, scope.elements, part.span, context.problems)
        if cls is not None:
            text = context.text(part.span)
            found.append(ir.Conjunct(cls, refs, expression, text, part.span))
    return tuple(found), empty


def _holds(e: x.Expression) -> bool:
    """Returns whether a condition without variables is TRUE."""

    def leaf(e: x.Leaf) -> Callable[[None], x.Value]:
        raise AssertionError(e)

    return compile_row(e, leaf)(None) is True


def _split(e: s.Expression | None) -> list[s.Expression]:
    if e is None:
        return []
    if isinstance(e, s.Connective) and e.operator == "AND":
        return [part for operand in e.operands for part in _split(operand)]
    return [e]


def _strategy(
    statement: tree.Pattern, elements: Sequence[ir.Element], context: PatternContext
) -> tuple[Strategy, Mode]:
    written, span = statement.strategy or ("any", statement.span)
    if written == "next":
        return Strategy.NEXT, Mode.SUBSETS
    if written == "strict":
        return Strategy.STRICT, Mode.SUBSETS
    if written == "any_subsets":
        return Strategy.ANY, Mode.SUBSETS
    positive = [element for element in elements if not element.negated]
    if any(element.kleene for element in positive):
        reason = _no_maximum(positive)
        if reason is not None:
            hint = "USING ANY SUBSETS counts every choice of members, USING NEXT takes the next"
            context.report("P016", f"no group is the largest: {reason}", span, hint)
    return Strategy.ANY, Mode.GROUP


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
    """The columns of RETURN; `*` is every positive element."""
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
    """As the stream spells it; the time as it was written."""
    column = scope.stream.column(value.attribute)
    if value.attribute != ir.TIME and column is not None:
        return column.name
    if isinstance(written, s.FunctionCall) and written.attribute is not None:
        return written.attribute.text
    return written.parts[-1].text if isinstance(written, s.Reference) else value.attribute


def _each(
    e: x.Expression | ir.Whole, scope: ElementScope, span: Span, context: PatternContext
) -> int | None:
    """The group whose members a column lists."""
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
    """The names, a repeated one numbered from 2."""
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
