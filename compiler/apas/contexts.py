"""Contexts, and the resolution of a name that is read in one.

A context is a structure and a path in it. A relative name is resolved in the nearest enclosing
bracket, a rooted one in an input or in the result under construction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from seustream.compiler.apas import expressions as x
from seustream.compiler.apas import syntax as s
from seustream.compiler.apas.layout import Structure
from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.apas.symbols import attribute_hint
from seustream.compiler.apas.tree import RESERVED, Node, Path
from seustream.compiler.apas.types import DATETIME, ERROR
from seustream.compiler.errors import Problems, Span
from seustream.compiler.language.bind import FAILED
from seustream.compiler.language.expressions import Expression

Find = Callable[[str, Span], "tuple[str, Node, bool] | None"]
"""Looks up an input by its name here. Gives its canonical name, its tree, and whether a source is
connected; None if there is no such input, which is then already reported."""


@dataclass(frozen=True, slots=True)
class AttributeContext:
    name: str
    structure: Structure
    path: Path = ()

    @property
    def node(self) -> Node | None:
        return self.structure.tree.at(self.path)

    def below(self, path: Path) -> AttributeContext:
        return AttributeContext(self.name, self.structure, (*self.path, *path))


@dataclass
class ContextReader:
    """Holds the state of one subquery under construction, and reads in it. `find` looks inputs up;
    `name` is the target's, if one is under construction."""

    problems: Problems
    libraries: Libraries
    find: Find
    name: str | None = None
    streams: Sequence[str] = ()  # all streams that could be inputs
    steps: list[x.Step] = field(default_factory=list)
    partials: list[x.PartialAggregate] = field(default_factory=list)
    structures: dict[str, Structure] = field(default_factory=dict)
    bare_reads: list[tuple[str, Span]] = field(default_factory=list)  # outside aggregates
    unconnected: set[str] = field(default_factory=set)
    within: str = "select"
    _chain: Structure | None = None  # the last temporary of the expression being compiled
    _in_aggregate: bool = False

    def _location(
        self, names: s.Names, absolute: bool, at: AttributeContext | None
    ) -> AttributeContext | None:
        """Returns the context that a path leads to; reports a path that leads nowhere and returns
        None."""
        base = self._base(names) if absolute else at
        path = names.parts[1:] if absolute else names.parts
        if base is None:
            if not absolute:
                hint = "attributes of streams are written $stream.attribute"
                message = f"there is no {names} here"
                self.problems.add("UnknownAttribute", message, names.span, hint)
            return None
        if self._in_aggregate and base.name == self.name:
            self.problems.add(
                "AggregateArgument",
                f"an aggregate cannot read ${self.name}, which is made of its results",
                names.span,
                "read the stream it aggregates",
            )
            return None
        place = base.below(path)
        if absolute and path and path[0] in RESERVED and len(path) == 1:
            return place
        if place.node is not None:
            return place
        self._unknown(base, path, names, absolute)
        return None

    def _base(self, names: s.Names) -> AttributeContext | None:
        root = names.parts[0]
        if root == self.name:
            return AttributeContext(root, self.structures[root])
        found = self.find(root, names.span)
        if found is None:
            return None
        name, tree, connected = found
        if not connected:
            self.unconnected.add(name)
        if not connected and len(names.parts) > 1:
            self.problems.add(
                "UnknownAttribute", f"${root} has no attributes", names.span, "source not connected"
            )
            return None
        if not self._in_aggregate:
            self.bare_reads.append((str(names), names.span))
        return AttributeContext(name, Structure(tree))

    def _unknown(self, base: AttributeContext, path: Path, names: s.Names, absolute: bool) -> None:
        outer = self.structures.get(self.name or "")
        tree = base.node
        hint = None
        if not absolute and outer is not None and outer.tree.at(path) is not None:
            hint = f"names are found in the nearest bracket; the outer one is ${self.name}.{names}"
        elif tree is not None:
            hint = attribute_hint(tree, path, self._shown(base) if absolute else "this bracket")
            hint = hint.replace("this bracket.", "")
        if base.name == self.name and base.name in self.streams:
            message = f"{base.name} is the result here, the stream {base.name} cannot be read"
            hint = "give the result another name than its input"
            self.problems.add("NameConflict", message, names.span, hint)
            return
        if absolute and base.name not in self.structures and not base.structure.tree.children:
            return  # a definition that failed, already reported
        what = f"${names}" if absolute else str(names)
        self.problems.add("UnknownAttribute", f"there is no attribute {what}", names.span, hint)

    def _read(
        self, names: s.Names, absolute: bool, at: AttributeContext | None, span: Span
    ) -> Expression:
        place = self._location(names, absolute, at)
        if place is None:
            return FAILED
        if absolute and len(place.path) == 1 and place.path[0] in RESERVED:
            return x.LeafRead((place.name, place.path), DATETIME)
        node = place.node
        assert node is not None
        if node.type is None:
            what = self._shown(place)
            self.problems.add(
                "UntypedAttribute",
                f"{what} is a group, not a value",
                span,
                f"name one of its attributes, or copy it: a[{what}[T]]",
            )
            return FAILED
        return x.LeafRead((place.name, place.path), node.type) if node.type != ERROR else FAILED

    def _shown(self, at: AttributeContext) -> str:
        return x.show_place((at.name, at.path))
