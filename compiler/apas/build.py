"""Builds what a target's brackets assign, on a stack of contexts, and checks types on the way.

`path =` and `path [` descend; a bracket without a path opens a temporary structure, named by the
next number. The full name of each attribute is therefore known when it is assigned.
"""

from __future__ import annotations

from dataclasses import dataclass

from seustream.compiler.apas import expressions as x
from seustream.compiler.apas import syntax as s
from seustream.compiler.apas.contexts import AttributeContext
from seustream.compiler.apas.layout import Structure
from seustream.compiler.apas.scope import Expressions
from seustream.compiler.apas.symbols import attribute_hint
from seustream.compiler.apas.tree import RESERVED, Node, Path, leaf
from seustream.compiler.apas.types import ERROR, settled, shown
from seustream.compiler.errors import Span
from seustream.compiler.language.bind import FAILED
from seustream.compiler.language.expressions import Expression


@dataclass
class Builder(Expressions):
    """Builds the assignments of one subquery."""

    def target(self, name: str, items: tuple[s.Item, ...]) -> Structure:
        self.name = name
        root = self.structures[name] = Structure(Node(name))
        self.level(items, AttributeContext(name, root))
        return root

    def level(self, items: tuple[s.Item, ...], at: AttributeContext) -> None:
        for item in items:
            match item:
                case s.Assignment(path=path, value=value):
                    self._assignment(at, path, value)
                case s.Inner(path=path, level=level):
                    below = at.below(path.parts)
                    if self._group(below, path.span):
                        self.level(level.items, below)
                case s.Level():
                    self._copy_children(self._temporary(item, at.structure), at, item.span)
                case s.Copy():
                    self._copy(item, at, at)

    def _assignment(self, at: AttributeContext, path: s.Names, value: s.Expression) -> None:
        into = at.below(path.parts)
        if isinstance(value, s.Level):
            source = self._temporary(value, at.structure)
            if self._group(into, path.span):
                self._copy_children(source, into, path.span)
            return
        self._chain = None
        typed = self.value(value, at, tree=True)
        if isinstance(typed, AttributeContext):
            if self._group(into, path.span):
                self._copy_children(typed, into, path.span)
        else:
            self._set(into, typed, path.span)
        self._chain = None

    def _temporary(self, level: s.Level, parent: Structure) -> AttributeContext:
        """Builds a bracket without a path as a structure of its own."""
        temporary = self._open(parent)
        kept, self._chain = self._chain, None
        self.level(level.items, temporary)
        self._chain = kept
        return temporary

    def _open(self, parent: Structure) -> AttributeContext:
        number = 1 + sum(name.isdigit() for name in self.structures)
        name = str(number)
        structure = self.structures[name] = Structure(Node(name))
        parent.children.append(structure)
        return AttributeContext(name, structure)

    def _copy(self, copy: s.Copy, at: AttributeContext, into: AttributeContext) -> None:
        """Copies the children of places into a context: `$S[T]`, `$S[a[T], b.T]`, `a.T`."""
        source = self._location(copy.root, copy.absolute, at)
        if source is None:
            # The copied attributes are unknown, so further errors at this level would be noise.
            return
        for pick in copy.picks:
            place = source.below(pick.parts)
            node = place.node
            shown = self._shown(source)
            if node is None:
                message = f"{shown} has no attribute {pick}"
                hint = attribute_hint(source.structure.tree, place.path, f"${source.name}")
                self.problems.add("UnknownAttribute", message, pick.span, hint)
            elif node.type is not None:
                self._set(
                    into.below((node.label,)),
                    x.LeafRead((place.name, place.path), node.type),
                    pick.span,
                )
            elif not node.children:
                self._nothing_to_copy(place, pick.span)
            else:
                self._copy_children(place, into, pick.span)

    def _nothing_to_copy(self, place: AttributeContext, span: Span) -> None:
        if place.name in self.unconnected:
            hint = "source not connected"
        elif place.name == self.name or place.name.isdigit():
            hint = "nothing is in it yet"
        else:
            return  # a definition that failed, already reported
        message = f"{self._shown(place)} has no attributes to copy"
        self.problems.add("UnknownAttribute", message, span, hint)

    def _copy_children(self, source: AttributeContext, into: AttributeContext, span: Span) -> None:
        node = source.node
        if node is None:
            return
        for path, one in list(
            node.leaves()
        ):  # before it has the copies, if they go into the same tree
            assert one.type is not None
            read = x.LeafRead((source.name, (*source.path, *path)), one.type)
            self._set(into.below(path), read if one.type != ERROR else FAILED, span)

    # --- attributes -----------------------------------------------------------

    def _group(self, at: AttributeContext, span: Span) -> bool:
        """Creates the groups on the path to a context; returns False if a leaf is in the way."""
        node = at.structure.tree
        for place, label in enumerate(at.path):
            if not self._allowed(at, at.path[: place + 1], span):
                return False
            below = node.child(label)
            if below is None:
                below = Node(label)
                node.children.append(below)
            if below.type is not None:
                if below.type != ERROR:
                    name = ".".join(at.path[: place + 1])
                    message = f"{name} is {shown(below.type)}, here it is a group"
                    self.problems.add(
                        "TypeRedefined", message, span, "give one of them another name"
                    )
                return False
            node = below
        return True

    def _set(self, at: AttributeContext, value: Expression, span: Span) -> None:
        *above, label = at.path
        value = x.converted(value, settled(value.type)) if value.type != ERROR else value
        name = ".".join(at.path)
        if not self._group(AttributeContext(at.name, at.structure, tuple(above)), span):
            return
        if not self._allowed(at, at.path, span):
            return
        parent = at.structure.tree.at(above)
        assert parent is not None
        node = parent.child(label)
        if node is None:
            parent.children.append(leaf(label, value.type))
        elif node.type is None:
            message = f"{name} is a group, here it is {shown(value.type)}"
            self.problems.add("TypeRedefined", message, span, "give one of them another name")
            return
        elif ERROR in (node.type, value.type):
            node.type = ERROR
        elif node.type != value.type:
            message = f"{name} is {shown(node.type)}, here it is {shown(value.type)}"
            self.problems.add(
                "TypeRedefined", message, span, "the first assignment decides the type"
            )
            return
        if value.type != ERROR:
            self.steps.append(x.Assign((at.name, at.path), value))

    def _allowed(self, at: AttributeContext, path: Path, span: Span) -> bool:
        if at.name == self.name and len(path) == 1 and path[0] in RESERVED:
            message = f"{path[0]} is the time of a tuple"
            self.problems.add("ReservedName", message, span, f"read it as ${at.name}.{path[0]}")
            return False
        return True
