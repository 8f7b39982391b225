"""Splits a select at its aggregate calls: section 7 of StreamAPAS.

Phase 1, the aggregation node, computes partial aggregates; phase 2, its map, computes everything above
them. For `a = agg.avg($I.val + 1.0), b = (agg.min($I.val) + agg.max($I.val)) / 2` the phases are:

    $1 = avg(…), $2 = min(…), $3 = max(…)        phase 1, partials
    a = $1.val, b = ($2.val + $3.val) / 2        phase 2, steps

The builder has already replaced the calls with reads of `$i.*`. Here each `$i` leaves the select's
hierarchy, all of them become one tree, ATREE, and whatever their arguments use is placed above it.
"""

from __future__ import annotations

from dataclasses import dataclass

from seustream.compiler.apas.expressions import PartialAggregate, Place
from seustream.compiler.apas.layout import Structure, lay_out
from seustream.compiler.apas.tree import FIRST_ID, Node


@dataclass(frozen=True, slots=True)
class StateLayout:
    """Holds the place of every leaf of a hierarchy. `width` is the length of a clean tuple,
    `length` its length with temporaries."""

    root: Structure
    slots: dict[Place, int]
    width: int
    length: int


def laid_out(root: Structure, wanted: set[Place] | None = None) -> StateLayout:
    """Numbers a copy of a hierarchy, with only the wanted leaves of its root."""
    label = root.tree.label
    tree = root.tree.copy()
    if wanted is not None:
        tree = pruned(tree, {path for structure, path in wanted if structure == label})
    fresh = Structure(tree, [_copied(child) for child in root.children])
    length = lay_out(fresh)
    return StateLayout(fresh, _slots(fresh), FIRST_ID + len(tree.paths), length)


def phase_1(root: Structure, partials: tuple[PartialAggregate, ...]) -> StateLayout:
    """Lays out the aggregation node's tuple (algorithm 5). Partial results live together, so they
    are groups of one tree; the structures that their arguments use are that tree's children in the
    hierarchy."""
    of = {partial.structure for partial in partials}
    found = [each for each in _all(root) if each.tree.label in of]
    atree = Node("", children=[each.tree.copy() for each in found])
    hroot = Structure(atree, [_copied(child) for each in found for child in each.children])
    length = lay_out(hroot)
    slots = {(path[0], path[1:]): leaf.id for path, leaf in atree.leaves() if leaf.id is not None}
    for child in hroot.children:
        slots |= _slots(child)
    return StateLayout(hroot, slots, FIRST_ID + len(atree.paths), length)


def phase_2(root: Structure, partials: tuple[PartialAggregate, ...]) -> Structure:
    """Returns the select's hierarchy without the partial results."""
    of = {partial.structure for partial in partials}
    kept = [phase_2(child, partials) for child in root.children if child.tree.label not in of]
    return Structure(root.tree, kept)


def pruned(node: Node, paths: set[tuple[str, ...]]) -> Node:
    """Returns the tree reduced to these leaves and the groups that contain them."""
    children = []
    for child in node.children:
        below = {path[1:] for path in paths if path and path[0] == child.label}
        if child.type is not None and () in below:
            children.append(child.copy())
        elif child.type is None and below:
            children.append(pruned(child, below))
    return Node(node.label, node.type, node.id, children)


def _copied(structure: Structure) -> Structure:
    return Structure(structure.tree.copy(), [_copied(child) for child in structure.children])


def _all(structure: Structure) -> list[Structure]:
    return [structure, *(each for child in structure.children for each in _all(child))]


def _slots(structure: Structure) -> dict[Place, int]:
    found = {}
    for each in _all(structure):
        for path, leaf in each.tree.leaves():
            if leaf.id is not None:
                found[each.tree.label, path] = leaf.id
    return found
