"""Attribute trees: the schema of a tuple as a nested list.

A node is a typed leaf or an untyped group, never both. The root's label is the stream's name.
Siblings have different labels; a child is found by label or by its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from seustream.compiler.apas.types import ERROR, NAMES, named, shown, widest
from seustream.compiler.language.types import Type

Path = tuple[str, ...]

RESERVED = ("ts", "te")
"""`$S.ts` and `$S.te` are the times of a tuple, so no child of a root may have these names."""

FIRST_ID = 2
"""The first id of a leaf: 0 is ts and 1 te."""


class SchemaRefused(ValueError):
    """A schema that no stream can have, and the reason."""


@dataclass(slots=True)
class Node:
    """One node; `type` is None for a group, `id` is the leaf's place in the tuple once it is laid
    out."""

    label: str
    type: Type | None = None
    id: int | None = None
    children: list[Node] = field(default_factory=list)

    def child(self, which: str | int) -> Node | None:
        if isinstance(which, int):
            return self.children[which] if 0 <= which < len(self.children) else None
        return next((c for c in self.children if c.label == which), None)

    def at(self, path: Sequence[str | int]) -> Node | None:
        node: Node | None = self
        for step in path:
            node = node.child(step) if node is not None else None
        return node

    def leaves(self, under: Path = ()) -> Iterator[tuple[Path, Node]]:
        """Yields every leaf with its path from here, in order."""
        if self.type is not None:
            yield under, self
        for child in self.children:
            yield from child.leaves((*under, child.label))

    def copy(self, label: str | None = None) -> Node:
        return Node(
            self.label if label is None else label,
            self.type,
            self.id,
            [child.copy() for child in self.children],
        )

    @property
    def paths(self) -> list[Path]:
        return [path for path, _ in self.leaves()]

    @property
    def types(self) -> list[Type]:
        return [leaf.type for _, leaf in self.leaves() if leaf.type is not None]

    def __str__(self) -> str:
        """Shows a tree as `I{name STRING, position{x DOUBLE, y DOUBLE}}`; ids, once assigned,
        follow the types."""
        if self.type is not None:
            number = "" if self.id is None else f" {self.id}"
            return f"{self.label} {shown(self.type)}{number}"
        return f"{self.label}{{{', '.join(map(str, self.children))}}}"


def leaf(label: str, type: Type) -> Node:
    return Node(label, type)


def group(label: str, *children: Node) -> Node:
    return Node(label, children=list(children))


def first_difference(a: Node, b: Node, under: Path = ()) -> str | None:
    """Returns where two schemas first differ below their roots. A failed type matches any other;
    types that APAS treats as one do not differ, whatever their width."""
    where = ".".join(under) or "the root"
    for one, other in zip(a.children, b.children, strict=False):
        if one.label != other.label:
            return f"under {where}: {one.label} against {other.label}"
        if _widest(one, other) is None and one.type is not other.type:
            names = [shown(each.type) for each in (one, other)]
            return f"{'.'.join((*under, one.label))}: {names[0]} against {names[1]}"
        if found := first_difference(one, other, (*under, one.label)):
            return found
    if len(a.children) != len(b.children):
        return f"under {where}: {len(a.children)} attributes against {len(b.children)}"
    return None


def joined(a: Node, b: Node, label: str) -> Node:
    """Returns the schema that covers the tuples of two schemas that do not differ."""
    children = [
        joined(one, other, one.label) for one, other in zip(a.children, b.children, strict=True)
    ]
    return Node(label, _widest(a, b), children=children)


def _widest(a: Node, b: Node) -> Type | None:
    if ERROR in (a.type, b.type):
        return ERROR
    return None if a.type is None or b.type is None else widest(a.type, b.type)


# --- as nested lists ----------------------------------------------------------


def from_lists(label: str, lists: object) -> Node:
    """Builds a schema from `[label, type]` and `[label, [children]]`; refuses one that no stream
    can have."""
    root = Node(label, children=_children(lists, (), 0))
    taken = [child.label for child in root.children if child.label in RESERVED]
    if taken:
        raise SchemaRefused(f"{taken[0]} is reserved: $S.{taken[0]} is the time of a tuple")
    return root


def to_lists(node: Node) -> list[Any]:
    return [[c.label, shown(c.type) if c.type is not None else to_lists(c)] for c in node.children]


def _children(lists: object, under: Path, depth: int) -> list[Node]:
    where = ".".join(under) or "the root"
    if not isinstance(lists, list | tuple) or depth > 200:
        raise SchemaRefused(f"under {where}: want a list of [label, type] or [label, [children]]")
    found: list[Node] = []
    for entry in lists:
        if not isinstance(entry, list | tuple) or len(entry) != 2:
            raise SchemaRefused(f"under {where}: {entry!r} is neither [label, type] nor a group")
        label, what = entry
        if not isinstance(label, str) or not label.isidentifier() or not label.isascii():
            what = f"{label!r} is no label, which has only letters, digits and underscores"
            raise SchemaRefused(f"under {where}: {what}")
        if any(label == other.label for other in found):
            raise SchemaRefused(f"under {where}: two attributes {label}")
        path = (*under, label)
        if isinstance(what, str):
            of = named(what)
            if of is None:
                names = ", ".join((*NAMES, "DECIMAL(p,s)"))
                raise SchemaRefused(f"{'.'.join(path)}: there is no type {what!r}; types: {names}")
            found.append(Node(label, of))
        else:
            found.append(Node(label, children=_children(what, path, depth + 1)))
    return found
