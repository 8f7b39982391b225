"""SELECT ... FROM MATCH_RECOGNIZE as a pattern query over rows.

before  `tree.Recognize`
after   `ir.Query` with `rows`: every variable an element of type ANY, strictly contiguous rows

A condition of DEFINE speaks of the row at hand: its own variable is the present member, an earlier
one its last row. `PREV(x.a)` is an attribute `prev.a` of the row itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from compiler.catalogue import TIMESTAMP_NAMES, Stream
from compiler.errors import Span, suggest
from compiler.language.types import Type
from compiler.pattern import ir, tree
from compiler.pattern.analyse import Context, check_quantifier, conditions, outputs
from compiler.pattern.bind import AGGREGATES, Scope
from compiler.pattern.ir import Mode, Skip, Strategy
from compiler.xsql.tree import Name

_SKIPS = {
    "past_last": Skip.PAST_LAST,
    "to_next": Skip.NEXT,
    "to_first": Skip.TO_FIRST,
    "to_last": Skip.TO_LAST,
}
PREVIOUS = "prev."


@dataclass
class _RowScope(Scope):
    """Attributes of the row before are attributes too; `previous` collects which are used."""

    previous: set[str] = field(default_factory=set)

    def attribute(self, name: str) -> tuple[str, Type] | None:
        found = super().attribute(name.removeprefix(PREVIOUS))
        if found is None or not name.startswith(PREVIOUS):
            return found
        self.previous.add(PREVIOUS + found[0])
        return PREVIOUS + found[0], found[1]


def recognize(statement: tree.Recognize, name: str, context: Context) -> ir.Query:
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
    scope = _RowScope(elements, aliases, {}, stream, context.parameters)
    where: tree.Expression | None = None
    for variable, condition in statement.definitions:
        own = aliases.get(variable.text.lower())
        if own is None:
            hint = suggest(variable.text, aliases, "variables")
            context.report("P006", f"there is no variable {variable.text}", variable.span, hint)
            continue
        rewritten = _Rewriter(scope, context, own).expression(condition)
        parts = (rewritten,) if where is None else (where, rewritten)
        where = parts[0] if len(parts) == 1 else tree.Connective("AND", parts, condition.span)
    conjuncts, empty = conditions(where, scope, context)
    partition = context.partition(statement.partition, stream)
    skip, skip_to = _skip(statement, aliases, context)
    return ir.Query(
        name,
        elements,
        conjuncts,
        context.window(statement.within, statement.span),
        Strategy.STRICT,
        Mode.SUBSETS,
        skip,
        partition,
        outputs(_items(statement, scope, context), scope, context),
        stream,
        None,
        context.text(statement.span),
        statement.span,
        rows=True,
        skip_to=skip_to,
        previous=tuple(sorted(scope.previous)),
        empty=empty,
    )


def _check_order(statement: tree.Recognize, stream: Stream, context: Context) -> None:
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


def _element(written: tree.Element, context: Context) -> ir.Element:
    assert written.alias is not None
    quantifier = written.quantifier
    if quantifier is None:
        return ir.Element(written.alias.text, None)
    check_quantifier(quantifier, context)
    if (quantifier.least, quantifier.most) == (1, 1):
        return ir.Element(written.alias.text, None)
    return ir.Element(written.alias.text, None, False, quantifier.least, quantifier.most)


def _aliases(elements: Sequence[tree.Element], context: Context) -> dict[str, int]:
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
    statement: tree.Recognize, aliases: dict[str, int], context: Context
) -> tuple[Skip, int | None]:
    kind, to = statement.skip
    if to is None:
        return _SKIPS[kind], None
    if to.text.lower() not in aliases:
        hint = suggest(to.text, aliases, "variables")
        context.report("P006", f"there is no variable {to.text}", to.span, hint)
    return _SKIPS[kind], aliases.get(to.text.lower())


def _items(statement: tree.Recognize, scope: _RowScope, context: Context) -> tuple[tree.Item, ...]:
    """The columns of a match: those of PARTITION BY, then the measures; of them, those selected."""
    last = len(scope.elements) - 1
    rewriter = _Rewriter(scope, context, None)
    found: list[tree.Item] = []
    for name in statement.partition:
        value = rewriter.of(last, name, name.span)
        found.append(tree.Item(value, name, name.span))
    for item in statement.measures:
        found.append(replace(item, expression=rewriter.expression(item.expression)))
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


class _Rewriter:
    """Puts an expression of SQL into the terms of PATTERN. `own` is the variable DEFINE is
    about, None in MEASURES, where all rows are known."""

    def __init__(self, scope: Scope, context: Context, own: int | None) -> None:
        self._scope = scope
        self._context = context
        self._own = own

    def _refuse(self, what: str, span: Span, hint: str | None = None) -> tree.Expression:
        self._context.report("P017", f"{what} is not supported", span, hint)
        return tree.Literal(None, span)

    def expression(self, e: tree.Expression) -> tree.Expression:
        match e:
            case tree.Reference():
                return self._reference(e)
            case tree.Call():
                return self._call(e)
            case tree.Arithmetic() | tree.Comparison():
                return replace(e, left=self.expression(e.left), right=self.expression(e.right))
            case tree.Signed() | tree.IsNull() | tree.Not():
                return replace(e, operand=self.expression(e.operand))
            case tree.InList():
                items = tuple(self.expression(item) for item in e.items)
                return replace(e, operand=self.expression(e.operand), items=items)
            case tree.Connective():
                operands = tuple(self.expression(operand) for operand in e.operands)
                return replace(e, operands=operands)
        return e

    def of(self, element: int, attribute: Name, span: Span) -> tree.Expression:
        """An attribute of a variable's row at hand: the present one, or its last."""
        of = self._scope.elements[element]
        name = Name(of.variable, span)
        if element == self._own or not of.kleene:
            return tree.Reference(name, None, attribute, span)
        group = tree.Reference(name, None, None, span)
        return tree.Call(Name("last", span), (group,), attribute, span)

    def _variable(self, e: tree.Reference) -> tuple[int, Name] | None:
        """The variable and attribute of `v.x`, or of a bare column."""
        if e.attribute is None:
            # A bare column: the row at hand, in MEASURES the last one.
            at = len(self._scope.elements) - 1 if self._own is None else self._own
            return at, e.name
        element = self._scope.aliases.get(e.name.text.lower())
        if element is None:
            hint = suggest(e.name.text, self._scope.aliases, "variables")
            text = f"there is no variable {e.name.text}"
            self._context.report("P006", text, e.name.span, hint)
            return None
        if self._own is not None and element > self._own:
            self._refuse(
                "a condition on a later variable", e.span, "put it into DEFINE of that one"
            )
            return None
        return element, e.attribute

    def _reference(self, e: tree.Reference) -> tree.Expression:
        if e.index is not None:
            return self._refuse("an index", e.span, "LAST(x.a, 1) is the row before")
        found = self._variable(e)
        return tree.Literal(None, e.span) if found is None else self.of(*found, e.span)

    def _call(self, e: tree.Call) -> tree.Expression:
        name = e.function.text.lower()
        if name == "classifier":
            return self._classifier(e)
        if name in ("match_number", "next"):
            return self._refuse(e.function.text.upper(), e.span)
        if name in ("prev", "first", "last") or name in AGGREGATES:
            of = e.arguments[0] if e.arguments else None
            if not isinstance(of, tree.Reference) or of.index is not None:
                return self._refuse(f"{name.upper()} of an expression", e.span)
            found = self._variable(of)
            if found is None:
                return tree.Literal(None, e.span)
            return self._navigation(e, name, *found)
        arguments = tuple(self.expression(argument) for argument in e.arguments)
        return replace(e, arguments=arguments)

    def _classifier(self, e: tree.Call) -> tree.Expression:
        if self._own is not None:
            return self._refuse("CLASSIFIER in DEFINE", e.span)
        return tree.Literal(self._scope.elements[-1].variable.upper(), e.span)

    def _navigation(
        self, e: tree.Call, name: str, element: int, attribute: Name
    ) -> tree.Expression:
        of = self._scope.elements[element]
        offset = self._offset(e)
        variable = Name(of.variable, e.span)
        if offset is None:
            return self._refuse("this offset", e.span, "PREV(x.a) and LAST(x.a, 1) go back one row")
        if name == "prev":
            if element != self._own or offset != 1:
                hint = "PREV(x.a) in DEFINE of x"
                return self._refuse("PREV of another row", e.span, hint)
            before = Name(PREVIOUS + attribute.text, attribute.span)
            return tree.Reference(variable, None, before, e.span)
        if name in ("first", "last"):
            if offset and not (name == "last" and element == self._own and of.kleene):
                return self._refuse(f"{name.upper()} with an offset", e.span)
            if not of.kleene:
                return tree.Reference(variable, None, attribute, e.span)
            if element == self._own:
                index = "1" if name == "first" else "i-1" if offset else None
                return tree.Reference(variable, index, attribute, e.span)
            group = tree.Reference(variable, None, None, e.span)
            return tree.Call(e.function, (group,), attribute, e.span)
        if element == self._own:
            return self._refuse("a running aggregate", e.span, "aggregate an earlier variable")
        if not of.kleene:
            return tree.Reference(variable, None, attribute, e.span)
        return replace(e, arguments=(tree.Reference(variable, None, attribute, e.span),))

    def _offset(self, e: tree.Call) -> int | None:
        """The second argument of PREV or LAST."""
        name = e.function.text.lower()
        if len(e.arguments) == 1:
            return 1 if name == "prev" else 0
        if name in AGGREGATES or len(e.arguments) != 2:
            return None
        offset = e.arguments[1]
        if isinstance(offset, tree.Literal) and offset.value in (0, 1):
            return int(offset.value)
        return None
