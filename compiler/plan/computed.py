"""Computed attributes: expressions over one stream that a join compares with another stream.

    R.a + 1 = S.d   becomes   R.[R.a + 1] = S.d

The host computes `R.a + 1` when a tuple of R enters, and the device compares its code like that of a
column. The equality thus has an index, instead of a cross product with a condition left to the host.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from seustream.compiler.catalogue import TIME_COLUMN
from seustream.compiler.language import expressions as x
from seustream.compiler.logical.program import Query
from seustream.hdl.isa import Condition

Key = tuple[str, str]
"""A stream and the name of an attribute: a column, or the text of an expression."""


@dataclass
class Computed:
    """Turns expressions in the conditions of a query into attributes; `expressions`, over source 0, are
    those of earlier queries, too. The attributes of an area are limited: equalities get them first, then comparisons of times."""

    query: Query
    attributes: int
    expressions: dict[Key, x.Expression] = field(default_factory=dict)
    _used: list[set[str]] = field(init=False)

    def where(self) -> x.Expression:
        """Returns the condition as the device may compare it; its conjuncts correspond to the
        query's."""
        self._used = [set() for _ in self.query.sources]
        wanted = []
        for e in _compares(self.query.where):
            if self._between_streams(e):
                wanted.append(e)
            elif all(isinstance(side, x.ColumnReference | x.Literal) for side in (e.left, e.right)):
                for column in x.columns(e):
                    self._used[column.source].add(column.name)
        taken: dict[x.Expression, x.Expression] = {
            e: self._with_attributes(e) for e in sorted(wanted, key=_order)
        }
        return x.map_predicate(self.query.where, lambda e: taken.get(e, e))

    def _between_streams(self, e: x.Compare) -> bool:
        left, right = x.sources(e.left), x.sources(e.right)
        plain = isinstance(e.left, x.ColumnReference) and isinstance(e.right, x.ColumnReference)
        return len(left) == len(right) == 1 and left != right and not plain

    def _with_attributes(self, e: x.Compare) -> x.Expression:
        sides = [self._attribute(e.left), self._attribute(e.right)]
        used = [self._used[side.source] | {side.name} for side in sides]
        if any(len(names) > self.attributes for names in used):
            return e
        for side, names, of in zip(sides, used, (e.left, e.right), strict=True):
            self._used[side.source] = names
            if not isinstance(of, x.ColumnReference):
                stream = self.query.sources[side.source].stream.name
                self.expressions[stream, side.name] = _over(of, stream)
        return replace(e, left=sides[0], right=sides[1])

    def _attribute(self, e: x.Expression) -> x.ColumnReference:
        if isinstance(e, x.ColumnReference):
            return e
        (source,) = x.sources(e)
        at = self.query.sources[source]
        over, stream = _over(e, at.stream.name), at.stream
        name = f"[{x.show(over)}]"
        # Names of columns are as anyone likes them, so what is shown may be that of another.
        while stream.column(name) or self.expressions.get((stream.name, name), over) != over:
            name = f"[{name}]"
        return x.ColumnReference(source, name, e.type, True, at.alias)


def _compares(e: x.Expression) -> Iterator[x.Compare]:
    """Yields the comparisons of a condition that are nested in AND and OR alone."""
    match e:
        case x.And() | x.Or():
            for term in e.terms:
                yield from _compares(term)
        case x.Compare():
            yield e


def _order(e: x.Compare) -> int:
    if e.condition is Condition.EQ:
        return 0
    return 1 if all(column.name == TIME_COLUMN.name for column in x.columns(e)) else 2


def _over(e: x.Expression, stream: str) -> x.Expression:
    """Rewrites the expression over the one stream it reads, so that it is the same from every
    query."""
    if isinstance(e, x.ColumnReference):
        return replace(e, source=0, alias=stream)
    return x.rebuild(e, lambda part: _over(part, stream))


def is_time(e: x.Expression) -> bool:
    """Returns whether a value is a component's time, or a fixed interval from it."""
    match e:
        case x.ColumnReference():
            return e.name == TIME_COLUMN.name
        case x.Call("+" | "-", (x.ColumnReference() as column, x.Literal())):
            return column.name == TIME_COLUMN.name
    return False
