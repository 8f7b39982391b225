"""Typed expressions: operators by Algorithm 4, calls of scalar functions and aggregates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from compiler.apas import expressions as x
from compiler.apas import syntax as s
from compiler.apas.contexts import FAILED, Context, Reader
from compiler.apas.functions import (
    Aggregate,
    Argument,
    BadArgument,
    Bound,
    StreamFunction,
)
from compiler.apas.layout import Structure
from compiler.apas.parse import too_large
from compiler.apas.tree import Node, leaf
from compiler.apas.types import BOOLEAN, DOUBLE, ERROR, INTEGER, Type, computation
from compiler.apas.values import NoValue
from compiler.errors import Span, nearest, suggest


@dataclass
class Expressions(Reader):
    """Expressions of one subquery. What stands in an argument's brackets is the builder's."""

    @abstractmethod
    def _open(self, parent: Structure) -> Context:
        """A new temporary structure, used while the parent is computed."""

    @abstractmethod
    def _temporary(self, level: s.Level, parent: Structure) -> Context:
        """A bracket without a path, as a structure of its own."""

    @abstractmethod
    def _copy(self, copy: s.Copy, at: Context, into: Context) -> None:
        """Children of places into a context."""

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
        hint = "types become more general only to DOUBLE and STRING"
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
            hint = "arguments go by position, or by name: f(a, name = b)"
            self.problems.add("BadArgument", f"{name}: {error}", e.span, hint)
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
