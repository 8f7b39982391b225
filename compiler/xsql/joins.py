"""Combines FROM and the subqueries of WHERE into one tree of joins.

before  FROM R LEFT JOIN S ON R.a = S.d WHERE R.b > 1 AND NOT EXISTS (SELECT * FROM T WHERE T.e = R.a)
after   sources R, S, T; ANTI(LEFT(R, S, R.a = S.d), T, T.e = R.a); WHERE R.b > 1

EXISTS and IN are joins on top of FROM; the rest of WHERE applies to the tree as a whole, since a
SEMI or ANTI join changes no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from seustream.compiler.errors import Problems
from seustream.compiler.language import expressions as x
from seustream.compiler.language import syntax as s
from seustream.compiler.language.bind import FAILED, Binder, ParameterValue
from seustream.compiler.language.indexable import indexable
from seustream.compiler.logical.joins import JoinKind, JoinSide, TreeJoin, joins, optional, visible
from seustream.compiler.logical.program import Source
from seustream.compiler.xsql import tree
from seustream.compiler.xsql.asof import asof
from seustream.compiler.xsql.bounds import time_of
from seustream.compiler.xsql.scope import Merged, QueryScope
from seustream.hdl.isa import Condition

Subquery = tree.Exists | tree.InQuery


def conditions(where: s.Expression | None) -> tuple[s.Expression, ...]:
    """Returns the operands of AND in a WHERE."""
    if where is None:
        return ()
    if isinstance(where, s.Connective) and where.operator == "AND":
        return tuple(part for operand in where.operands for part in conditions(operand))
    return (where,)


def subquery(e: s.Expression) -> tuple[Subquery, bool] | None:
    """Returns the subquery that a condition consists of, and whether it is negated."""
    negated = False
    while isinstance(e, s.Negation):
        e, negated = e.operand, not negated
    if isinstance(e, tree.InQuery):
        return e, negated != e.negated
    if not isinstance(e, tree.Exists):
        return None
    query = e.query
    if isinstance(query, tree.Select) and query.limit is not None and query.limit[0] > 0:
        # The first n rows contain a row exactly if there is any row.
        e = replace(e, query=replace(query, limit=None))
    return e, negated


def subqueries(where: s.Expression | None) -> list[tree.Select]:
    """Returns the SELECTs of the subqueries of a WHERE, in order, without those nested in them."""
    found = [of[0].query for e in conditions(where) if (of := subquery(e)) is not None]
    return [query for query in found if isinstance(query, tree.Select) and not _grouped(query)]


def _grouped(query: tree.Select) -> bool:
    """Returns whether a subquery has more than FROM and WHERE; an ORDER BY does not count, since it
    changes nothing."""
    chosen = query.limit is not None or query.qualify is not None
    return bool(query.group_by) or query.having is not None or chosen or _moves(query)


def _moves(query: tree.Select) -> bool:
    return query.changes is not None or any(of.slide is not None for of in query.windows)


def selects(select: tree.Select) -> Iterator[tree.Select]:
    """Yields a SELECT and those of its subqueries, in order of appearance."""
    yield select
    for inner in subqueries(select.where):
        yield from selects(inner)


@dataclass
class JoinBinder:
    """Binds the joins of one SELECT over all its sources. `merged` are the columns of USING."""

    sources: tuple[Source, ...]
    parameters: Mapping[str, ParameterValue]
    problems: Problems
    merged: list[Merged] = field(default_factory=list)
    taken: int = 0

    def scope(self, levels: tuple[tuple[int, ...], ...], within: str = "WHERE") -> QueryScope:
        """Returns the names at a place that sees these sources, the nearest SELECT's first."""
        return QueryScope(self.sources, self.parameters, within, levels=levels, merged=self.merged)

    def select(
        self, select: tree.Select, outer: tuple[tuple[int, ...], ...] = ()
    ) -> tuple[JoinSide, list[x.Expression]]:
        """Returns the tree of a SELECT, and the conditions of its WHERE that are not subqueries."""
        side = self._listed(select.sources)
        inside = [of for e in conditions(select.where) if (of := subquery(e)) is not None]
        plain = [e for e in conditions(select.where) if subquery(e) is None]
        levels = (visible(side), *outer)
        binder = Binder(self.scope(levels), self.problems)
        bound = [binder.condition(e) for e in plain]
        for one, negated in inside:
            side = self._subquery(side, one, negated, levels, bound)
        return side, bound

    # --- FROM -----------------------------------------------------------------

    def _listed(self, parts: Sequence[tree.FromPart]) -> JoinSide:
        side = self._part(parts[0])
        for part in parts[1:]:
            side = TreeJoin(JoinKind.INNER, side, self._part(part), x.TRUE)
        return side

    def _part(self, part: tree.FromPart) -> JoinSide:
        if isinstance(part, tree.FromItem):
            self.taken += 1
            return self.taken - 1
        left, right = self._part(part.left), self._part(part.right)
        kind = JoinKind[part.kind] if part.kind != "CROSS" else JoinKind.INNER
        condition: x.Expression = x.TRUE
        if part.condition is not None:
            scope = self.scope(((*visible(left), *visible(right)),), "ON")
            condition = Binder(scope, self.problems).condition(part.condition)
        terms = [*x.conjuncts(condition)]
        terms += [self._using(name, kind, left, right) for name in part.using]
        if part.looks_up:
            return self._asof(part, kind, left, right, terms)
        return TreeJoin(kind, left, right, x.conjunction(tuple(terms)))

    def _asof(
        self,
        part: tree.JoinClause,
        kind: JoinKind,
        left: JoinSide,
        right: JoinSide,
        terms: list[x.Expression],
    ) -> TreeJoin:
        if isinstance(part.right, tree.FromItem) and part.right.as_of is not None:
            binder = Binder(self.scope((visible(left),), "FOR SYSTEM_TIME AS OF"), self.problems)
            time = binder.value(part.right.as_of)
            held = time_of(visible(right)[0], part.right.stream.text)
            terms.append(binder.compare(Condition.GE, time, held, part.right.as_of.span))
            if kind in (JoinKind.INNER, JoinKind.LEFT):
                kind = JoinKind.ASOF if kind is JoinKind.INNER else JoinKind.LEFT_ASOF
            elif not kind.looks_up:
                self.problems.add(
                    "asof",
                    f"FOR SYSTEM_TIME looks up rows for those of the left side, not for {part.kind} JOIN",
                    part.right.span,
                    "JOIN and LEFT JOIN have it",
                )
        if FAILED in terms:
            return TreeJoin(kind, left, right, FAILED)
        return asof(kind, left, right, x.conjunction(tuple(terms)), part.span, self.problems)

    def _using(self, name: s.Name, kind: JoinKind, left: JoinSide, right: JoinSide) -> x.Expression:
        """Returns the condition that both sides have the same value in a column, which has one name
        from then on. For an ASOF join, the times are compared by order instead."""
        found = []
        for side in (left, right):
            binder = Binder(self.scope((visible(side),), "USING"), self.problems)
            found.append(binder.value(s.Reference((name,), name.span)))
        if FAILED in found:
            return FAILED
        first, second = found
        before = (
            kind.looks_up and getattr(first, "timed", False) and getattr(second, "timed", False)
        )
        how = Condition.GE if before else Condition.EQ
        equal = binder.compare(how, first, second, name.span)
        if not isinstance(equal, x.Compare):
            return equal
        one = second if kind is JoinKind.RIGHT else first
        if kind is JoinKind.FULL:
            one = x.Case(((x.IsNull(first, True), first),), second, equal.of)
        covers = frozenset((*visible(left), *visible(right)))
        self.merged.insert(0, Merged(name.text.lower(), covers, one))
        return equal

    # --- subqueries -----------------------------------------------------------

    def _subquery(
        self,
        side: JoinSide,
        of: Subquery,
        negated: bool,
        levels: tuple[tuple[int, ...], ...],
        beside: Sequence[x.Expression],
    ) -> JoinSide:
        query = of.query
        what = "EXISTS" if isinstance(of, tree.Exists) else "IN"
        if not isinstance(query, tree.Select) or _grouped(query):
            moves = isinstance(query, tree.Select) and _moves(query)
            does = "gives changes, or groups at steps" if moves else "groups, limits or unites rows"
            self.problems.add(
                "subquery-form",
                f"the subquery of {what} {does}",
                of.span,
                "make a stream of it: CREATE STREAM name AS SELECT ..., and read that",
            )
            return side
        for item in tree.from_items(query.sources):
            if item.windows is not None and item.windows.name.lower().startswith("session"):
                said = f"the windows of {item.windows.name} are those of groups"
                hint = (
                    "make a stream of the groups: CREATE STREAM name AS SELECT ..., and read that"
                )
                self.problems.add("group-window", said, item.span, hint)
        inner, terms = self.select(query, levels)
        near = frozenset((*visible(side), *visible(inner)))
        if isinstance(of, tree.InQuery):
            sure = present((*beside, *terms))
            equal = self._equal(of, query, inner, negated, levels, optional(side), sure)
            terms.append(equal)
        else:
            self._bind_items(query, (visible(inner), *levels))
        self._bind_order(query, (visible(inner), *levels))
        for e in terms:
            self._reachable(e, near, of)
        kind = JoinKind.ANTI if negated else JoinKind.SEMI
        flat = [term for e in terms for term in x.conjuncts(e)]
        return TreeJoin(kind, side, inner, x.conjunction(tuple(flat)))

    def _equal(
        self,
        of: tree.InQuery,
        query: tree.Select,
        inner: JoinSide,
        negated: bool,
        levels: tuple[tuple[int, ...], ...],
        lacking: frozenset[int],
        sure: frozenset[x.Expression],
    ) -> x.Expression:
        """Returns the condition that the operand of IN equals the result of its subquery. `sure`
        are values that the conditions around and in the subquery keep from being NULL."""
        operand = Binder(self.scope(levels), self.problems).value(of.operand)
        if query.stars and len(query.items) == 1 and len(visible(inner)) == 1:
            (position,) = visible(inner)
            columns = self.sources[position].stream.columns
            one: s.Expression | None = (
                s.Reference((s.Name(columns[0].name, query.span),), query.span)
                if len(columns) == 1
                else None
            )
        else:
            one = None if query.stars or len(query.items) > 1 else query.items[0].expression
        if one is None:
            self.problems.add(
                "subquery-form",
                "the subquery of IN gives one column",
                query.span,
                "select the column to compare with; for several write EXISTS",
            )
            return FAILED
        binder = Binder(self.scope((visible(inner), *levels), "the SELECT of IN"), self.problems)
        value = binder.value(one)
        if FAILED in (operand, value):
            return FAILED
        lacking = lacking | optional(inner)
        doubtful = next((e for e in (operand, value) if x.can_be_null(e, lacking, sure)), None)
        if negated and doubtful is not None:
            outside = {self.sources[place].alias for level in levels for place in level}
            twice = [a for at in visible(inner) if (a := self.sources[at].alias) in outside]
            apart = f", with another name for the inner {twice[0]}" if twice else ""
            self.problems.add(
                "not-in-null",
                f"{x.show(doubtful)} can be NULL, and then NOT IN is never true",
                of.span,
                f"write NOT EXISTS (SELECT ... WHERE {x.show(value)} = {x.show(operand)}){apart}",
            )
        return binder.compare(Condition.EQ, operand, value, of.span)

    def _bind_order(self, query: tree.Select, levels: tuple[tuple[int, ...], ...]) -> None:
        """Binds an ORDER BY only to find its mistakes."""
        binder = Binder(self.scope(levels, "the ORDER BY of a subquery"), self.problems)
        aliases = {item.alias.text.lower() for item in query.items if item.alias is not None}
        for item in query.order_by:
            e = item.expression
            if not (isinstance(e, s.Reference) and str(e).lower() in aliases):
                binder.value(e)

    def _bind_items(self, query: tree.Select, levels: tuple[tuple[int, ...], ...]) -> None:
        """Binds a SELECT list only to find its mistakes."""
        binder = Binder(self.scope(levels, "the SELECT of EXISTS"), self.problems)
        for item in query.items:
            if not tree.is_star(item.expression):
                binder.value(item.expression)

    def _reachable(self, e: x.Expression, near: frozenset[int], of: Subquery) -> None:
        far = x.sources(e) - near
        if not far:
            return
        far_alias = self.sources[min(far)].alias
        self.problems.add(
            "subquery-form",
            f"this subquery reads {far_alias}, which is neither its own nor of the SELECT around it",
            of.span,
            f"join {far_alias} in the SELECT around it as well",
        )


def present(conditions: Iterable[x.Expression]) -> frozenset[x.Expression]:
    """Returns the values that are not NULL if all of these conditions hold: those required to be
    not NULL, and those compared."""
    found = set[x.Expression]()
    for e in (term for condition in conditions for term in x.conjuncts(condition)):
        if isinstance(e, x.IsNull) and e.negated:
            found.add(e.term)
        elif isinstance(e, x.Compare):
            found |= {e.left, e.right}
    return frozenset(found)


def inner_only(side: JoinSide) -> bool:
    """Returns whether a list of streams would be equivalent."""
    return all(join.kind is JoinKind.INNER for join in joins(side))


def indexed(side: JoinSide) -> JoinSide:
    """Returns the joins with their conditions in forms that an index can follow."""
    if isinstance(side, int):
        return side
    condition = indexable(side.condition, optional(side.left) | optional(side.right))
    return replace(side, left=indexed(side.left), right=indexed(side.right), condition=condition)
