"""Functions OVER the groups of a window: turns the groups into a query in FROM.

before  SELECT a, rank() OVER (ORDER BY count(*) DESC) AS r FROM R GROUP BY a, TUMBLE(ts, 5)
after   SELECT a, rank() OVER (ORDER BY "(group 1)" DESC) AS r
        FROM (SELECT a, count(*) AS "(group 1)" FROM R GROUP BY a, TUMBLE(ts, 5))
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from seustream.compiler.catalogue import TIMESTAMP_NAMES
from seustream.compiler.errors import Span
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.syntax import Constant, Expression, FunctionCall, Name, Reference
from seustream.compiler.xsql import periods, tree
from seustream.compiler.xsql.naming import name_of

_NAMES = {name for entry in AGGREGATES.values() for name in (entry.name, *entry.aliases)}


def over_groups(select: tree.Select, text: Callable[[Span], str]) -> tree.Select | None:
    """Returns the query around the groups if functions range OVER the groups of a window; None if
    none do, or if the query has clauses that prevent it. `text` returns the source text at a place."""
    windows = [item.windows for item in tree.from_items(select.sources) if item.windows is not None]
    grouped = any(map(periods.is_window, select.group_by)) or (windows and select.group_by)
    asked = [*(item.expression for item in select.items), select.qualify]
    if not grouped or not any(map(_looks, asked)) or select.stars:
        return None
    if select.changes is not None:
        return None
    return _AroundGroups(select, text).around()


class _AroundGroups:
    def __init__(self, select: tree.Select, text: Callable[[Span], str]) -> None:
        self.select, self.text = select, text
        self.items: list[tree.SelectItem] = []
        self.names: dict[Any, Name] = {}
        """By the shape of an expression, the column of the groups that holds it."""

    def around(self) -> tree.Select:
        select, at = self.select, self.select.span
        named = [name_of(item, self.text) for item in select.items]
        for item, name in zip(select.items, named, strict=True):
            if not _looks(item.expression):
                self._add(item.expression, name)
        aliases = {
            _shape(Reference((item.alias,), at)): item.alias
            for item in select.items
            if item.alias is not None and not _looks(item.expression) and not self._hidden(item)
        }
        self.names = aliases | self.names
        items = tuple(
            tree.SelectItem(self._of(item.expression), name, item.span)
            for item, name in zip(select.items, named, strict=True)
        )
        over = tuple((name, self._of(window)) for name, window in select.named_windows)
        keys = tuple(self._key(e) for e in select.group_by)
        # QUALIFY names the functions themselves, unless a column of the groups has the name.
        columns = {
            _shape(key.parts[-1]) for key in keys if isinstance(key, Reference) and key.parts
        }
        self.names |= {
            _shape(Reference((name,), at)): name
            for item, name in zip(select.items, named, strict=True)
            if _looks(item.expression) and _shape(name) not in columns
        }
        qualify = None if select.qualify is None else self._of(select.qualify)
        order_by = self._of(select.order_by)
        inner = replace(
            select,
            items=tuple(self.items),
            group_by=keys,
            qualify=None,
            named_windows=(),
            order_by=(),
            limit=None,
        )
        source = tree.FromItem(Name("(GROUP BY)", at), Name("subquery", at), at, query=inner)
        return tree.Select(
            items, (source,), None, (), None, (), select.options, at,
            qualify=qualify, named_windows=over, order_by=order_by, limit=select.limit,
        )  # fmt: skip

    def _hidden(self, item: tree.SelectItem) -> bool:
        """Returns whether a new name is hidden by a column of the groups with the same name."""
        keys = [e for e in self.select.group_by if isinstance(e, Reference) and e.parts]
        named = any(_shape(e.parts[-1]) == _shape(item.alias) for e in keys)
        grouped = _shape(item.expression) in set(map(_shape, keys))
        return named and (grouped or _has_aggregates(item.expression))

    def _key(self, e: Expression) -> Expression:
        """Resolves a key of GROUP BY; a number refers to an item."""
        if (
            isinstance(e, Constant)
            and type(e.value) is int
            and 1 <= e.value <= len(self.select.items)
        ):
            return self.select.items[e.value - 1].expression
        return e

    def _add(self, e: Expression, name: Name) -> None:
        self.items.append(tree.SelectItem(e, name, e.span))
        self.names.setdefault(_shape(e), name)

    def _of(self, node: Any) -> Any:
        """Rewrites a node over the columns of the groups."""
        if isinstance(node, tuple):
            return tuple(map(self._of, node))
        if isinstance(node, tree.OverCall):
            call = replace(
                node.call, arguments=self._of(node.call.arguments), where=self._of(node.call.where)
            )
            over = node.window if isinstance(node.window, Name) else self._of(node.window)
            return replace(node, call=call, window=over)
        if isinstance(node, Expression):
            own = (isinstance(node, Reference) and not _is_time(node)) or _aggregates(node)
            if own and _shape(node) not in self.names:
                self._add(node, Name(f"(group {len(self.items) + 1})", node.span))
            if (name := self.names.get(_shape(node))) is not None:
                return Reference((replace(name, span=node.span),), node.span)
        elif not isinstance(node, tree.OverWindow | tree.OrderItem | tree.FrameClause):
            return node
        made: Any = node
        return replace(
            made, **{f.name: self._of(getattr(made, f.name)) for f in dataclasses.fields(made)}
        )


def _is_time(e: Reference) -> bool:
    """Returns whether a reference is the time of a group's row."""
    return len(e.parts) == 1 and e.parts[0].text.lower() in TIMESTAMP_NAMES


def _aggregates(e: Expression) -> bool:
    return isinstance(e, FunctionCall) and (e.name.lower() in _NAMES or periods.edge(e) is not None)


def _has_aggregates(node: Any) -> bool:
    own = isinstance(node, Expression) and _aggregates(node)
    return own or any(map(_has_aggregates, _parts(node)))


def _parts(node: Any) -> list[Any]:
    if isinstance(node, tuple):
        return list(node)
    known = isinstance(node, Expression | tree.OverWindow | tree.OrderItem | tree.FrameClause)
    return [getattr(node, f.name) for f in dataclasses.fields(node)] if known else []


def _looks(node: Any) -> bool:
    """Returns whether a node contains a function OVER something."""
    return isinstance(node, tree.OverCall) or any(map(_looks, _parts(node)))


def _shape(node: Any) -> Any:
    """Returns the form of a node without its places: equal for equal expressions."""
    if isinstance(node, Name):
        return node.text.lower()
    if isinstance(node, Span):
        return None
    parts = _parts(node)
    return (type(node).__name__, *map(_shape, parts)) if parts or isinstance(node, tuple) else node
