"""EXPLAIN of an APAS query: symbols, trees and ids, the two-phase cut, the network.

`facts` is plain data, for programs; `text` and `picture` show it to people.
"""

from __future__ import annotations

import json
from typing import Any

from seustream.compiler.apas import expressions as x
from seustream.compiler.apas import network as n
from seustream.compiler.apas.aggregates import StateLayout, laid_out, phase_1, phase_2
from seustream.compiler.apas.analyse import BoundSubquery, Input
from seustream.compiler.apas.compile import Compiled
from seustream.compiler.apas.types import shown
from seustream.compiler.explain.picture import draw
from seustream.compiler.language.expressions import show

FORMATS = ("text", "json", "svg")


def explain(c: Compiled, format: str = "text") -> str:
    if format == "svg":
        return picture(c)
    found = facts(c)
    if format == "json":
        return json.dumps(found, indent=2, ensure_ascii=False)
    return "\n".join(text(found))


# --- facts --------------------------------------------------------------------


def facts(c: Compiled) -> dict[str, Any]:
    symbols = c.analysed.symbols
    return {
        "query": c.tree.label,
        "symbols": [
            {"name": name, "kind": "stream", "version": s.version, "schema": str(s.tree)}
            for name, s in sorted(symbols.met.items())
        ]
        + [
            {"name": name, "kind": "definition", "version": None, "schema": str(s.tree)}
            for name, s in symbols.local.items()
        ],
        "subqueries": [_subquery(each) for each in c.analysed.definitions],
        "network": [
            {
                "node": number,
                "what": type(node).__name__.removesuffix("Node"),
                "title": c.network.titles[number],
                "inputs": [
                    {"from": edge.node, "carries": _carried(c.network, edge)} for edge in node.edges
                ],
                "gives": [f"{name} {shown(type)}" for name, type in node.leaves],
                "does": _does(node),
            }
            for number, node in enumerate(c.network.nodes)
        ],
        "warnings": list(c.warnings),
    }


def _subquery(one: BoundSubquery) -> dict[str, Any]:
    above = laid_out(phase_2(one.hierarchy, one.partials))
    found: dict[str, Any] = {
        "name": one.name,
        "inputs": [_input(each) for each in one.inputs],
        "where": [show(condition) for condition in one.conditions],
        "assigns": [x.show_step(step) for step in one.steps],
        "layout": _layout(above),
    }
    if one.partials:
        below = phase_1(one.hierarchy, one.partials)
        found["phase 1"] = [x.show_step(partial) for partial in one.partials]
        found["phase 1 layout"] = _layout(below)
    return found


def _layout(layout: StateLayout) -> dict[str, Any]:
    """The result tree with its ids, what lies above it, and the length of both."""
    temporaries = [
        f"{x.show_place(place)} {id}"
        for place, id in sorted(layout.slots.items(), key=lambda pair: pair[1])
        if id >= layout.width
    ]
    tree = str(layout.root.tree)
    return {
        "tree": tree,
        "temporaries": temporaries,
        "width": layout.width,
        "length": layout.length,
    }


def _input(one: Input) -> str:
    name = one.name
    if one.parts:
        parts = ", ".join(".".join((_input(part), *path)) for part, path in one.parts)
        name = f"{name} = union({parts})"
    return name if one.window is None else f"{name} [{one.window}]"


def _carried(network: n.Network, edge: n.Edge) -> list[str]:
    names = ["ts", "te", *(name for name, _ in network.nodes[edge.node].leaves)]
    return [names[column] for column in edge.columns]


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


# --- text ---------------------------------------------------------------------


def text(found: dict[str, Any]) -> list[str]:
    lines = ["Symbols"]
    for symbol in found["symbols"]:
        version = f" version {symbol['version']}" if symbol["version"] is not None else ""
        lines.append(f"  {symbol['kind']}{version}: {symbol['schema']}")
    lines += [f"  warning: {warning}" for warning in found["warnings"]]
    for one in found["subqueries"]:
        lines += ["", f"Select {one['name']}", f"  inputs: {', '.join(one['inputs'])}"]
        lines += [f"  where {condition}" for condition in one["where"]]
        if "phase 1" in one:
            lines.append("  phase 1, the aggregation node")
            lines += [f"    {partial}" for partial in one["phase 1"]]
            lines += [f"    {line}" for line in _shown(one["phase 1 layout"])]
            lines.append("  phase 2, its map")
        lines += [f"    {step}" for step in one["assigns"]]
        lines += [f"    {line}" for line in _shown(one["layout"])]
    lines += ["", "Network"]
    for node in found["network"]:
        lines.append(f"  {node['node']} {node['title']}")
        for edge in node["inputs"]:
            carried = ", ".join(edge["carries"]) or "times only"
            lines.append(f"      from {edge['from']}: {carried}")
        lines += [f"      {what}" for what in node["does"]]
    return lines


def _shown(layout: dict[str, Any]) -> list[str]:
    lines = [f"ids: {layout['tree']}"]
    if layout["temporaries"]:
        above = ", ".join(layout["temporaries"])
        lines.append(f"above: {above}; length {layout['length']}, cut to {layout['width']}")
    return lines


# --- picture ------------------------------------------------------------------

_WIDTH, _HEIGHT, _ACROSS, _DOWN, _MARGIN = 190.0, 52.0, 130.0, 26.0, 28.0


def picture(c: Compiled) -> str:
    """The network from left to right; edges carry the attributes written on them."""
    network = c.network
    column: list[int] = []
    for node in network.nodes:
        column.append(1 + max((column[edge.node] for edge in node.edges), default=-1))
    row: list[int] = []
    for number in range(len(network.nodes)):
        row.append(column[:number].count(column[number]))
    x_of = [_MARGIN + place * (_WIDTH + _ACROSS) for place in column]
    y_of = [64 + place * (_HEIGHT + _DOWN) for place in row]
    title = f"Network of {c.tree.label}"
    body = [draw.text(_MARGIN, 32, title, "title")]
    for number, node in enumerate(network.nodes):
        for place, edge in enumerate(node.edges):
            y1 = y_of[edge.node] + _HEIGHT / 2
            y2 = y_of[number] + _HEIGHT * (place + 1) / (len(node.edges) + 1)
            x1, x2 = x_of[edge.node] + _WIDTH, x_of[number]
            middle = (x1 + x2) / 2
            body.append(draw.path(f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}", "edge"))
            words = ", ".join(_carried(network, edge))
            if words:
                short = words if len(words) <= 22 else words[:21] + "…"
                body.append(draw.text(x2 - 6, y2 - 5, short, "small soft", "end"))
    for number, node in enumerate(network.nodes):
        last = number == len(network.nodes) - 1
        inside = [
            draw.rectangle(
                x_of[number], y_of[number], _WIDTH, _HEIGHT, "result" if last else "box"
            ),
            draw.text(
                x_of[number] + 10, y_of[number] + 21, _clip(network.titles[number]), "strong"
            ),
            draw.text(
                x_of[number] + 10, y_of[number] + 39, _clip("; ".join(_does(node))), "small soft"
            ),
        ]
        hint = "\n".join([network.titles[number], *_does(node)])
        body.append(draw.group(inside, f"node-{number}", hint))
    width = max(x_of) + _WIDTH + _MARGIN
    height = max(y_of) + _HEIGHT + _MARGIN
    return draw.document(width, height, title, body)


def _clip(words: str) -> str:
    return words if len(words) <= 26 else words[:25] + "…"
