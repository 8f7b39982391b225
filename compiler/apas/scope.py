"""Resolves names in APAS: attributes of trees, and functions of libraries beside those of all
languages.

Everything above names is the binder's (`seustream.compiler.language.bind`). An aggregate call
becomes a partial result and a read of it; a library function is a leaf with arguments of its own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from seustream.compiler.apas import expressions as a
from seustream.compiler.apas import syntax as s
from seustream.compiler.apas.contexts import AttributeContext, ContextReader
from seustream.compiler.apas.functions import (
    Aggregate,
    Alias,
    Argument,
    BadArgument,
    Bound,
    Registered,
    StreamFunction,
    ordered,
)
from seustream.compiler.apas.layout import Structure
from seustream.compiler.apas.tree import Node, group, leaf
from seustream.compiler.apas.types import BOOLEAN, ERROR, INTEGER, settled, shown
from seustream.compiler.errors import Span, nearest, suggest
from seustream.compiler.language import expressions as x
from seustream.compiler.language import registry
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.bind import FAILED, Binder, ParameterValue
from seustream.compiler.language.expressions import Expression
from seustream.compiler.language.syntax import Name
from seustream.compiler.language.types import Kind, Type

CODES: Mapping[str, str] = {
    "unknown-function": "UnknownFunction",
    "unknown-type": "UnknownType",
    "type-length": "UnknownType",
    "type-mismatch": "NoOperator",
    "constant-range": "BadLiteral",
    "no-parameter": "BadArgument",
    "percent": "BadLiteral",
    "too-deep": "Syntax",
    "syntax": "Syntax",
}
"""APAS's codes for the binder's problems."""

VALUE = "value"
"""Label of the tree of an argument that is a single value."""

_AGGREGATES = {
    name: entry for entry in AGGREGATES.values() for name in (entry.name, *entry.aliases)
}


@dataclass
class Expressions(ContextReader):
    """Binds the expressions of one subquery. The content of an argument's brackets is left to the
    builder."""

    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)
    codes: Mapping[str, str] = field(default_factory=lambda: CODES)
    aggregates: bool | str = True
    _at: AttributeContext | None = field(default=None, init=False)
    _binder: Binder | None = field(default=None, init=False)

    @abstractmethod
    def _open(self, parent: Structure) -> AttributeContext:
        """Opens a new temporary structure, used while the parent is computed."""

    @abstractmethod
    def _temporary(self, level: s.Level, parent: Structure) -> AttributeContext:
        """Builds a bracket without a path as a structure of its own."""

    @abstractmethod
    def _copy(self, copy: s.Copy, at: AttributeContext, into: AttributeContext) -> None:
        """Copies the children of places into a context."""

    # --- expressions ----------------------------------------------------------

    def expression(self, e: s.Expression, at: AttributeContext | None) -> Expression:
        """Binds an expression that must be a single value."""
        found = self.value(e, at, tree=False)
        assert not isinstance(found, AttributeContext)
        return found

    def value(
        self, e: s.Expression, at: AttributeContext | None, tree: bool
    ) -> Expression | AttributeContext:
        """Binds an expression to a value or, if `tree` allows it, to the structure that receives a
        function's tree."""
        kept, self._at = self._at, at
        if self._binder is None:
            self._binder = Binder(self, self.problems)
        try:
            if tree and isinstance(e, s.FunctionCall):
                found = self._call(e, self._binder, tree)
                if found is not None:
                    return found
            return self._binder.value(e)
        finally:
            self._at = kept

    # --- as the binder's scope ------------------------------------------------

    @property
    def functions(self) -> Iterable[str]:
        return self.libraries.names

    def reference(self, e: s.Reference, binder: Binder) -> Expression:
        return self._read(s.names_of(e), e.rooted, self._at, e.span)

    def call(self, e: s.FunctionCall, binder: Binder) -> Expression | None:
        found = self._call(e, binder, tree=False)
        assert not isinstance(found, AttributeContext)
        return found

    def special(self, e: s.Expression, binder: Binder) -> Expression:
        what = "a label" if isinstance(e, s.Labelled) else "a tree"
        hint = "this function takes values, by position"
        self.problems.add("BadArgument", f"{what} cannot stand here", e.span, hint)
        return FAILED

    # --- calls ----------------------------------------------------------------

    def _call(
        self, e: s.FunctionCall, binder: Binder, tree: bool
    ) -> Expression | AttributeContext | None:
        """Binds a call; returns None if it means the same in all languages."""
        if len(e.function) == 1:
            entry = _AGGREGATES.get(e.name.lower())
            return None if entry is None else self._registered(e, entry, tree)
        function = self.libraries.find([part.text for part in e.function])
        if function is None:
            return self._unknown_function(e)
        if isinstance(function, Alias):
            if function.of in _AGGREGATES:
                return self._registered(e, _AGGREGATES[function.of], tree)
            plain = replace(e, function=(Name(function.of, e.at),))
            bound = binder.value(plain)
            if bound.type == ERROR or function.gives is None:
                return bound
            return a.converted(bound, function.gives)
        if e.distinct or e.where is not None or e.star or e.attribute is not None:
            message = f"{e.name}: it takes no *, DISTINCT, FILTER and has no attributes"
            hint = "aggregates of all languages do: count, sum, avg, …"
            self.problems.add("BadArgument", message, e.span, hint)
            return FAILED
        if isinstance(function, StreamFunction):
            hint = "where window.range($S, 10) select O[…]"
            message = f"{e.name} changes a stream, it has no value"
            self.problems.add(
                "BadArgument", message, e.span, f"it stands by itself in where: {hint}"
            )
            return FAILED
        if isinstance(function, Aggregate):
            return self._aggregate(e, function.bind, tree)
        found = self._arguments(e, function.bind, self._parent())
        if found is None:
            return FAILED
        bound_one, arguments, before = found
        if bound_one.scalar is not None:
            return a.Invoke(bound_one, arguments, before, bound_one.scalar, e.name)
        result = self._result(bound_one, self._parent())
        paths = tuple(bound_one.result.paths)
        self.steps.append(a.AssignTree(result.name, paths, bound_one, arguments, before, e.name))
        return self._as_tree(result, e.name, e.span, tree)

    def _unknown_function(self, e: s.FunctionCall) -> Expression:
        known = self.libraries.names
        same = [full for full in known if full.split(".")[1] == e.function[-1].text]
        hint = suggest(e.name, known, "functions")
        if same and nearest(e.name, known) is None:
            hint = f"did you mean {same[0]}?"
        self.problems.add("UnknownFunction", f"there is no function {e.name}", e.at, hint)
        return FAILED

    def _registered(
        self, e: s.FunctionCall, entry: registry.AggregateFunction, tree: bool
    ) -> Expression | AttributeContext:
        """Binds an aggregate of all languages. Given a tree, `count` counts tuples."""

        def bind(arguments: Sequence[Argument]) -> Bound:
            names = ("value", *(f"argument {i + 2}" for i in range(len(entry.parameters) - 1)))
            if e.star and entry.name != "count":
                raise BadArgument("* is for count; give it a value")
            fewest = 0 if e.star else max(len(entry.parameters) - entry.optional, 1)
            if not fewest <= len(arguments) <= len(names):
                raise BadArgument(f"it takes {len(names)} arguments; given {len(arguments)}")
            order = ordered(arguments, names[: len(arguments)])
            types = tuple(t for place in order for t in arguments[place].tree.types)
            if entry.name == "count" and not all(arg.tree.label == VALUE for arg in arguments):
                # Given a tree, count counts tuples regardless of their content.
                if e.distinct:
                    raise BadArgument("DISTINCT is for values, not trees; name one")
                return Bound(Registered(entry, INTEGER), group("", leaf("val", INTEGER)), (), ())
            if len(types) != len(arguments):
                raise BadArgument("it takes values, not trees")
            chosen = registry.choose(entry.parameters[: len(types)], entry.result_type, types)
            if chosen is None:
                wants = ", ".join(p.name for p in entry.parameters[: len(types)])
                raise BadArgument(f"it takes {wants}; given {', '.join(map(shown, types))}")
            takes = tuple(
                of if to.kind is Kind.NULL else to
                for of, to in zip(types, chosen.takes, strict=True)
            )
            result = group("", leaf("val", settled(chosen.type)))
            return Bound(Registered(entry, chosen.type, e.distinct), result, takes, order)

        return self._aggregate(e, bind, tree)

    def _aggregate(
        self, e: s.FunctionCall, bind: Callable[[list[Argument]], Bound], tree: bool
    ) -> Expression | AttributeContext:
        name = e.name
        if self.within == "where":
            hint = "name the aggregates first, then filter that stream"
            self.problems.add("AggregateInWhere", f"{name} cannot stand in where", e.span, hint)
            return FAILED
        if self._in_aggregate:
            hint = "aggregate the stream of the inner one's results"
            self.problems.add("NestedAggregate", f"{name} stands in an aggregate", e.span, hint)
            return FAILED
        result = self._open(self._parent())
        self._in_aggregate = True
        kept, self._chain = self._chain, result.structure
        found = self._arguments(e, bind, result.structure)
        where = None if e.where is None else self.expression(e.where, self._at)
        self._chain, self._in_aggregate = kept, False
        if found is None or (where is not None and where.type == ERROR):
            return FAILED
        if where is not None and where.type.kind not in (Kind.BOOLEAN, Kind.NULL):
            message = f"the condition is {shown(where.type)}"
            self.problems.add("NotBoolean", message, e.span, "compare it with something")
            return FAILED
        bound, arguments, before = found
        if not arguments:
            before = ()
        if where is not None:
            arguments = tuple(_where(where, each) for each in arguments or (x.TRUE,))
        result.structure.tree.children = bound.result.copy().children
        self.partials.append(a.PartialAggregate(result.name, bound, arguments, before, name, e.at))
        return self._as_tree(result, name, e.span, tree, bound.scalar)

    def _as_tree(
        self,
        result: AttributeContext,
        name: str,
        span: Span,
        tree: bool,
        scalar: Type | None = None,
    ) -> Expression | AttributeContext:
        if scalar is not None:
            return a.LeafRead((result.name, ("val",)), scalar)
        if tree:
            return result
        labels = ", ".join(c.label for c in result.structure.tree.children)
        hint = f"assign it first, s = {name}(…), then read s.{labels.split(', ')[0]}"
        self.problems.add("NoOperator", f"{name} gives a tree of {labels}", span, hint)
        return FAILED

    def _result(self, bound: Bound, parent: Structure) -> AttributeContext:
        result = self._open(parent)
        result.structure.tree.children = bound.result.copy().children
        self._chain = result.structure
        return result

    def _parent(self) -> Structure:
        """Returns the parent of the next temporary. Temporaries of one expression are alive
        together, so each is the child of the previous one."""
        if self._chain is not None:
            return self._chain
        if self._at is not None:
            return self._at.structure
        return self.structures.setdefault("", Structure(Node("")))

    def _arguments(
        self, e: s.FunctionCall, bind: Callable[[list[Argument]], Bound], parent: Structure
    ) -> tuple[Bound, tuple[Expression, ...], tuple[a.Step, ...]] | None:
        """Returns the converted leaves of all arguments, and the steps that fill temporaries first."""
        outside, self.steps = self.steps, []
        given: list[Argument] = []
        leaves: list[list[Expression]] = []
        failed = False
        for argument in e.arguments:
            label, value = s.label_of(argument)
            values = self._argument(value, parent)
            if values is None or any(each.type == ERROR for each in values[1]):
                failed = True
                continue
            tree, found = values
            constant = a.constant(found[0]) if len(found) == 1 else None
            given.append(Argument(label, tree, constant))
            leaves.append(found)
            parent = self._chain or parent
        before, self.steps = tuple(self.steps), outside
        if failed:
            return None
        try:
            bound = bind(given)
        except BadArgument as error:
            hint = "arguments go by position, or by name: f(a, name = b)"
            self.problems.add("BadArgument", f"{e.name}: {error}", e.span, hint)
            return None
        flat = [each for place in bound.order for each in leaves[place]]
        taken = tuple(a.converted(each, to) for each, to in zip(flat, bound.casts, strict=True))
        return bound, taken, before

    def _argument(
        self, value: s.Expression, parent: Structure
    ) -> tuple[Node, list[Expression]] | None:
        """Returns an argument's tree and its leaves."""
        at = self._at
        if isinstance(value, s.Copy):
            temporary = self._open(parent)
            self._copy(value, at or temporary, temporary)
            self._chain = temporary.structure
            return _leaves(temporary)
        if isinstance(value, s.Level):
            temporary = self._temporary(value, parent)
            self._chain = temporary.structure
            return _leaves(temporary)
        if isinstance(value, s.Reference):
            place = self._location(s.names_of(value), value.rooted, at)
            if place is None:
                return None
            if place.node is not None and place.node.type is None:
                return _leaves(place)
        typed = self.value(value, at, tree=True)
        if isinstance(typed, AttributeContext):
            return _leaves(typed)
        return Node(VALUE, children=[leaf("val", settled(typed.type))]), [typed]


def _where(condition: Expression, value: Expression) -> Expression:
    """Returns an expression with the value where the condition holds and NULL elsewhere, which no
    aggregate counts."""
    nothing = x.Literal(None, value.type)
    return x.Case(((x.condition(condition), value),), nothing, value.type)


def _leaves(at: AttributeContext) -> tuple[Node, list[Expression]]:
    node = at.node
    assert node is not None
    reads: list[Expression] = []
    for path, one in node.leaves():
        assert one.type is not None
        read = a.LeafRead((at.name, (*at.path, *path)), one.type)
        reads.append(read if one.type != ERROR else FAILED)
    return node.copy(""), reads


def is_boolean(e: Expression) -> bool:
    return e.type == BOOLEAN or e.type.is_unknown
