"""Writes facts as text: one writer for every stage of every language.

A fact is a record, a tuple of records, or a tree. Records with `COLUMNS`, which pair headings with
attributes or with functions of a record, are the rows of a table. Every other record is a block:
its `title`, its `labelled` lines, and below them the attributes that `BELOW` names, with captions,
or `SECTIONS`, with rules. A third member of an entry gives the columns for the rows there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from seustream.compiler.explain.marks import WIDTH, branches, clip, hanging, section, table

Columns = Sequence[tuple[str, str | Callable[[Any], object]]]


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A node of a syntax tree; `role` is what it is to its parent, `text` its own words."""

    line: int
    column: int
    role: str
    kind: str
    text: str
    children: tuple[TreeNode, ...]

    @property
    def place(self) -> str:
        return f"{self.line}:{self.column}"

    @property
    def words(self) -> str:
        return f"{self.role and self.role + ': '}{self.kind} {self.text}".rstrip()


@dataclass(frozen=True, slots=True)
class NamedLines:
    """Labelled lines under a title, for facts that have no record of their own."""

    title: str
    labelled: tuple[tuple[str, str], ...]


def write(fact: Any, columns: Columns | None = None) -> list[str]:
    """Returns a fact as lines of at most `WIDTH` columns. `columns` overrides the columns of rows."""
    if not isinstance(fact, tuple):
        return _block(fact)
    if not fact:
        return []
    if isinstance(fact[0], TreeNode):
        return _trees(fact)
    if columns := columns or getattr(fact[0], "COLUMNS", None):
        rows = [[cell(one, what) for _, what in columns] for one in fact]
        return table([heading for heading, _ in columns], rows)
    return [line for one in fact for line in (*_block(one), "")][:-1]


def cell(one: object, what: str | Callable[[Any], object]) -> str:
    """Returns the text of a record in a column."""
    value = getattr(one, what) if isinstance(what, str) else what(one)
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _block(fact: Any) -> list[str]:
    title, pairs = getattr(fact, "title", ""), list(getattr(fact, "labelled", ()))
    lines = hanging("", title, indent=0) if title else []
    labels = max((len(label) for label, _ in pairs), default=0)
    for label, text in pairs:
        lines += hanging(f"{label:<{labels}}  " if labels else "", text)
    for caption, name, *columns in getattr(fact, "BELOW", ()):
        if found := write(getattr(fact, name), *columns):
            lines += [""] if lines and (caption or lines[1:]) else []
            lines += [caption, *found] if caption else found
    for caption, name, *columns in getattr(fact, "SECTIONS", ()):
        if found := write(getattr(fact, name), *columns):
            lines += [""] if lines and lines[-1] else []
            lines += section(caption, found)
    return lines[:-1] if lines and not lines[-1] else lines


def _trees(roots: tuple[TreeNode, ...]) -> list[str]:
    """Stacks trees, each node preceded by its place in the text."""
    lines: list[str] = []
    for root in roots:
        rows = list(_rows(root, 0))
        places = [node.place for _, node in rows]
        width = max(map(len, places))
        leads = branches([depth for depth, _ in rows])
        for place, lead, (_, node) in zip(places, leads, rows, strict=True):
            before = f"{place:>{width}}  " if width else ""
            lines.append(clip(f"{before}{lead}{node.words}", WIDTH - 2))
        lines += [""] if width else []
    return lines[:-1] if lines and not lines[-1] else lines


def _rows(node: TreeNode, depth: int) -> Iterator[tuple[int, TreeNode]]:
    yield depth, node
    for child in node.children:
        yield from _rows(child, depth + 1)


def plain(facts: object) -> object:
    """Returns records as dictionaries for JSON, anything else unchanged."""
    if dataclasses.is_dataclass(facts) and not isinstance(facts, type):
        return {f.name: plain(getattr(facts, f.name)) for f in dataclasses.fields(facts)}
    if isinstance(facts, (tuple, list)):
        return [plain(part) for part in facts]
    return facts
