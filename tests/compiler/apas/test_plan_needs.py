"""Compares the columns on the edges of random queries with the needs by definition: walking
backwards from the output, an attribute is needed if a condition or an aggregate reads it, or an attribute
that is needed does."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from seustream.compiler.apas import network as n
from seustream.compiler.apas.compile import compile_query
from seustream.compiler.apas.symbols import Schema
from seustream.compiler.apas.tree import from_lists

Read = tuple[str, str]
"""A stream and its attribute."""


@dataclass
class Definition:
    name: str
    inputs: list[str]
    reads: dict[str, list[Read]] = field(default_factory=dict)
    conditions: list[Read] = field(default_factory=list)
    aggregates: bool = False
    text: str = ""


SOURCES = {f"S{i}": [f"S{i}_{j}" for j in range(4)] for i in range(3)}


def query(chance: random.Random) -> list[Definition]:
    """Makes definitions over streams and earlier definitions; the last is the output. Attribute
    names are unique to their stream."""
    attributes = dict(SOURCES)
    found: list[Definition] = []
    count = chance.randint(2, 6)
    for number in range(count):
        d = Definition(f"d{number}", chance.sample(sorted(attributes), chance.choice((1, 1, 2))))
        if found and number == count - 1 and not any(i.startswith("d") for i in d.inputs):
            d.inputs[0] = found[-1].name
        d.aggregates = chance.random() < 0.3

        def read(name: str, of: dict[str, list[str]] = attributes) -> Read:
            return name, chance.choice(of[name])

        if len(d.inputs) == 2:
            d.conditions = [read(name) for name in d.inputs]
        conditions = [" == ".join(map(_shown, d.conditions))] if d.conditions else []
        if chance.random() < 0.4:
            d.conditions.append(read(chance.choice(d.inputs)))
            conditions.append(f"{_shown(d.conditions[-1])} > 0")
        assigned = []
        for j in range(chance.randint(1, 4)):
            own = f"{d.name}_{j}"
            # A constant does not make a node aggregate, so the first attribute has a read.
            some = [read(chance.choice(d.inputs)) for _ in range(chance.randint(j == 0, 2))]
            value = " + ".join([*map(_shown, some), "1"])
            if d.aggregates and some:
                value = f"agg.{chance.choice(('sum', 'max'))}({value})"
            if j and chance.random() < 0.4:
                some.append((d.name, f"{d.name}_{chance.randrange(j)}"))
                value += f" + {some[-1][1]}"
            d.reads[own] = some
            assigned.append(f"{own} = {value}")
        where = f"where {', '.join(conditions)} select " if conditions else ""
        d.text = f"{where}{d.name}[{', '.join(assigned)}]"
        attributes[d.name] = list(d.reads)
        found.append(d)
    return found


def _shown(read: Read) -> str:
    return f"${read[0]}.{read[1]}"


def carried(definitions: list[Definition]) -> dict[str, list[set[str]]]:
    """Returns what the edges into each node must carry, by the node's title."""
    needed: set[Read] = {(definitions[-1].name, a) for a in definitions[-1].reads}
    found: dict[str, list[set[str]]] = {}
    used = _used(definitions)
    for d in reversed(used):
        for attribute in reversed(d.reads):
            if (d.name, attribute) in needed:
                needed |= set(d.reads[attribute])
        # Where an aggregate changes another tuple begins, so an aggregation needs all of its own.
        mine = [a for a in d.reads if (d.name, a) in needed or d.aggregates]
        needed |= {read for a in mine if d.aggregates for read in d.reads[a]}
        results = {read for a in mine for read in d.reads[a] if read[0] != d.name}
        needed |= set(d.conditions)
        whole = results | set(d.conditions)
        inputs = [{a for s, a in whole if s == name} for name in d.inputs]
        if len(d.inputs) == 2:
            found[f"join {', '.join(d.inputs)} of {d.name}"] = inputs
            inputs = [{a for _, a in results}]
        if d.aggregates:
            found[f"aggregate {d.name}"] = inputs
        elif len(d.inputs) == 1:
            found[f"select {d.name}"] = inputs
    for name in set(SOURCES) & {name for d in used for name in d.inputs}:
        found[f"stream {name}"] = [{a for s, a in needed if s == name}]
    return found


def _used(definitions: list[Definition]) -> list[Definition]:
    used = {definitions[-1].name}
    for d in reversed(definitions):
        if d.name in used:
            used |= set(d.inputs)
    return [d for d in definitions if d.name in used]


def compiled(plan: n.Network, definitions: list[Definition]) -> dict[str, list[set[str]]]:
    found: dict[str, list[set[str]]] = {}
    joins = [d.name for d in _used(definitions) if len(d.inputs) == 2]
    for title, node in zip(plan.titles, plan.nodes, strict=True):
        inputs = [{_leaf(plan, edge.node, c) for c in edge.columns} for edge in node.edges]
        if isinstance(node, n.StreamNode):
            inputs = [{".".join(path) for path in node.paths}]
        if isinstance(node, n.JoinNode):
            title = f"{title} of {joins.pop(0)}"
        assert title not in found
        assert all(len(e.columns) == len(set(e.columns)) for e in node.edges)
        found[title] = inputs
    return found


def _leaf(plan: n.Network, node: int, column: int) -> str:
    return ("ts", "te", *(name for name, _ in plan.nodes[node].leaves))[column]


@pytest.mark.acceptance(18)
@pytest.mark.parametrize("seed", range(200))
def test_edges_of_random_queries_carry_what_is_needed(seed: int) -> None:
    definitions = query(random.Random(seed))
    *before, last = definitions
    texts = [f"{d.text};" for d in before]
    final = last.text if last.text.startswith("where") else f"select {last.text}"
    text = "\n".join(["from", *texts, final])
    print(f"seed {seed}\n{text}")
    catalogue = {
        name: Schema(from_lists(name, [[a, "INTEGER"] for a in attributes]))
        for name, attributes in SOURCES.items()
    }
    plan = compile_query(text, catalogue).network
    want = carried(definitions)
    assert compiled(plan, definitions) == want
