"""The symbol table: the streams that a query knows, and their schemas as the query sees them.

A catalogue stream's schema is copied, with its version, when the query first refers to it, so that
the two can be compared at the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from seustream.compiler.apas.tree import Node, Path
from seustream.compiler.errors import nearest, suggest


@dataclass(frozen=True, slots=True)
class Schema:
    """A catalogue stream as the compiler sees it. Version 0 is a name to which no source has
    connected yet: its tree is empty."""

    tree: Node
    version: int = 1

    @property
    def connected(self) -> bool:
        return self.version > 0


@dataclass(frozen=True, slots=True)
class Symbol:
    """A named stream, from the catalogue (`schema`) or an earlier definition (`number`)."""

    name: str
    tree: Node
    schema: Schema | None = None
    number: int | None = None


@dataclass(slots=True)
class Symbols:
    catalogue: Mapping[str, Schema]
    local: dict[str, Symbol] = field(default_factory=dict)
    met: dict[str, Schema] = field(default_factory=dict)

    def find(self, name: str) -> Symbol | None:
        """Returns the stream of this name; a local one hides one of the catalogue."""
        if name in self.local:
            return self.local[name]
        if name not in self.catalogue:
            return None
        schema = self.met.get(name)
        if schema is None:
            now = self.catalogue[name]
            schema = self.met[name] = Schema(now.tree.copy(name), now.version)
        return Symbol(name, schema.tree, schema)

    @property
    def names(self) -> list[str]:
        return [*self.local, *(n for n in self.catalogue if n not in self.local)]


def attribute_hint(tree: Node, path: Path, shown: str) -> str:
    """Suggests, for a path that leads nowhere, the nearest label at the point where it goes wrong."""
    node = tree
    for place, label in enumerate(path):
        below = node.child(label)
        if below is None:
            known = [child.label for child in node.children]
            close = nearest(label, known)
            if close is not None:
                return f"did you mean {'.'.join((shown, *path[:place], close))}?"
            where = ".".join((shown, *path[:place]))
            return suggest(label, known, f"attributes of {where}") if known else f"{where} has none"
        node = below
    return f"{shown} is a group"
