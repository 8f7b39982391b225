"""Resolves names in MATCH_RECOGNIZE: columns of the rows to which variables are matched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from seustream.compiler.catalogue import TIMESTAMP_NAMES, Stream
from seustream.compiler.errors import SourceText, Span, suggest
from seustream.compiler.language import expressions as x
from seustream.compiler.language import syntax as s
from seustream.compiler.language.bind import FAILED, Binder, ParameterValue
from seustream.compiler.language.types import BIGINT
from seustream.compiler.pattern import ir, rows, tree
from seustream.compiler.pattern.scope import BY_NAME, CODES, fail

_PHYSICAL = {"prev": -1, "next": 1}
_LOGICAL = ("first", "last")
_FARTHEST = (1 << 31) - 1


@dataclass
class RowScope:
    """The names of one place. `sets` maps each folded name, of a variable or of a SUBSET, to the
    variables it stands for; `own` is the variable that DEFINE describes, None in MEASURES."""

    names: Sequence[str]
    sets: Mapping[str, int]
    stream: Stream
    source: SourceText
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)
    own: int | None = None
    within: str = "MEASURES"
    codes: Mapping[str, str] = field(default_factory=lambda: CODES)
    aggregates: bool | str = True
    functions: Iterable[str] = ("prev", "next", "classifier", "match_number")
    _spoken: list[int] | None = None  # within navigation and aggregates, the sets of rows
    _final: bool = False

    @property
    def every(self) -> int:
        """Returns the set of all variables."""
        return (1 << len(self.names)) - 1

    # --- the contract of a scope ----------------------------------------------

    def reference(self, e: s.Reference, binder: Binder) -> x.Expression:
        """Resolves a column: of the last row of a variable or, without a variable, of the current
        row."""
        if e.index is not None:
            hint = "LAST(v.x, 1) is the row of v before its last one"
            return _refuse(binder, "an index", e.span, hint)
        if e.everything:
            return fail(binder, "P015", f"{e.parts[0].text}.* is all rows", e.span, "count(v.*)")
        *before, name = e.parts
        among = self.every if not before else self.rows_of(before[0], binder)
        if among is None:
            return FAILED
        cell = self._cell(name, binder)
        return cell if cell is FAILED else self._spoken_of(cell, among, e.span)

    def call(self, e: s.FunctionCall, binder: Binder) -> x.Expression | None:
        """Binds navigation between rows, the label and match of a row, and aggregates."""
        name = e.name.lower()
        if name in _PHYSICAL or name in _LOGICAL:
            return self._navigation(e, name, binder)
        if name == "classifier":
            among = self._classified(e, binder)
            return FAILED if among is None else self._spoken_of(rows.Label(), among, e.span)
        if name == "match_number":
            if e.arguments:
                return fail(binder, "P015", "MATCH_NUMBER wants no argument", e.span, None)
            return rows.MatchNumber()
        return self._aggregate(e, name, binder) if name in BY_NAME else None

    def special(self, e: s.Expression, binder: Binder) -> x.Expression:
        """Binds RUNNING or FINAL."""
        assert isinstance(e, tree.Semantics)
        name = e.call.name.lower()
        if e.final and self.own is not None:
            hint = "a condition sees the rows up to its own: write RUNNING, or nothing"
            return fail(binder, "P015", "FINAL in DEFINE", e.span, hint)
        if name not in _LOGICAL and name not in BY_NAME:
            hint = "RUNNING and FINAL stand before FIRST, LAST and aggregates"
            return fail(binder, "P015", f"{e.call.name} knows no RUNNING or FINAL", e.span, hint)
        self._final, before = e.final, self._final
        found = binder.value(e.call)
        self._final = before
        return found

    # --- references -----------------------------------------------------------

    def rows_of(self, name: s.Name, binder: Binder) -> int | None:
        """Returns the variables that a name stands for."""
        found = self.sets.get(name.text.lower())
        if found is None:
            hint = suggest(name.text, self.sets, "variables")
            fail(binder, "P006", f"there is no variable {name.text}", name.span, hint)
        return found

    def _cell(self, name: s.Name, binder: Binder) -> x.Expression:
        column = self.stream.column(name.text)
        if column is None:
            if name.text.lower() in self.sets:
                text = f"{name.text} is a variable, no column"
                return fail(binder, "P015", text, name.span, f"{name.text}.{ir.TIME}")
            hint = suggest(name.text, [*(c.name for c in self.stream.columns), ir.TIME], "columns")
            text = f"stream {self.stream.name} has no column {name.text}"
            return fail(binder, "P003", text, name.span, hint)
        own = any(c.name.lower() == name.text.lower() for c in self.stream.columns)
        if not own and name.text.lower() in TIMESTAMP_NAMES and not self.stream.unknown:
            return rows.Cell(ir.TIME, BIGINT)
        return rows.Cell(column.name.lower(), column.type)

    def _spoken_of(self, part: x.Expression, among: int, span: Span) -> x.Expression:
        """Returns a part of an expression about one row; outside navigation, it reads the last of
        some rows."""
        if self._spoken is not None:
            self._spoken.append(among)
            return part
        return rows.At(part, among, False, 0, 0, False, part.type, self._text(span))

    def _text(self, span: Span) -> str:
        return " ".join(self.source.text[span.start : span.end].split())

    def _classified(self, e: s.FunctionCall, binder: Binder) -> int | None:
        if not e.arguments:
            return self.every
        written = e.arguments[0]
        if len(e.arguments) > 1 or not isinstance(written, s.Reference) or len(written.parts) > 1:
            fail(binder, "P015", "CLASSIFIER wants a variable or nothing", e.span, "CLASSIFIER(v)")
            return None
        return self.rows_of(written.parts[0], binder)

    # --- calls ----------------------------------------------------------------

    def _navigation(self, e: s.FunctionCall, name: str, binder: Binder) -> x.Expression:
        """Binds PREV, NEXT, FIRST and LAST."""
        if self._spoken is not None:
            place = binder.aggregating or "PREV, NEXT, FIRST or LAST"
            hint = "PREV and NEXT may go around FIRST and LAST: PREV(LAST(v.x, 1), 2)"
            return fail(binder, "P020", f"{e.name} within {place}", e.at, hint)
        offset = _offset(e, name, binder)
        if offset is None:
            return FAILED
        if name in _PHYSICAL:
            inner = self._logical(e.arguments[0])
            if inner is not None:
                at = binder.value(inner)
                if not isinstance(at, rows.At):
                    return FAILED
                return replace(at, offset=_PHYSICAL[name] * offset, text=self._text(e.span))
        part, among = self._part(e.arguments[0], binder)
        if among is None:
            return FAILED
        first, text = name == "first", self._text(e.span)
        if name in _PHYSICAL:
            offset *= _PHYSICAL[name]
            return rows.At(part, among, False, 0, offset, self._final, part.type, text)
        return rows.At(part, among, first, offset, 0, self._final, part.type, text)

    def _logical(self, e: s.Expression) -> s.Expression | None:
        """Returns the FIRST or LAST directly within PREV or NEXT."""
        call = e.call if isinstance(e, tree.Semantics) else e
        return e if isinstance(call, s.FunctionCall) and call.name.lower() in _LOGICAL else None

    def _part(self, e: s.Expression, binder: Binder) -> tuple[x.Expression, int | None]:
        """Binds an expression over one row; also returns the variables whose row it is."""
        self._spoken = []
        part = binder.value(e)
        among, self._spoken = set(self._spoken), None
        if part is FAILED:
            return part, None
        if len(among) > 1:
            hint = "one PREV, NEXT, FIRST or LAST speaks of one variable; use one each"
            return fail(binder, "P015", "rows of several variables", e.span, hint), None
        if not among:
            return fail(binder, "P015", "no column of a row", e.span, "such as PREV(v.x)"), None
        return part, among.pop()

    def _aggregate(self, e: s.FunctionCall, name: str, binder: Binder) -> x.Expression:
        """Binds an aggregate over the rows of one variable, of a SUBSET, or of the match."""
        entry = BY_NAME[name]
        if self._spoken is not None:
            place = binder.aggregating or "PREV, NEXT, FIRST or LAST"
            return fail(binder, "P020", f"{e.name} within {place}", e.at, "aggregates do not nest")
        self._spoken = []
        written = e.arguments[0] if e.arguments else None
        if name == "count" and isinstance(written, s.Reference) and self._counts(written):
            among = self.rows_of(written.parts[0], binder)
            if e.distinct:
                self._spoken = None
                hint = f"count(DISTINCT {written.parts[0].text}.column)"
                return fail(binder, "P015", "every row is another one", e.span, hint)
            self._spoken += [] if among is None else [among]
            e = replace(e, arguments=(), star=True)
        elif e.star:
            self._spoken.append(self.every)
        found = binder.aggregate(e, entry)
        spoken, self._spoken = set(self._spoken), None
        if not isinstance(found, x.AggregateCall) or not spoken:
            if found is FAILED or not isinstance(found, x.AggregateCall):
                return FAILED
            hint = "name the rows: count(v.*), sum(v.x)"
            return fail(binder, "P014", "an aggregate over no column of a row", e.span, hint)
        if len(spoken) > 1:
            hint = "one aggregate goes over one variable or SUBSET"
            return fail(binder, "P014", "rows of several variables in an aggregate", e.span, hint)
        text = self._text(e.span)
        return rows.RowAggregate(found, spoken.pop(), self._final, found.type, text)

    def _counts(self, written: s.Reference) -> bool:
        """Returns whether the argument counts rows: `v.*`, or `v` if no column has that name."""
        if written.everything:
            return True
        return len(written.parts) == 1 and self.stream.column(written.parts[0].text) is None


def _refuse(binder: Binder, what: str, span: Span, hint: str | None = None) -> x.Expression:
    return fail(binder, "P017", f"{what} is not supported", span, hint)


def _offset(e: s.FunctionCall, name: str, binder: Binder) -> int | None:
    """Returns the second argument: the number of rows to move."""
    if not 1 <= len(e.arguments) <= 2 or e.star or e.where is not None or e.distinct:
        hint = f"{e.name}(v.x) or {e.name}(v.x, 2)"
        fail(binder, "P015", f"{e.name} wants a value and a number of rows", e.span, hint)
        return None
    if len(e.arguments) == 1:
        return 1 if name in _PHYSICAL else 0
    offset = e.arguments[1]
    if isinstance(offset, s.Constant) and type(offset.value) is int and offset.value <= _FARTHEST:
        return offset.value
    hint = "count the rows with a constant: 0, 1, 2"
    text = f"the number of rows is a whole number from 0 to {_FARTHEST:,}"
    fail(binder, "P015", text, offset.span, hint)
    return None
