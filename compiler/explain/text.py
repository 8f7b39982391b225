"""Facts as text: one writer for every stage of every language.

A fact is a record, a tuple of records, or a tree. Records with `COLUMNS`, which pair headings with
attributes, are the rows of a table. Every other record is a block: its `title`, its `labelled` lines,
and below them the attributes that `BELOW` names, with captions, or `SECTIONS`, with rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from seustream.compiler.explain.marks import WIDTH, branches, clip, hanging, section, table


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
    """Labelled lines under a title, of what has no record of its own."""

    title: str
    labelled: tuple[tuple[str, str], ...]


def write(fact: Any) -> list[str]:
    """A fact as lines of at most `WIDTH` columns."""
    if not isinstance(fact, tuple):
        return _block(fact)
    if not fact:
        return []
    if isinstance(fact[0], TreeNode):
        return _trees(fact)
    if columns := getattr(fact[0], "COLUMNS", None):
        rows = [[_cell(getattr(one, name)) for _, name in columns] for one in fact]
        return table([heading for heading, _ in columns], rows)
    return [line for one in fact for line in (*_block(one), "")][:-1]


def _cell(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _block(fact: Any) -> list[str]:
    title, pairs = getattr(fact, "title", ""), list(getattr(fact, "labelled", ()))
    lines = hanging("", title, indent=0) if title else []
    labels = max((len(label) for label, _ in pairs), default=0)
    for label, text in pairs:
        lines += hanging(f"{label:<{labels}}  " if labels else "", text)
    for caption, name in getattr(fact, "BELOW", ()):
        if found := write(getattr(fact, name)):
            lines += [""] if lines and (caption or lines[1:]) else []
            lines += [caption, *found] if caption else found
    for caption, name in getattr(fact, "SECTIONS", ()):
        if found := write(getattr(fact, name)):
            lines += [""] if lines and lines[-1] else []
            lines += section(caption, found)
    return lines[:-1] if lines and not lines[-1] else lines


def _trees(roots: tuple[TreeNode, ...]) -> list[str]:
    """One tree below the other, each node after its place in the text."""
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
