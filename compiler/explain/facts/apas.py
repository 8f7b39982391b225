"""The facts of an APAS query: symbols, trees and ids, the two-phase cut, the network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from seustream.compiler.apas import expressions as x
from seustream.compiler.apas import network as n
from seustream.compiler.apas.aggregates import StateLayout, laid_out, phase_1, phase_2
from seustream.compiler.apas.analyse import BoundSubquery, Input
from seustream.compiler.apas.compile import Compiled
from seustream.compiler.apas.types import shown
from seustream.compiler.explain.marks import clip
from seustream.compiler.explain.picture.diagram import Arrow, Box, Diagram
from seustream.compiler.explain.text import NamedLines
from seustream.compiler.language.expressions import show

Labelled = Iterator[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class SymbolFacts:
    name: str
    kind: str
    version: int | None
    schema: str


@dataclass(frozen=True, slots=True)
class LayoutFacts:
    """The result tree with its ids, what lies above it, and the length of both."""

    tree: str
    temporaries: tuple[str, ...]
    width: int
    length: int

    @property
    def labelled(self) -> Labelled:
        yield "ids", self.tree
        if self.temporaries:
            above = ", ".join(self.temporaries)
            yield "above", f"{above}; length {self.length}, cut to {self.width}"


@dataclass(frozen=True, slots=True)
class SelectFacts:
    """A subquery; `partials` is what its aggregation node computes, `assigns` its map."""

    name: str
    inputs: tuple[str, ...]
    where: tuple[str, ...]
    partials: tuple[str, ...]
    partial_layout: LayoutFacts | None
    assigns: tuple[str, ...]
    layout: LayoutFacts

    @property
    def title(self) -> str:
        return f"select {self.name}"

    @property
    def labelled(self) -> Labelled:
        yield "inputs", ", ".join(self.inputs)
        yield from _lines("where", self.where)
        if self.partial_layout is not None:
            yield from _lines("phase 1", self.partials)
            yield from self.partial_layout.labelled
        yield from _lines("phase 2" if self.partials else "map", self.assigns)
        yield from self.layout.labelled


@dataclass(frozen=True, slots=True)
class CarriedEdge:
    node: int
    carries: tuple[str, ...]

    @property
    def words(self) -> str:
        return ", ".join(self.carries)


@dataclass(frozen=True, slots=True)
class NetworkNode:
    node: int
    what: str
    title: str
    inputs: tuple[CarriedEdge, ...]
    gives: tuple[str, ...]
    does: tuple[str, ...]

    @property
    def labelled(self) -> Labelled:
        yield str(self.node), self.title
        for edge in self.inputs:
            yield "", f"from {edge.node}: {edge.words or 'times only'}"
        yield from _lines("", self.does)


@dataclass(frozen=True, slots=True)
class ApasFacts:
    SECTIONS: ClassVar = (("Symbols", "met"), ("Subqueries", "subqueries"), ("Network", "nodes"))

    query: str | None
    symbols: tuple[SymbolFacts, ...]
    subqueries: tuple[SelectFacts, ...]
    network: tuple[NetworkNode, ...]
    warnings: tuple[str, ...]

    @property
    def met(self) -> NamedLines:
        symbols = [
            (f"{s.kind} version {s.version}" if s.version is not None else s.kind, s.schema)
            for s in self.symbols
        ]
        return NamedLines("", (*symbols, *_lines("warning", self.warnings)))

    @property
    def nodes(self) -> NamedLines:
        return NamedLines("", tuple(pair for node in self.network for pair in node.labelled))

    @property
    def diagram(self) -> Diagram:
        """Draws the network; the arrows show the attributes that they carry."""
        layer: list[int] = []
        boxes, arrows = [], []
        for node in self.network:
            layer.append(1 + max((layer[edge.node] for edge in node.inputs), default=-1))
            last = node.node == len(self.network) - 1
            hint = "\n".join((node.title, *node.does))
            first, second = clip(node.title, 26), clip("; ".join(node.does), 30)
            kind = "result" if last else "box"
            boxes.append(Box(f"node-{node.node}", layer[-1], first, second, kind, hint=hint))
            for place, edge in enumerate(node.inputs):
                source, target = f"node-{edge.node}", f"node-{node.node}"
                key = f"edge-{node.node}-{place}"
                words = clip(edge.words, 22)
                arrows.append(Arrow(source, target, words, hint=edge.words, key=key))
        return Diagram(f"Network of {self.query}", boxes, arrows)


def _lines(label: str, texts: tuple[str, ...]) -> Labelled:
    """Yields texts under one label."""
    for number, text in enumerate(texts):
        yield "" if number else label, text


def apas(c: Compiled) -> ApasFacts:
    symbols = c.analysed.symbols
    met = [SymbolFacts(k, "stream", s.version, str(s.tree)) for k, s in sorted(symbols.met.items())]
    local = [SymbolFacts(k, "definition", None, str(s.tree)) for k, s in symbols.local.items()]
    return ApasFacts(
        c.tree.label,
        (*met, *local),
        tuple(map(_select, c.analysed.definitions)),
        tuple(
            NetworkNode(
                number,
                type(node).__name__.removesuffix("Node"),
                c.network.titles[number],
                tuple(CarriedEdge(edge.node, _carried(c.network, edge)) for edge in node.edges),
                tuple(f"{name} {shown(type)}" for name, type in node.leaves),
                tuple(_does(node)),
            )
            for number, node in enumerate(c.network.nodes)
        ),
        tuple(c.warnings),
    )


def _select(one: BoundSubquery) -> SelectFacts:
    below = _layout(phase_1(one.hierarchy, one.partials)) if one.partials else None
    return SelectFacts(
        one.name,
        tuple(map(_input, one.inputs)),
        tuple(map(show, one.conditions)),
        tuple(map(x.show_step, one.partials)),
        below,
        tuple(map(x.show_step, one.steps)),
        _layout(laid_out(phase_2(one.hierarchy, one.partials))),
    )


def _layout(layout: StateLayout) -> LayoutFacts:
    slots = sorted(layout.slots.items(), key=lambda pair: pair[1])
    above = tuple(f"{x.show_place(place)} {id}" for place, id in slots if id >= layout.width)
    return LayoutFacts(str(layout.root.tree), above, layout.width, layout.length)


def _input(one: Input) -> str:
    name = one.name
    if one.parts:
        parts = ", ".join(".".join((_input(part), *path)) for part, path in one.parts)
        name = f"{name} = union({parts})"
    return name if one.window is None else f"{name} [{one.window}]"


def _carried(network: n.Network, edge: n.Edge) -> tuple[str, ...]:
    names = ["ts", "te", *(name for name, _ in network.nodes[edge.node].leaves)]
    return tuple(names[column] for column in edge.columns)


def _does(node: n.Node) -> list[str]:
    match node:
        case n.SetEndNode(size=size):
            return ["te := never" if size is None else f"te := ts + {size}"]
        case n.LifetimesNode(shown=shown):
            return [f"lifetimes by {shown}"]
        case n.SelectNode(filter=filter, map=map):
            return [*_conditions(filter), *(x.show_step(step) for step in map.steps)]
        case n.JoinNode(
            left=left, right=right, terms=terms, residual=residual, map=map, index=index
        ):
            found = [f"left: {c}" for c in _conditions(left.guard)]
            found += [f"right: {c}" for c in _conditions(right.guard)]
            found += [f"hash: {show(a.conditions[0])} == {show(b.conditions[0])}" for a, b in terms]
            found += [f"index of {index.name}"] if index is not None else []
            found += _conditions(residual)
            return found + [x.show_step(step) for step in (map.steps if map is not None else ())]
        case n.AggregateNode(side=side, partials=partials, map=map):
            found = _conditions(side.guard) + [x.show_step(partial) for partial in partials]
            return found + [x.show_step(step) for step in map.steps]
        case _:
            return []


def _conditions(filter: n.Filter) -> list[str]:
    return [f"where {show(condition)}" for condition in filter.conditions]
