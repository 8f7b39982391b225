"""Resolves names in a pattern: elements of the match so far, their events and their attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from seustream.compiler.catalogue import TIMESTAMP_NAMES, Stream
from seustream.compiler.errors import Span, suggest
from seustream.compiler.language import expressions as x
from seustream.compiler.language import syntax as s
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.bind import FAILED, Binder, ParameterValue
from seustream.compiler.language.types import BIGINT, Type
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Pick

CODES = {
    "syntax": "P001",
    "too-deep": "P001",
    "unknown-function": "P006",
    "type-mismatch": "P015",
    "constant-range": "P015",
    "unknown-type": "P015",
    "type-length": "P015",
    "no-parameter": "P018",
    "percent": "P019",
    "aggregate-here": "P020",
}
"""The specification's codes for the kinds of problems that all languages have."""

BY_NAME = {name: entry for entry in AGGREGATES.values() for name in (entry.name, *entry.aliases)}
BEFORE = "..i-1"
_PICKS = {
    "1": Pick.FIRST,
    "first": Pick.FIRST,
    "last": Pick.LAST,
    "i": Pick.EACH,
    "i-1": Pick.PREVIOUS,
}


@dataclass
class ElementScope:
    """The names of a PATTERN query: `a.x`, `cs[i-1].x`, `last(cs).x`, `avg(cs[..i-1].x)`. `returns`
    is set in RETURN, where all groups are complete."""

    elements: Sequence[ir.Element]
    aliases: Mapping[str, int]
    types: Mapping[str, Sequence[int]]
    stream: Stream
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)
    returns: bool = False
    codes: Mapping[str, str] = field(default_factory=lambda: CODES)
    within: str = "a condition"
    aggregates: bool | str = True
    functions: Iterable[str] = ()
    _groups: list[tuple[int, bool]] = field(default_factory=list)  # of the aggregate being bound

    # --- the contract of a scope ----------------------------------------------

    def reference(self, e: s.Reference, binder: Binder) -> x.Expression:
        """Resolves `v.x`, with or without an index."""
        element = self._element(e.parts[0], binder)
        if element is None:
            return FAILED
        if binder.aggregating is not None:
            pick = self._member(element, e, binder)
        else:
            pick = self._pick(element, e, binder)
        if pick is None:
            return FAILED
        if len(e.parts) == 1:
            name = e.parts[0].text
            hint = f"name one of its attributes: {name}.{ir.TIME}"
            return fail(binder, "P015", f"{name} is a whole event", e.span, hint)
        return self.value(element, pick, e.parts[1], binder)

    def call(self, e: s.FunctionCall, binder: Binder) -> x.Expression | None:
        """Binds `first(v).x` and `last(v).x`, and aggregates, which range over a group."""
        if self._ends(e):
            return self._end_value(e, binder)
        if e.name.lower() in BY_NAME and e.attribute is None:
            return self.aggregate(e, binder)
        return None

    def special(self, e: s.Expression, binder: Binder) -> x.Expression:
        """Fails, since patterns have no syntax of their own within expressions."""
        raise AssertionError(e)

    # --- RETURN ---------------------------------------------------------------

    def output(self, e: s.Expression, binder: Binder) -> x.Expression | ir.Whole:
        """Binds a column of RETURN, which may be a whole event."""
        if isinstance(e, s.Reference) and len(e.parts) == 1:
            element = self._element(e.parts[0], binder)
            pick = None if element is None else self._pick(element, e, binder)
            return FAILED if element is None or pick is None else ir.Whole(element, pick)
        if isinstance(e, s.FunctionCall) and e.attribute is None and self._ends(e):
            found = self._end_of_group(e, binder)
            return FAILED if found is None else ir.Whole(*found)
        return binder.value(e)

    # --- references -----------------------------------------------------------

    def attribute(self, name: str) -> tuple[str, Type] | None:
        """Returns an attribute's folded name and its type."""
        column = self.stream.column(name)
        if column is None:
            return None
        own = any(c.name.lower() == name.lower() for c in self.stream.columns)
        if not own and name.lower() in TIMESTAMP_NAMES and not self.stream.unknown:
            return ir.TIME, BIGINT
        return column.name.lower(), column.type

    def value(self, element: int, pick: Pick, name: s.Name, binder: Binder) -> x.Expression:
        """Returns an attribute of an element; reports P003 if the stream does not have it."""
        found = self.attribute(name.text)
        if found is None:
            columns = [c.name for c in self.stream.columns]
            hint = suggest(name.text, [*columns, ir.TIME], "attributes")
            text = f"stream {self.stream.name} has no attribute {name.text}"
            return fail(binder, "P003", text, name.span, hint)
        return ir.Value(element, pick, *found, self.elements[element].variable)

    def _element(self, name: s.Name, binder: Binder) -> int | None:
        """Returns the element that a name stands for: an alias first, then a type used once."""
        folded = name.text.lower()
        if folded in self.aliases:
            return self.aliases[folded]
        places = self.types.get(folded, ())
        if len(places) == 1:
            return places[0]
        if places:
            hint = f"give each its own name, such as {name.text} {folded}2"
            fail(binder, "P005", f"{name.text} is {len(places)} elements", name.span, hint)
            return None
        hint = suggest(name.text, [*self.aliases, *self.types], "variables")
        fail(binder, "P006", f"there is no variable {name.text}", name.span, hint)
        return None

    def _pick(self, element: int, e: s.Reference, binder: Binder) -> Pick | None:
        """Returns the events that an index selects; reports P014 if it has no meaning here."""
        of, index = self.elements[element], e.index
        if of.negated and self.returns:
            text = f"!{of.variable} has no event to show in RETURN"
            fail(binder, "P013", text, e.span, None)
            return None
        if index is None:
            return Pick.EACH if of.kleene else Pick.ONE
        if not of.kleene:
            hint = f"{of.variable} is one event; a group is written {of.kind}+"
            fail(binder, "P014", f"{of.variable} has no members to index", e.span, hint)
            return None
        found = _PICKS.get(index.lower())
        if found is not None and not (self.returns and found is Pick.PREVIOUS):
            return found
        hint = "an index is [1], [i], [i-1], [last], or [..i-1] within an aggregate"
        fail(binder, "P014", f"the index [{index}] has no meaning here", e.span, hint)
        return None

    def _member(self, element: int, e: s.Reference, binder: Binder) -> Pick | None:
        """Returns the events selected within an aggregate: for a group, the event being added."""
        of, index = self.elements[element], e.index
        if of.negated:
            fail(binder, "P013", f"!{of.variable} in {binder.aggregating}", e.span, None)
            return None
        if not of.kleene:
            return self._pick(element, e, binder)
        before = index is not None and index.lower() == BEFORE
        if (index is not None and not before) or (before and self.returns):
            hint = f"{binder.aggregating} goes over the whole group, or over [..i-1]"
            fail(binder, "P014", f"the index [{index}]", e.span, hint)
            return None
        self._groups.append((element, before))
        return Pick.EACH

    # --- calls ----------------------------------------------------------------

    def _ends(self, e: s.FunctionCall) -> bool:
        """Returns whether the call is first(v) or last(v), which pick an event; first(v.x) is an
        aggregate."""
        if e.name.lower() not in ("first", "last") or len(e.arguments) != 1:
            return False
        written = e.arguments[0]
        if not isinstance(written, s.Reference) or len(written.parts) > 1:
            return False
        return written.index != BEFORE and not e.distinct and e.where is None

    def _end_of_group(self, e: s.FunctionCall, binder: Binder) -> tuple[int, Pick] | None:
        written = e.arguments[0]
        assert isinstance(written, s.Reference)
        element = self._element(written.parts[0], binder)
        name = e.name.lower()
        if element is None:
            return None
        of = self.elements[element]
        if of.negated:
            where = "RETURN" if self.returns else name
            text = f"!{of.variable} has no event to show in {where}"
            fail(binder, "P013", text, written.span, None)
            return None
        if written.index is not None or not of.kleene:
            what = "an index within" if written.index is not None else "a single event in"
            hint = f"{name} takes a Kleene group"
            fail(binder, "P014", f"{what} {name}()", written.span, hint)
            return None
        return element, Pick.FIRST if name == "first" else Pick.LAST

    def _end_value(self, e: s.FunctionCall, binder: Binder) -> x.Expression:
        if binder.aggregating is not None:
            text = f"{e.name} within {binder.aggregating}"
            return fail(binder, "P020", text, e.at, "an aggregate takes v.attribute")
        found = self._end_of_group(e, binder)
        if found is None:
            return FAILED
        if e.attribute is None:
            hint = f"name one of its attributes: {e.name}(...).{ir.TIME}"
            return fail(binder, "P015", "this is a whole event", e.span, hint)
        return self.value(*found, e.attribute, binder)

    def aggregate(self, e: s.FunctionCall, binder: Binder) -> x.Expression:
        """Binds an aggregate over the one group that its argument refers to."""
        if binder.aggregating is not None:
            return binder.aggregate(e, BY_NAME[e.name.lower()])  # which reports it
        self._groups.clear()
        name, written = e.name.lower(), e.arguments[0] if e.arguments else None
        if name == "count" and isinstance(written, s.Reference) and self._counts(written):
            return self._count(e, written, binder)
        if not e.arguments and not e.star:
            return fail(binder, "P015", f"{name} wants an argument", e.span, f"{name}(v.attribute)")
        if e.star:
            return fail(binder, "P015", "count(*) of what", e.span, "count(v) counts a group")
        found = binder.aggregate(e, BY_NAME[name])
        if not isinstance(found, x.AggregateCall):
            return FAILED
        return self.over(found, e, binder)

    def over(self, found: x.AggregateCall, e: s.FunctionCall, binder: Binder) -> x.Expression:
        """Attaches to a bound aggregate the group that its references belong to."""
        groups = set(self._groups)
        at = e.arguments[0].span if e.arguments else e.span
        if not groups:
            variables = {self.elements[v.element].variable for v in ir.values(found)}
            what = f"{' and '.join(sorted(variables))} is one event" if variables else "a constant"
            return fail(binder, "P014", f"{what}, no group to aggregate", at, None)
        if len(groups) > 1:
            hint = "an aggregate goes over one group, whole or [..i-1]"
            return fail(binder, "P014", "more than one group in an aggregate", at, hint)
        ((element, before),) = groups
        variable = self.elements[element].variable
        return ir.GroupAggregate(element, before, found, found.type, variable)

    def _counts(self, written: s.Reference) -> bool:
        """Returns whether the argument counted is a whole event."""
        return len(written.parts) == 1

    def _count(self, e: s.FunctionCall, written: s.Reference, binder: Binder) -> x.Expression:
        """Binds `count(v)`, which counts events."""
        element = self._element(written.parts[0], binder)
        if element is None:
            return FAILED
        of = self.elements[element]
        if of.negated:
            return fail(binder, "P013", f"!{of.variable} in count", written.span, None)
        if not of.kleene:
            text = f"{of.variable} is one event, no group to aggregate"
            return fail(binder, "P014", text, written.span, None)
        if e.distinct:
            hint = f"count(DISTINCT {of.variable}.attribute)"
            return fail(binder, "P015", "every event is another one", e.span, hint)
        binder.aggregating = "count"
        self._member(element, written, binder)
        binder.aggregating = None
        found = binder.aggregate(replace(e, arguments=(), star=True), BY_NAME["count"])
        if not self._groups or not isinstance(found, x.AggregateCall):
            return FAILED
        return self.over(found, e, binder)


def fail(binder: Binder, code: str, message: str, span: Span, hint: str | None) -> x.Expression:
    """Reports a problem under a code of the specification."""
    return binder.fail(code, f"{code} {message}", span, hint)
