"""The context stack: what a target's brackets assign, with types checked on the way.

A context is a structure and a path in it. `path =` and `path [` go deeper; a bracket without a path
opens a temporary structure, named by the next number. So the full name of each attribute is known
when it is assigned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from compiler.apas import expressions as x
from compiler.apas import syntax as s
from compiler.apas.functions import (
    Aggregate,
    Argument,
    BadArgument,
    Bound,
    Libraries,
    StreamFunction,
)
from compiler.apas.layout import Structure
from compiler.apas.parse import too_large
from compiler.apas.symbols import attribute_hint
from compiler.apas.tree import RESERVED, Node, Path, leaf
from compiler.apas.types import BOOLEAN, DATETIME, DOUBLE, ERROR, INTEGER, Type, computation
from compiler.apas.values import NoValue
from compiler.errors import Problems, Span, nearest, suggest

FAILED = x.Constant(None, ERROR)
"""Stands for an expression that was reported; silences what follows from it."""

Find = Callable[[str, Span], "tuple[str, Node, bool] | None"]
"""An input by its name here: the name it goes by, its tree, and whether a source is connected;
None if there is none, already reported."""


@dataclass(frozen=True, slots=True)
class Context:
    name: str
    structure: Structure
    path: Path = ()

    @property
    def node(self) -> Node | None:
        return self.structure.tree.at(self.path)

    def below(self, path: Path) -> Context:
        return Context(self.name, self.structure, (*self.path, *path))


@dataclass
class Builder:
    """Assignments of one subquery. `find` looks inputs up, `target` is the structure under
    construction, if one is."""

    problems: Problems
    libraries: Libraries
    find: Find
    name: str | None = None
    streams: Sequence[str] = ()  # all that could be inputs
    steps: list[x.Step] = field(default_factory=list)
    partials: list[x.Partial] = field(default_factory=list)
    structures: dict[str, Structure] = field(default_factory=dict)
    bare_reads: list[tuple[str, Span]] = field(default_factory=list)  # outside aggregates
    unconnected: set[str] = field(default_factory=set)
    within: str = "select"
    _chain: Structure | None = None  # the last temporary of the expression being compiled
    _in_aggregate: bool = False

    # --- brackets -------------------------------------------------------------

    def target(self, name: str, items: tuple[s.Item, ...]) -> Structure:
        self.name = name
        root = self.structures[name] = Structure(Node(name))
        self.level(items, Context(name, root))
        return root

    def level(self, items: tuple[s.Item, ...], at: Context) -> None:
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

    def _assignment(self, at: Context, path: s.Names, value: s.Expression | s.Level) -> None:
        into = at.below(path.parts)
        if isinstance(value, s.Level):
            source = self._temporary(value, at.structure)
            if self._group(into, path.span):
                self._copy_children(source, into, path.span)
            return
        self._chain = None
        typed = self.value(value, at, tree=True)
        if isinstance(typed, Context):
            if self._group(into, path.span):
                self._copy_children(typed, into, path.span)
        else:
            self._set(into, typed, path.span)
        self._chain = None

    def _temporary(self, level: s.Level, parent: Structure) -> Context:
        """A bracket without a path, as a structure of its own."""
        temporary = self._open(parent)
        kept, self._chain = self._chain, None
        self.level(level.items, temporary)
        self._chain = kept
        return temporary

    def _open(self, parent: Structure) -> Context:
        number = 1 + sum(name.isdigit() for name in self.structures)
        name = str(number)
        structure = self.structures[name] = Structure(Node(name))
        parent.children.append(structure)
        return Context(name, structure)

    def _copy(self, copy: s.Copy, at: Context, into: Context) -> None:
        """`$S[T]`, `$S[a[T], b.T]`, `a.T`: children of places into a context."""
        source = self._location(copy.root, copy.absolute, at)
        if source is None:
            # What would have been copied is unknown, so nothing more is said of this level.
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
                    x.Read((place.name, place.path), node.type),
                    pick.span,
                )
            elif not node.children:
                self._nothing_to_copy(place, pick.span)
            else:
                self._copy_children(place, into, pick.span)

    def _nothing_to_copy(self, place: Context, span: Span) -> None:
        if place.name in self.unconnected:
            hint = "source not connected"
        elif place.name == self.name or place.name.isdigit():
            hint = "nothing is in it yet"
        else:
            return  # a definition that failed, already reported
        message = f"{self._shown(place)} has no attributes to copy"
        self.problems.add("UnknownAttribute", message, span, hint)

    def _copy_children(self, source: Context, into: Context, span: Span) -> None:
        node = source.node
        if node is None:
            return
        for path, one in node.leaves():
            assert one.type is not None
            read = x.Read((source.name, (*source.path, *path)), one.type)
            self._set(into.below(path), read if one.type is not ERROR else FAILED, span)

    # --- attributes -----------------------------------------------------------

    def _group(self, at: Context, span: Span) -> bool:
        """Makes the groups on the way to a context; False if a leaf stands there."""
        node = at.structure.tree
        for place, label in enumerate(at.path):
            if not self._allowed(at, at.path[: place + 1], span):
                return False
            below = node.child(label)
            if below is None:
                below = Node(label)
                node.children.append(below)
            if below.type is not None:
                if below.type is not ERROR:
                    name = ".".join(at.path[: place + 1])
                    message = f"{name} is {below.type.value}, here it is a group"
                    self.problems.add(
                        "TypeRedefined", message, span, "give one of them another name"
                    )
                return False
            node = below
        return True

    def _set(self, at: Context, value: x.Expression, span: Span) -> None:
        *above, label = at.path
        name = ".".join(at.path)
        if not self._group(Context(at.name, at.structure, tuple(above)), span):
            return
        if not self._allowed(at, at.path, span):
            return
        parent = at.structure.tree.at(above)
        assert parent is not None
        node = parent.child(label)
        if node is None:
            parent.children.append(leaf(label, value.type))
        elif node.type is None:
            message = f"{name} is a group, here it is {value.type.value}"
            self.problems.add("TypeRedefined", message, span, "give one of them another name")
            return
        elif ERROR in (node.type, value.type):
            node.type = ERROR
        elif node.type is not value.type:
            message = f"{name} is {node.type.value}, here it is {value.type.value}"
            self.problems.add(
                "TypeRedefined", message, span, "the first assignment decides the type"
            )
            return
        if value.type is not ERROR:
            self.steps.append(x.Assign((at.name, at.path), value))

    def _allowed(self, at: Context, path: Path, span: Span) -> bool:
        if at.name == self.name and len(path) == 1 and path[0] in RESERVED:
            message = f"{path[0]} is the time of a tuple"
            self.problems.add("ReservedName", message, span, f"read it as ${at.name}.{path[0]}")
            return False
        return True

    def _shown(self, at: Context) -> str:
        return x.show_place((at.name, at.path))

    # --- reading --------------------------------------------------------------

    def _location(self, names: s.Names, absolute: bool, at: Context | None) -> Context | None:
        """Where a path leads, None if nowhere, which is reported."""
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

    def _base(self, names: s.Names) -> Context | None:
        root = names.parts[0]
        if root == self.name:
            return Context(root, self.structures[root])
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
        return Context(name, Structure(tree))

    def _unknown(self, base: Context, path: Path, names: s.Names, absolute: bool) -> None:
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

    def _read(self, names: s.Names, absolute: bool, at: Context | None, span: Span) -> x.Expression:
        place = self._location(names, absolute, at)
        if place is None:
            return FAILED
        if absolute and len(place.path) == 1 and place.path[0] in RESERVED:
            return x.Read((place.name, place.path), DATETIME)
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
        return x.Read((place.name, place.path), node.type) if node.type is not ERROR else FAILED

    # --- expressions ----------------------------------------------------------

    def expression(self, e: s.Expression, at: Context | None) -> x.Expression:
        """One value."""
        found = self.value(e, at, tree=False)
        assert not isinstance(found, Context)
        return found

    def value(self, e: s.Expression, at: Context | None, tree: bool) -> x.Expression | Context:
        """A value or, where `tree` allows it, the structure a function's tree went to."""
        match e:
            case s.Literal(value=value, type=type):
                if too_large(e):
                    message = f"{e.span.end - e.span.start} digits are no INTEGER of 64 bits"
                    self.problems.add("BadLiteral", message, e.span, "write it as a DOUBLE: 1.0e19")
                    return FAILED
                return x.Constant(value, type)
            case s.Relative(path=path):
                return self._read(path, False, at, e.span)
            case s.Rooted(path=path):
                return self._read(path, True, at, e.span)
            case s.Prefix(operator="+", argument=argument):
                inside = self.expression(argument, at)
                if inside.type in (INTEGER, DOUBLE, ERROR):
                    return inside
                return self._operate("+", "negate", (inside,), e.span)
            case s.Prefix(operator=operator, argument=argument):
                name = "negate" if operator == "-" else operator
                return self._operate(operator, name, (self.expression(argument, at),), e.span)
            case s.Binary(operator=operator, left=left, right=right):
                # An unbroken line of operators is walked, not recursed into.
                return self._operate(
                    operator,
                    operator,
                    (self.expression(left, at), self.expression(right, at)),
                    e.operator_span,
                )
            case s.Call():
                return self._call(e, at, tree)

    def _operate(
        self, shown: str, name: str, arguments: tuple[x.Expression, ...], span: Span
    ) -> x.Expression:
        """Algorithm 4."""
        if any(argument.type is ERROR for argument in arguments):
            return FAILED
        types = tuple(argument.type for argument in arguments)
        found = computation(name, types)
        if found is None:
            self._no_operator(shown, [each.value for each in types], span)
            return FAILED
        ct, result = found
        cast = tuple(a if a.type is ct else x.Cast(a, ct) for a in arguments)
        return x.Operate(name, ct, cast, result)

    def _no_operator(self, shown: str, types: list[str], span: Span) -> None:
        hint = None
        if shown == "!=" and set(types) == {"BOOLEAN"}:
            hint = "BOOLEANs differ where a XOR b"
        elif "DATETIME" in types and shown in "+-*/":
            hint = "util.millis(t) gives a DATETIME as DOUBLE milliseconds"
        elif shown in ("AND", "OR", "XOR", "NOT"):
            hint = "it takes BOOLEANs, or INTEGERs bit by bit"
        given = " and ".join(types)
        self.problems.add("NoOperator", f"there is no {shown} of {given}", span, hint)

    # --- calls ----------------------------------------------------------------

    def _call(self, e: s.Call, at: Context | None, tree: bool) -> x.Expression | Context:
        function = self.libraries.find(e.function.parts)
        name = str(e.function)
        if function is None:
            known = self.libraries.names
            hint = suggest(name, known, "functions")
            same = [full for full in known if full.split(".")[1] == name]
            close = nearest(name, known)
            if (same and close is None) or (len(e.function.parts) == 1 and same):
                hint = f"did you mean {same[0]}?"
            self.problems.add(
                "UnknownFunction", f"there is no function {name}", e.function.span, hint
            )
            return FAILED
        if isinstance(function, StreamFunction):
            hint = "where window.range($S, 10) select O[…]"
            message = f"{name} changes a stream, it has no value"
            self.problems.add(
                "BadArgument", message, e.span, f"it stands by itself in where: {hint}"
            )
            return FAILED
        if isinstance(function, Aggregate):
            return self._aggregate(e, name, function, at, tree)
        found = self._arguments(e, name, function.bind, at, self._parent(at))
        if found is None:
            return FAILED
        bound, arguments, before = found
        if bound.scalar is not None:
            return x.Invoke(bound, arguments, before, bound.scalar, name)
        result = self._result(bound, self._parent(at))
        self.steps.append(
            x.AssignTree(result.name, tuple(bound.result.paths), bound, arguments, before, name)
        )
        return self._as_tree(result, name, e.span, tree)

    def _aggregate(
        self, e: s.Call, name: str, function: Aggregate, at: Context | None, tree: bool
    ) -> x.Expression | Context:
        if self.within == "where":
            hint = "name the aggregates first, then filter that stream"
            self.problems.add("AggregateInWhere", f"{name} cannot stand in where", e.span, hint)
            return FAILED
        if self._in_aggregate:
            hint = "aggregate the stream of the inner one's results"
            self.problems.add("NestedAggregate", f"{name} stands in an aggregate", e.span, hint)
            return FAILED
        result = self._open(self._parent(at))
        self._in_aggregate = True
        kept, self._chain = self._chain, result.structure
        found = self._arguments(e, name, function.bind, at, result.structure)
        self._chain, self._in_aggregate = kept, False
        if found is None:
            return FAILED
        bound, arguments, before = found
        if not function.reads:
            arguments, before = (), ()
        result.structure.tree.children = bound.result.copy().children
        self.partials.append(x.Partial(result.name, bound, arguments, before, name))
        return self._as_tree(result, name, e.span, tree, bound.scalar)

    def _as_tree(
        self, result: Context, name: str, span: Span, tree: bool, scalar: Type | None = None
    ) -> x.Expression | Context:
        if scalar is not None:
            return x.Read((result.name, ("val",)), scalar)
        if tree:
            return result
        labels = ", ".join(c.label for c in result.structure.tree.children)
        hint = f"assign it first, s = {name}(…), then read s.{labels.split(', ')[0]}"
        self.problems.add("NoOperator", f"{name} gives a tree of {labels}", span, hint)
        return FAILED

    def _result(self, bound: Bound, parent: Structure) -> Context:
        result = self._open(parent)
        result.structure.tree.children = bound.result.copy().children
        self._chain = result.structure
        return result

    def _parent(self, at: Context | None) -> Structure:
        """Temporaries of one expression are alive together, so each is the child of the one
        before."""
        if self._chain is not None:
            return self._chain
        return (
            at.structure if at is not None else self.structures.setdefault("", Structure(Node("")))
        )

    def _arguments(
        self,
        e: s.Call,
        name: str,
        bind: Callable[[list[Argument]], Bound],
        at: Context | None,
        parent: Structure,
    ) -> tuple[Bound, tuple[x.Expression, ...], tuple[x.Step, ...]] | None:
        """The leaves of all arguments, cast; and the steps that fill temporaries before."""
        outside, self.steps = self.steps, []
        given: list[Argument] = []
        leaves: list[list[x.Expression]] = []
        failed = False
        for argument in e.arguments:
            values = self._argument(argument.value, at, parent)
            if values is None:
                failed = True
                continue
            tree, found = values
            if any(each.type is ERROR for each in found):
                failed = True
                continue
            value = None
            if len(found) == 1:
                try:
                    value = x.constant(found[0])
                except NoValue:
                    value = None
            given.append(Argument(argument.label, tree, value))
            leaves.append(found)
            parent = self._chain or parent
        before, self.steps = tuple(self.steps), outside
        if failed:
            return None
        try:
            bound = bind(given)
        except BadArgument as error:
            self.problems.add("BadArgument", f"{name}: {error}", e.span)
            return None
        flat = [each for place in bound.order for each in leaves[place]]
        cast = tuple(
            each if each.type is want else x.Cast(each, want)
            for each, want in zip(flat, bound.casts, strict=True)
        )
        return bound, cast, before

    def _argument(
        self, value: s.Expression | s.Copy | s.Level, at: Context | None, parent: Structure
    ) -> tuple[Node, list[x.Expression]] | None:
        """An argument's tree and its leaves."""
        if isinstance(value, s.Copy):
            temporary = self._open(parent)
            self._copy(value, at or temporary, temporary)
            self._chain = temporary.structure
            return _leaves(temporary)
        if isinstance(value, s.Level):
            temporary = self._temporary(value, parent)
            self._chain = temporary.structure
            return _leaves(temporary)
        if isinstance(value, s.Rooted | s.Relative):
            place = self._location(value.path, isinstance(value, s.Rooted), at)
            if place is None:
                return None
            if place.node is not None and place.node.type is None:
                return _leaves(place)
        typed = self.value(value, at, tree=True)
        if isinstance(typed, Context):
            return _leaves(typed)
        return Node("", children=[leaf("val", typed.type)]), [typed]


def _leaves(at: Context) -> tuple[Node, list[x.Expression]]:
    node = at.node
    assert node is not None
    reads: list[x.Expression] = []
    for path, one in node.leaves():
        assert one.type is not None
        read = x.Read((at.name, (*at.path, *path)), one.type)
        reads.append(read if one.type is not ERROR else FAILED)
    return node.copy(""), reads


def is_boolean(e: x.Expression) -> bool:
    return e.type in (BOOLEAN, ERROR)
