"""Translates SELECT ... FROM MATCH_RECOGNIZE to a query over rows.

before  `tree.Recognize`
after   `rows.RowQuery`
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.errors import Span, suggest
from seustream.compiler.language import expressions as x
from seustream.compiler.language.bind import Binder
from seustream.compiler.language.options import query_options
from seustream.compiler.language.types import BIGINT
from seustream.compiler.pattern import ir, rows, tree
from seustream.compiler.pattern.analyse import PatternContext
from seustream.compiler.pattern.ir import Skip
from seustream.compiler.pattern.rows import Give, RowPattern
from seustream.compiler.pattern.rowscope import RowScope

_SKIPS = {
    "past_last": Skip.PAST_LAST,
    "to_next": Skip.NEXT,
    "to_first": Skip.TO_FIRST,
    "to_last": Skip.TO_LAST,
}
_GIVES = {
    "one_row": Give.ONE,
    "all_rows": Give.ALL,
    "omit_empty": Give.OMIT_EMPTY,
    "unmatched": Give.UNMATCHED,
}
_NOTHING = rows.RowSequence(())
_MOST_PERMUTED = 6


def recognize(statement: tree.Recognize, name: str, context: PatternContext) -> rows.RowQuery:
    """Returns the query. If a problem was reported, the result approximates it and must not be run."""
    stream = context.stream(statement.stream)
    _check_order(statement, stream, context)
    found = _Pattern(context, statement.rows[0] == "unmatched")
    pattern = found.part(statement.pattern)
    if rows.steps(pattern) > rows.MAX_STEPS or len(found.names) > rows.MAX_VARIABLES:
        text = f"a pattern of more than {rows.MAX_STEPS:,} steps or {rows.MAX_VARIABLES} variables"
        hint = "write A+ with count(A.*) in a condition instead of a large A{n,m}"
        context.report("P017", text, statement.pattern.span, hint)
        pattern = _NOTHING
    sets = _sets(statement, found, context)
    scope = RowScope(found.names, sets, stream, context.source, context.parameters)
    skip, skip_to, skip_name = _skip(statement, sets, context)
    partition = context.partition(statement.partition, stream)
    give = _GIVES[statement.rows[0]]
    return rows.RowQuery(
        name=name,
        window=context.window(statement.within, statement.span),
        skip=skip,
        partition=partition,
        outputs=_outputs(statement, give, partition, scope, context),
        stream=stream,
        text=context.text(statement.span),
        span=statement.span,
        written=context.source.text[statement.body.start : statement.body.end].strip(),
        variables=tuple(found.names),
        pattern=pattern,
        definitions=_definitions(statement, scope, context),
        give=give,
        skip_to=skip_to,
        skip_name=skip_name,
        strict=query_options(statement.options, context.problems).strict,
    )


def _check_order(statement: tree.Recognize, stream: Stream, context: PatternContext) -> None:
    hint = f"ORDER BY {stream.called_time}: rows come in the order of their time"
    if not statement.order:
        context.report("P017", "ORDER BY is missing", statement.span, hint)
        return
    (first, direction), *others = statement.order
    timed = stream.unknown or stream.is_time(first.text)
    if not timed or direction != "asc":
        context.report("P017", "rows are ordered by their time, ascending", first.span, hint)
    for name, _ in others:
        context.report("P017", "a second column of ORDER BY", name.span, hint)


@dataclass
class _Pattern:
    """Reads a row pattern; holds the variables so far, and whether `{- -}` is refused."""

    context: PatternContext
    unmatched: bool
    names: list[str] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)

    def part(self, e: tree.RowPart, excluded: bool = False) -> RowPattern:
        if e.kind == "one":
            assert e.name is not None
            variable = self.known.setdefault(e.name.text.lower(), len(self.names))
            if variable == len(self.names):
                self.names.append(e.name.text)
            return rows.One(variable, excluded)
        if e.kind == "exclusion" and self.unmatched:
            hint = "WITH UNMATCHED ROWS gives every row; leave one of the two out"
            self.context.report("P017", "an exclusion beside UNMATCHED ROWS", e.span, hint)
        parts = tuple(self.part(one, excluded or e.kind == "exclusion") for one in e.parts)
        match e.kind:
            case "sequence":
                return rows.RowSequence(parts)
            case "choice":
                return rows.RowChoice(parts)
            case "permutation":
                return self._permutation(parts, e.span)
            case "repeat":
                return self._repeat(parts[0], e)
            case "first" | "last":
                return rows.Anchor.FIRST if e.kind == "first" else rows.Anchor.LAST
        return parts[0]

    def _permutation(self, parts: tuple[RowPattern, ...], span: Span) -> RowPattern:
        """Returns every order of the parts, the written order first."""
        if len(parts) > _MOST_PERMUTED:
            hint = "nest it: PERMUTE((A B), C, ...) has fewer orders"
            text = f"PERMUTE of more than {_MOST_PERMUTED} parts"
            self.context.report("P017", text, span, hint)
            return _NOTHING
        return rows.RowChoice(tuple(map(rows.RowSequence, itertools.permutations(parts))))

    def _repeat(self, part: RowPattern, e: tree.RowPart) -> RowPattern:
        quantifier = e.quantifier
        assert quantifier is not None
        least, most = quantifier.least, quantifier.most
        if most is not None and (most < least or not most):
            text = f"at least {least}, and at most {most}"
            hint = "at most 1 or more, and the smaller number first"
            self.context.report("P009", text, quantifier.span, hint)
            return part
        return rows.Repeat(part, least, most, e.reluctant)


def _sets(statement: tree.Recognize, found: _Pattern, context: PatternContext) -> Mapping[str, int]:
    """Returns the variables that each name stands for, both of variables and of SUBSET."""
    sets = {name: 1 << number for name, number in found.known.items()}
    for name, members in statement.subsets:
        if name.text.lower() in sets:
            text = f"there is already a variable {name.text}"
            context.report("P004", text, name.span, "give the SUBSET another name")
            continue
        among = 0
        for member in members:
            own = found.known.get(member.text.lower())
            if own is None:
                hint = suggest(member.text, found.names, "variables")
                context.report("P006", f"there is no variable {member.text}", member.span, hint)
            else:
                among |= 1 << own
        sets[name.text.lower()] = among
    return sets


def _definitions(
    statement: tree.Recognize, scope: RowScope, context: PatternContext
) -> tuple[rows.Definition, ...]:
    found: dict[int, rows.Definition] = {}
    own_names = {name.lower(): number for number, name in enumerate(scope.names)}
    for variable, condition in statement.definitions:
        own = own_names.get(variable.text.lower())
        if own is None:
            hint = suggest(variable.text, scope.names, "variables")
            text = f"the pattern has no variable {variable.text}"
            context.report("P006", text, variable.span, hint)
            continue
        if own in found:
            text = f"{variable.text} is defined twice"
            context.report("P004", text, variable.span, "join the conditions with AND")
        place = replace(scope, own=own, within="DEFINE")
        bound = Binder(place, context.problems, bars=True).condition(condition)
        found[own] = rows.Definition(own, bound, context.text(condition.span))
    return tuple(found.values())


def _skip(
    statement: tree.Recognize, sets: Mapping[str, int], context: PatternContext
) -> tuple[Skip, int, str]:
    kind, to = statement.skip
    if to is None:
        return _SKIPS[kind], 0, ""
    if to.text.lower() not in sets:
        hint = suggest(to.text, sets, "variables")
        context.report("P006", f"there is no variable {to.text}", to.span, hint)
    return _SKIPS[kind], sets.get(to.text.lower(), 0), to.text


def _outputs(
    statement: tree.Recognize,
    give: Give,
    partition: tuple[str, ...],
    scope: RowScope,
    context: PatternContext,
) -> tuple[ir.OutputColumn, ...]:
    """Returns the columns of a match in the standard's order, reduced to the selected ones: those
    of PARTITION BY, with all rows the time, then the measures, and with all rows the row's other
    columns."""
    columns = {column.name.lower(): column for column in scope.stream.columns}
    keys = [*partition, ir.TIME] if give is not Give.ONE else partition
    # The rows of a stream have their time anyway.
    shown = statement.columns is not None or not statement.creates
    found: list[tuple[str, x.Expression]] = []
    for name in dict.fromkeys(keys):
        if name in partition and name in columns:
            found.append((columns[name].name, _cell(name, columns)))
        elif name not in columns and shown:
            found.append((name, _cell(name, columns)))
    binder = Binder(scope, context.problems, bars=True)
    for item in statement.measures:
        assert item.alias is not None
        if item.alias.text.lower() in {name.lower() for name, _ in found}:
            text = f"there is already a column {item.alias.text}"
            context.report("P004", text, item.alias.span, "give the measure another name")
        found.append((item.alias.text, binder.value(item.expression)))
    if give is not Give.ONE:
        taken = {name.lower() for name, _ in found}
        found += [(c.name, _cell(own, columns)) for own, c in columns.items() if own not in taken]
    if not found:
        hint = "add MEASURES count(*) AS n before PATTERN, or PARTITION BY a column"
        context.report("P003", "a match has no columns", statement.selected, hint)
    if statement.columns is None:
        return tuple(ir.OutputColumn(name, e, None) for name, e in found)
    by_name = {name.lower(): e for name, e in found}
    selected = []
    called = statement.alias or statement.stream
    for one in statement.columns:
        if one.of is not None and one.of.text.lower() != called.text.lower():
            hint = f"the matches are called {called.text}: {called.text}.{one.column.text}"
            context.report("P006", f"there is no {one.of.text} in FROM", one.of.span, hint)
        e = by_name.get(one.column.text.lower())
        if e is None:
            hint = suggest(one.column.text, [name for name, _ in found], "columns")
            text = f"a match has no column {one.column.text}"
            context.report("P003", text, one.column.span, hint)
        else:
            selected.append(ir.OutputColumn((one.alias or one.column).text, e, None))
    return tuple(selected)


def _cell(name: str, columns: Mapping[str, Column]) -> rows.Cell:
    """Returns a column of the row that a result describes."""
    return rows.Cell(name, columns[name].type if name in columns else BIGINT)
