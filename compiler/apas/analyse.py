"""Analyses a query: the inputs, stream functions, conditions and assignments of each subquery.

A subquery runs the stream functions of `where` from left to right, then a join if it still
references several streams, a filter, an aggregation if there is one, and a map.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from seustream.compiler.apas import expressions as x
from seustream.compiler.apas import functions as f
from seustream.compiler.apas import syntax as s
from seustream.compiler.apas.build import Builder
from seustream.compiler.apas.contexts import AttributeContext
from seustream.compiler.apas.layout import Structure
from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.apas.scope import is_boolean
from seustream.compiler.apas.streams import WindowFunction
from seustream.compiler.apas.symbols import Schema, Symbol, Symbols, attribute_hint
from seustream.compiler.apas.tree import Node, Path, first_difference, joined
from seustream.compiler.apas.types import ERROR, INTEGER, shown
from seustream.compiler.errors import Problems, SourceText, Span, suggest
from seustream.compiler.language.bind import ParameterValue
from seustream.compiler.language.expressions import Expression, condition, conjuncts, show
from seustream.compiler.language.types import Kind

UNION_NAME = "new"


@dataclass(frozen=True, slots=True)
class Applied:
    """A window function of a library, with the expressions that it reads from each tuple and its
    constants."""

    function: WindowFunction
    name: str
    arguments: tuple[Expression, ...]
    constants: tuple[tuple[str, Any], ...]
    scratch: Structure

    @property
    def reads(self) -> set[Path]:
        return {path for _, path in x.read_by(*self.arguments)}

    def __str__(self) -> str:
        given = [f"{name} = {value!r}" for name, value in self.constants]
        return f"{self.name}({', '.join([*map(show, self.arguments), *given])})"


@dataclass(frozen=True, slots=True)
class BoundWindow:
    """Changes lifetimes: te := ts + size, te := ts + 1, or never. `key` belongs to a time-table,
    `applied` to a library's window."""

    kind: str  # range, now, unbounded, table, library
    size: int = 0
    key: Path = ()
    applied: Applied | None = None

    @property
    def reads(self) -> set[Path]:
        """Returns the attributes that the window depends on."""
        found = self.applied.reads if self.applied is not None else set()
        return found | {self.key} if self.key else found

    def __str__(self) -> str:
        if self.applied is not None:
            return str(self.applied)
        if self.kind == "range":
            return f"range {self.size}"
        return f"table by {'.'.join(self.key)}" if self.kind == "table" else self.kind


@dataclass(frozen=True, slots=True)
class Input:
    """A stream as a subquery sees it: a symbol or a union of inputs' subtrees, followed by windows."""

    name: str
    tree: Node
    symbol: Symbol | None
    parts: tuple[tuple[Input, Path], ...] = ()
    window: BoundWindow | None = None


@dataclass(frozen=True, slots=True)
class BoundSubquery:
    """One select, analysed. `structures` holds the target and its temporaries by name; the one
    named "" holds the temporaries of conditions. `hierarchy` is the target's."""

    name: str
    inputs: tuple[Input, ...]
    conditions: tuple[Expression, ...]
    partials: tuple[x.PartialAggregate, ...]
    steps: tuple[x.Step, ...]
    hierarchy: Structure
    structures: Mapping[str, Structure]
    scratch: Structure

    @property
    def tree(self) -> Node:
        return self.hierarchy.tree


@dataclass(frozen=True, slots=True)
class Analysed:
    """The analysed query. `definitions` are in order; the last one is the output."""

    definitions: tuple[BoundSubquery, ...]
    symbols: Symbols
    warnings: tuple[str, ...]


def analyse(
    source: SourceText,
    query: s.ApasQuery,
    catalogue: Mapping[str, Schema],
    libraries: Libraries,
    name: str,
    parameters: Mapping[str, ParameterValue],
) -> Analysed:
    """Analyses a query; raises `CompileError` with all of its problems."""
    problems = Problems()
    symbols = Symbols(catalogue)
    later = {d.name.parts[0] for d in query.definitions if d.name is not None}
    definitions: list[BoundSubquery] = []
    warnings: list[str] = []

    def analysis() -> _Analysis:
        return _Analysis(problems, symbols, libraries, later, parameters)

    for one in query.definitions:
        if one.name is None:
            problems.add("Syntax", "a definition needs a name", one.target_span, "select name[…]")
        label = one.name.parts[0] if one.name is not None else ""
        if label in symbols.local:
            problems.add(
                "DuplicateStream",
                f"there is a stream {label} already",
                one.target_span,
                "give one of them another name",
            )
        elif label in catalogue:
            warnings.append(f"stream {label} of the query hides that of the catalogue")
        found = analysis().run(one, label)
        if found is not None and label not in symbols.local:
            symbols.local[label] = Symbol(label, found.tree, number=len(definitions))
        if found is not None:
            definitions.append(found)
    label = query.final.name.parts[0] if query.final.name is not None else name
    last = analysis().run(query.final, label)
    problems.raise_any(source)
    assert last is not None
    return Analysed((*definitions, last), symbols, tuple(warnings))


