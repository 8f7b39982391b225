"""SELECT ... FROM MATCH_RECOGNIZE as a pattern query over rows.

before  `tree.Recognize`
after   `ir.PatternQuery` with `rows`: every variable an element of type ANY, strictly contiguous rows

A condition of DEFINE speaks of the row at hand: its own variable is the present member, an earlier
one its last row. `PREV(x.a)` is an attribute `prev.a` of the row itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from seustream.compiler.catalogue import TIMESTAMP_NAMES, Stream
from seustream.compiler.errors import Span, suggest
from seustream.compiler.language import expressions as x
from seustream.compiler.language import syntax as s
from seustream.compiler.language.bind import FAILED, Binder, is_strict
from seustream.compiler.language.syntax import Name
from seustream.compiler.language.types import VARCHAR, Type
from seustream.compiler.pattern import ir, tree
from seustream.compiler.pattern.analyse import PatternContext, check_quantifier, conditions, outputs
from seustream.compiler.pattern.ir import Mode, Pick, Skip, Strategy
from seustream.compiler.pattern.scope import BY_NAME, ElementScope, fail

_SKIPS = {
    "past_last": Skip.PAST_LAST,
    "to_next": Skip.NEXT,
    "to_first": Skip.TO_FIRST,
    "to_last": Skip.TO_LAST,
}
PREVIOUS = "prev."


def recognize(statement: tree.Recognize, name: str, context: PatternContext) -> ir.PatternQuery:
    """The query; with a problem reported, something near it that must not be run."""
    stream = context.stream(statement.stream)
    for part in statement.unsupported:
        hint = "quantifiers are +, {n}, {n,} and {n,m}; ONE ROW PER MATCH"
        context.report("P017", f"{part.what} is not supported", part.span, hint)
    _check_order(statement, stream, context)
    elements = tuple(_element(written, context) for written in statement.elements)
    if not elements and not statement.unsupported:
        context.report("P007", "the pattern is empty", statement.span)
        elements = (ir.Element("?", None),)
    aliases = _aliases(statement.elements, context)
    scope = RowScope(elements, aliases, {}, stream, context.parameters, within="MEASURES")
    conjuncts: list[ir.Conjunct] = []
    never: list[str] = []
    for variable, condition in statement.definitions:
        own = aliases.get(variable.text.lower())
        if own is None:
            hint = suggest(variable.text, aliases, "variables")
            context.report("P006", f"there is no variable {variable.text}", variable.span, hint)
            continue
        found, empty = conditions(condition, replace(scope, own=own, within="DEFINE"), context)
        conjuncts += found
        never += [empty] if empty else []
    partition = context.partition(statement.partition, stream)
    skip, skip_to = _skip(statement, aliases, context)
    return ir.PatternQuery(
        name,
        elements,
        tuple(conjuncts),
        context.window(statement.within, statement.span),
        Strategy.STRICT,
        Mode.SUBSETS,
        skip,
        partition,
        outputs(_items(statement, context), scope, context),
        stream,
        None,
        context.text(statement.span),
        statement.span,
        rows=True,
        skip_to=skip_to,
        previous=tuple(sorted(scope.previous)),
        empty=next(iter(never), ""),
        strict=is_strict(statement.options, context.problems),
    )


def _check_order(statement: tree.Recognize, stream: Stream, context: PatternContext) -> None:
    hint = "ORDER BY ts: rows come in the order of their time"
    if not statement.order:
        context.report("P017", "ORDER BY is missing", statement.span, hint)
        return
    (first, direction), *others = statement.order
    own = any(c.name.lower() == first.text.lower() for c in stream.columns)
    if own or first.text.lower() not in TIMESTAMP_NAMES or direction != "asc":
        context.report("P017", "rows are ordered by their time, ascending", first.span, hint)
    for name, _ in others:
        context.report("P017", "a second column of ORDER BY", name.span, hint)


def _element(written: tree.ElementClause, context: PatternContext) -> ir.Element:
    assert written.alias is not None
    quantifier = written.quantifier
    if quantifier is None:
        return ir.Element(written.alias.text, None)
    check_quantifier(quantifier, context)
    if (quantifier.least, quantifier.most) == (1, 1):
        return ir.Element(written.alias.text, None)
    return ir.Element(written.alias.text, None, False, quantifier.least, quantifier.most)


def _aliases(elements: Sequence[tree.ElementClause], context: PatternContext) -> dict[str, int]:
    found: dict[str, int] = {}
    for index, element in enumerate(elements):
        assert element.alias is not None
        folded = element.alias.text.lower()
        if folded in found:
            text = f"there is already a variable {element.alias.text}"
            context.report("P004", text, element.alias.span, "give it another name")
        found.setdefault(folded, index)
    return found


def _skip(
    statement: tree.Recognize, aliases: dict[str, int], context: PatternContext
) -> tuple[Skip, int | None]:
    kind, to = statement.skip
    if to is None:
        return _SKIPS[kind], None
    if to.text.lower() not in aliases:
        hint = suggest(to.text, aliases, "variables")
        context.report("P006", f"there is no variable {to.text}", to.span, hint)
    return _SKIPS[kind], aliases.get(to.text.lower())


def _items(statement: tree.Recognize, context: PatternContext) -> tuple[tree.ReturnItem, ...]:
    """The columns of a match: those of PARTITION BY, then the measures; of them, those selected."""
    found = [
        tree.ReturnItem(s.Reference((name,), name.span), name, name.span)
        for name in statement.partition
    ]
    found += statement.measures
    if statement.columns is None:
        return tuple(found)
    by_name = {item.alias.text.lower(): item for item in found if item.alias is not None}
    selected = []
    for column in statement.columns:
        if column.text.lower() in by_name:
            selected.append(replace(by_name[column.text.lower()], alias=column))
        else:
            hint = suggest(column.text, by_name, "columns")
            context.report("P003", f"a match has no column {column.text}", column.span, hint)
    return tuple(selected)


@dataclass
class RowScope(ElementScope):
    """The names of MATCH_RECOGNIZE. `own` is the variable DEFINE is about, None in MEASURES, where
    all rows are known. Attributes of the row before are attributes too; `previous` collects which
    are used."""

    own: int | None = None
    previous: set[str] = field(default_factory=set)
    functions: Iterable[str] = ("prev", "classifier")

    def reference(self, e: s.Reference, binder: Binder) -> x.Expression:
        """A column, of a variable or of the row at hand."""
        if e.index is not None:
            return _refuse(binder, "an index", e.span, "LAST(x.a, 1) is the row before")
        found = self._variable(e, binder)
        if found is None:
            return FAILED
        element, name = found
        if binder.aggregating is None:
            return self.value(element, self._at_hand(element), name, binder)
        self._groups.append((element, False))
        pick = Pick.EACH if self.elements[element].kleene else Pick.ONE
        return self.value(element, pick, name, binder)

    def output(self, e: s.Expression, binder: Binder) -> x.Expression | ir.Whole:
        """A measure."""
        return binder.value(e)

    def attribute(self, name: str) -> tuple[str, Type] | None:
        """Also of the row before, as `prev.NAME`."""
        found = super().attribute(name.removeprefix(PREVIOUS))
        if found is None or not name.startswith(PREVIOUS):
            return found
        self.previous.add(PREVIOUS + found[0])
        return PREVIOUS + found[0], found[1]

    def call(self, e: s.FunctionCall, binder: Binder) -> x.Expression | None:
        """Navigation between rows, and aggregates."""
        name = e.name.lower()
        if name == "classifier":
            if self.own is not None:
                return _refuse(binder, "CLASSIFIER in DEFINE", e.span)
            return x.Literal(self.elements[-1].variable.upper(), VARCHAR)
        if name in ("match_number", "next"):
            return _refuse(binder, e.name.upper(), e.span)
        if name in ("prev", "first", "last"):
            return self._navigation(e, name, binder)
        return self.aggregate(e, binder) if name in BY_NAME else None

    def over(self, found: x.AggregateCall, e: s.FunctionCall, binder: Binder) -> x.Expression:
        """An aggregate over the rows of one variable, which is complete."""
        if any(element == self.own for element, _ in self._groups):
            hint = "aggregate an earlier variable"
            return _refuse(binder, "a running aggregate", e.span, hint)
        return super().over(found, e, binder)

    def _counts(self, written: s.Reference) -> bool:
        """A bare name is a column first."""
        name = written.parts[0].text
        return super()._counts(written) and self.attribute(name) is None

    def _at_hand(self, element: int) -> Pick:
        """The present row of the variable DEFINE is about, the last one of any other."""
        if not self.elements[element].kleene:
            return Pick.ONE
        return Pick.EACH if element == self.own else Pick.LAST

    def _variable(self, e: s.Reference, binder: Binder) -> tuple[int, Name] | None:
        """The variable and attribute of `v.x`, or of a bare column."""
        if len(e.parts) == 1:
            # A bare column: the row at hand, in MEASURES the last one.
            at = len(self.elements) - 1 if self.own is None else self.own
            return at, e.parts[0]
        variable, attribute = e.parts
        element = self.aliases.get(variable.text.lower())
        if element is None:
            hint = suggest(variable.text, self.aliases, "variables")
            fail(binder, "P006", f"there is no variable {variable.text}", variable.span, hint)
            return None
        if self.own is not None and element > self.own:
            hint = "put it into DEFINE of that one"
            _refuse(binder, "a condition on a later variable", e.span, hint)
            return None
        return element, attribute

    def _navigation(self, e: s.FunctionCall, name: str, binder: Binder) -> x.Expression:
        """PREV, FIRST and LAST."""
        of = e.arguments[0] if e.arguments else None
        if not isinstance(of, s.Reference) or of.index is not None:
            return _refuse(binder, f"{name.upper()} of an expression", e.span)
        if binder.aggregating is not None:
            text = f"{e.name} within {binder.aggregating}"
            return fail(binder, "P020", text, e.at, "an aggregate takes v.attribute")
        found = self._variable(of, binder)
        if found is None:
            return FAILED
        element, attribute = found
        offset = _offset(e, name)
        if offset is None:
            hint = "PREV(x.a) and LAST(x.a, 1) go back one row"
            return _refuse(binder, "this offset", e.span, hint)
        kleene, own = self.elements[element].kleene, element == self.own
        if name == "prev":
            if not own or offset != 1:
                return _refuse(binder, "PREV of another row", e.span, "PREV(x.a) in DEFINE of x")
            before = Name(PREVIOUS + attribute.text, attribute.span)
            return self.value(element, self._at_hand(element), before, binder)
        if offset and not (name == "last" and own and kleene):
            return _refuse(binder, f"{name.upper()} with an offset", e.span)
        pick = Pick.FIRST if name == "first" and kleene else self._at_hand(element)
        return self.value(element, Pick.PREVIOUS if offset else pick, attribute, binder)


def _refuse(binder: Binder, what: str, span: Span, hint: str | None = None) -> x.Expression:
    return fail(binder, "P017", f"{what} is not supported", span, hint)


def _offset(e: s.FunctionCall, name: str) -> int | None:
    """The second argument of PREV or LAST, 0 or 1."""
    if len(e.arguments) == 1:
        return 1 if name == "prev" else 0
    offset = e.arguments[1]
    if len(e.arguments) == 2 and isinstance(offset, s.Constant) and offset.value in (0, 1):
        return int(offset.value)
    return None
