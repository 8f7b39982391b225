"""Places the leaves of trees in a tuple: Algorithms 2 and 3 of StreamAPAS.

Temporaries lie above the ids of the result, so a tuple is cleaned by cutting it off. A structure
used while another is computed is that one's child in the hierarchy; siblings are never alive
together and share a pool.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from seustream.compiler.apas.tree import FIRST_ID, Node


@dataclass(slots=True)
class Structure:
    """A tree under construction, and the structures that are used while it is computed."""

    tree: Node
    children: list[Structure] = field(default_factory=list)


def assign(start: int, node: Node) -> int:
    """Numbers the leaves below a node in preorder (Algorithm 2); returns the next free id."""
    for child in node.children:
        if child.type is not None:
            child.id = start
            start += 1
        start = assign(start, child)
    return start


def number(start: int, structure: Structure) -> int:
    """Numbers a hierarchy (Algorithm 3); returns the length of the tuple it needs."""
    end = top = assign(start, structure.tree)
    for child in structure.children:
        top = max(top, number(end, child))
    return top


def lay_out(structure: Structure) -> int:
    """Numbers a hierarchy after ts and te."""
    return number(FIRST_ID, structure)