@dataclass
class _Analysis:
    problems: Problems
    symbols: Symbols
    libraries: Libraries
    later: set[str]
    parameters: Mapping[str, ParameterValue]
    inputs: dict[str, Input] = field(default_factory=dict)
    mentioned: dict[str, int] = field(default_factory=dict)
    consumed: set[str] = field(default_factory=set)
    newest: str | None = None
    failed: bool = False  # a stream function was reported, so $new is unknown

    def run(self, one: s.SelectBlock, label: str) -> BoundSubquery | None:
        before = len(self.problems.found)
        for call in one.where:
            if isinstance(call, s.FunctionCall) and self._stream_function(call) is not None:
                found = len(self.problems.found)
                self._change(call)
                self.failed |= len(self.problems.found) > found
        conditions, scratch = self._conditions(one)
        span = one.name.span if one.name is not None else one.target_span
        builder = self._builder(streams=self.symbols.names)
        root = builder.target(label, one.items)
        if not self.inputs:
            hint = "read an attribute of a stream: $stream.attribute"
            if len(self.problems.found) == before:
                self.problems.add("NoInput", "the select reads no stream", one.target_span, hint)
        if label in self.inputs:
            hint = f"give the result another name than its input {label}"
            self.problems.add("NameConflict", f"{label} is an input here", span, hint)
        if builder.partials:
            for shown, where in builder.bare_reads:
                self.problems.add(
                    "NotAggregated",
                    f"${shown} stands beside an aggregate",
                    where,
                    f"aggregate it too: agg.max(${shown})",
                )
        ordered = sorted(self.inputs, key=lambda n: self.mentioned[n])
        return BoundSubquery(
            label,
            tuple(self.inputs[name] for name in ordered),
            conditions,
            tuple(builder.partials),
            tuple(builder.steps),
            root,
            builder.structures,
            scratch,
        )

    # --- inputs ---------------------------------------------------------------

    def _find(self, name: str, span: Span) -> tuple[str, Node, bool] | None:
        found = self._input(name, span)
        if found is None:
            return None
        schema = None if found.symbol is None else found.symbol.schema
        return found.name, found.tree, schema is None or schema.connected

    def _input(self, name: str, span: Span) -> Input | None:
        """Returns the input that has this name in the text, and counts it as mentioned."""
        if name == UNION_NAME and self.newest is not None:
            name = self.newest
        if name in self.consumed:
            hint = f"its tuples are in ${UNION_NAME}"
            self.problems.add("UnknownStream", f"{name} went into a union", span, hint)
            return None
        if name not in self.inputs:
            if name == UNION_NAME and self.failed:
                return None
            symbol = self.symbols.find(name)
            if symbol is None:
                self._unknown(name, span)
                return None
            self.inputs[name] = Input(name, symbol.tree, symbol)
        self.mentioned[name] = min(self.mentioned.get(name, span.start), span.start)
        return self.inputs[name]

    def _unknown(self, name: str, span: Span) -> None:
        if name in self.later:
            hint = f"{name} is defined later; a stream must exist before it is used"
        elif name == UNION_NAME:
            hint = "$new is the result of a stream function, such as util.union($a, $b)"
        else:
            hint = suggest(name, self.symbols.names, "streams")
        self.problems.add("UnknownStream", f"there is no stream {name}", span, hint)

    # --- stream functions -----------------------------------------------------

    def _stream_function(self, e: s.Expression) -> f.StreamFunction | None:
        if not isinstance(e, s.FunctionCall):
            return None
        found = self.libraries.find([part.text for part in e.function])
        return found if isinstance(found, f.StreamFunction) else None

    def _change(self, call: s.FunctionCall) -> None:
        function = self._stream_function(call)
        if isinstance(function, f.Union):
            self._union(call)
            return
        assert function is not None
        labels = [f.Argument(s.label_of(a)[0], Node("")) for a in call.arguments]
        try:
            order = f.ordered(labels, function.names)
        except f.BadArgument as error:
            self._bad(call, str(error), call.span)
            return
        first, *others = (call.arguments[place] for place in order)
        stream = self._stream(call, first)
        if stream is None:
            return
        if stream.window is not None:
            message = f"{stream.name} has a window already: {stream.window}"
            self._bad(call, message, first.span, "one window for each stream")
            return
        window = self._window(call, function, stream, others)
        if window is not None:
            self.inputs[stream.name] = replace(stream, window=window)
            self.newest = stream.name

    def _window(
        self,
        call: s.FunctionCall,
        function: f.StreamFunction,
        stream: Input,
        others: list[s.Expression],
    ) -> BoundWindow | None:
        if isinstance(function, f.Range):
            return self._range(call, others[0])
        if isinstance(function, f.Table):
            return self._table(call, stream, others[0])
        if isinstance(function, WindowFunction):
            return self._library(call, function, stream, others)
        return BoundWindow("now") if isinstance(function, f.Now) else BoundWindow("unbounded")

    def _range(self, call: s.FunctionCall, size: s.Expression) -> BoundWindow | None:
        hint = "a positive number of milliseconds, or 10s, 5m, 1h"
        size = s.label_of(size)[1]
        if isinstance(size, s.Copy | s.Level):
            self._bad(call, "the size is no number", size.span, hint)
            return None
        typed = self._builder(within="where").expression(size, None)
        if typed.type == ERROR:
            return None
        value = x.constant(x.converted(typed, INTEGER)) if _whole(typed) else None
        if value is None:
            number = x.constant(typed)
            what = "not constant" if number is None else number
            self._bad(call, f"the size is {what}", size.span, hint)
            return None
        if value <= 0:
            self._bad(call, f"the size is {value}", size.span, hint)
            return None
        return BoundWindow("range", value)

    def _library(
        self,
        call: s.FunctionCall,
        function: WindowFunction,
        stream: Input,
        others: list[s.Expression],
    ) -> BoundWindow | None:
        """Binds a window of a user's library: values of the stream's attributes, and constants."""
        builder = self._builder(within="where")
        scratch = builder.structures[""] = Structure(Node(""))
        arguments: list[Expression] = []
        constants: dict[str, Any] = {}
        for name, want, argument in zip(function.names[1:], function.takes, others, strict=True):
            given = s.label_of(argument)[1]
            if isinstance(given, s.Copy | s.Level):
                self._bad(call, f"{name} is {shown(want)}, not a tree", argument.span)
                return None
            typed = builder.expression(given, None)
            if typed.type == ERROR:
                return None
            if not f.becomes(typed.type, want):
                message = f"{name} is {shown(want)}; given {shown(typed.type)}"
                self._bad(call, message, argument.span)
                return None
            typed = x.converted(typed, want)
            if name in function.constants:
                value = x.constant(typed)
                if value is None:
                    self._bad(call, f"{name} is not constant", argument.span)
                    return None
                constants[name] = value
                continue
            others_read = sorted({of for of, _ in x.read_by(typed)} - {stream.name})
            if others_read:
                message = f"{name} reads {others_read[0]}, which is not the stream it changes"
                self._bad(call, message, argument.span)
                return None
            arguments.append(typed)
        try:
            function.check(**constants)
        except f.BadArgument as error:
            self._bad(call, str(error), call.span)
            return None
        fixed = tuple(constants.items())
        applied = Applied(function, call.name, tuple(arguments), fixed, scratch)
        return BoundWindow("library", applied=applied)

    def _table(self, call: s.FunctionCall, stream: Input, key: s.Expression) -> BoundWindow | None:
        hint = f"window.table(${stream.name}, ${stream.name}.id), an INTEGER attribute"
        key = s.label_of(key)[1]
        if not isinstance(key, s.Reference) or not key.rooted or len(key.path) < 2:
            self._bad(call, "the key is no attribute", key.span, hint)
            return None
        base = self._find(key.path[0], key.span)
        if base is None:
            return None
        name, _, connected = base
        path = key.path[1:]
        node = stream.tree.at(path)
        if not connected:
            message, hint = f"${name} has no attributes", "source not connected"
            self.problems.add("UnknownAttribute", message, key.span, hint)
            return None
        if name != stream.name:
            self._bad(call, f"the key is an attribute of {name}", key.span, hint)
            return None
        if node is None:
            unknown = attribute_hint(stream.tree, path, f"${name}")
            message = f"there is no attribute {key}"
            self.problems.add("UnknownAttribute", message, key.span, unknown)
            return None
        if node.type is None or not node.type.is_integer:
            self._bad(call, f"the key is {shown(node.type)}", key.span, hint)
            return None
        return BoundWindow("table", key=path)

    def _stream(self, call: s.FunctionCall, argument: s.Expression) -> Input | None:
        """Returns the input for an argument that is a whole stream: `$S`, or `$S[T]`."""
        place = self._subtree(call, argument)
        if place is None:
            return None
        stream, path = place
        if path:
            self._bad(call, f"${stream.name}.{'.'.join(path)} is no stream", argument.span)
            return None
        return stream

    def _subtree(self, call: s.FunctionCall, argument: s.Expression) -> tuple[Input, Path] | None:
        value = s.label_of(argument)[1]
        if isinstance(value, s.Copy) and value.absolute and len(value.picks) == 1:
            names, path = value.root, (*value.root.parts[1:], *value.picks[0].parts)
        elif isinstance(value, s.Reference) and value.rooted:
            names, path = s.names_of(value), value.path[1:]
        else:
            self._bad(call, "it takes streams: $S, $S[T] or $S.a", argument.span)
            return None
        stream = self._input(names.parts[0], names.span)
        return None if stream is None else (stream, path)

    def _union(self, call: s.FunctionCall) -> None:
        if len(call.arguments) < 2:
            self._bad(call, "it takes two or more streams", call.span)
            return
        parts: list[tuple[Input, Path]] = []
        for argument in call.arguments:
            if isinstance(argument, s.Labelled):
                self._bad(call, f"it has no parameter {argument.label}", argument.span)
                return
            part = self._subtree(call, argument)
            if part is None:
                return
            parts.append(part)
        trees: list[Node] = []
        for (stream, path), argument in zip(parts, call.arguments, strict=True):
            node = stream.tree.at(path)
            if node is None:
                hint = attribute_hint(stream.tree, path, f"${stream.name}")
                message = f"there is no attribute ${'.'.join((stream.name, *path))}"
                self.problems.add("UnknownAttribute", message, argument.span, hint)
                return
            if node.type is not None:
                self._bad(call, f"${'.'.join((stream.name, *path))} is one value", argument.span)
                return
            if not node.children:
                message = f"${'.'.join((stream.name, *path))} has no attributes"
                self.problems.add(
                    "UnknownAttribute", message, argument.span, "source not connected"
                )
                return
            trees.append(node)
        for tree, argument in zip(trees[1:], call.arguments[1:], strict=True):
            difference = first_difference(trees[0], tree)
            if difference is not None:
                hint = "bring both into one shape in definitions of their own"
                place = difference if difference.startswith("under") else f"in {difference}"
                message = f"the schemas differ {place}"
                self.problems.add("SchemaMismatch", message, argument.span, hint)
                return
        for stream, _ in parts:
            self.inputs.pop(stream.name, None)
            self.consumed.add(stream.name)
        self.consumed.discard(UNION_NAME)
        tree = trees[0]
        for other in trees[1:]:
            tree = joined(tree, other, UNION_NAME)
        self.inputs[UNION_NAME] = Input(UNION_NAME, tree, None, tuple(parts))
        self.mentioned[UNION_NAME] = call.span.start
        self.newest = UNION_NAME

    def _bad(self, call: s.FunctionCall, message: str, span: Span, hint: str | None = None) -> None:
        hint = hint or f"functions and what they take are in the reference, {call.name} too"
        self.problems.add("BadArgument", f"{call.name}: {message}", span, hint)

    # --- conditions -----------------------------------------------------------

    def _builder(self, **more: Any) -> Builder:
        of = (self.problems, self.libraries, self._find)
        return Builder(*of, parameters=self.parameters, **more)

    def _conditions(self, one: s.SelectBlock) -> tuple[tuple[Expression, ...], Structure]:
        builder = self._builder(within="where")
        scratch = builder.structures[""] = Structure(Node(""))
        found: list[Expression] = []
        for clause in one.where:
            if self._stream_function(clause) is not None:
                continue
            value = builder.value(clause, None, tree=False)
            assert not isinstance(value, AttributeContext)
            if not is_boolean(value):
                self.problems.add(
                    "NotBoolean",
                    f"the condition is {shown(value.type)}",
                    clause.span,
                    "compare it with something",
                )
            elif value.type != ERROR:
                found += conjuncts(condition(value))
        return tuple(found), scratch


def _whole(e: Expression) -> bool:
    """Returns whether an expression is a whole number of milliseconds: an INTEGER or an INTERVAL."""
    return e.type.is_integer or e.type.kind is Kind.INTERVAL
