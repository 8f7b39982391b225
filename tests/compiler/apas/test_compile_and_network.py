"""From text to network: nested queries, and what a compilation records."""

from __future__ import annotations

import pytest

from seustream.compiler.apas.compile import compile_query
from seustream.compiler.apas.symbols import Schema
from seustream.compiler.apas.tree import from_lists
from tests.compiler.apas.schemas import SECTION_5, places


@pytest.mark.parametrize(
    "text",
    [
        "select O" + "[" * 201 + "a = 1" + "]" * 201,
        "select [a = " + "(" * 250 + "1" + ")" * 250 + "]",
        "select [a = " + "1 + " * 250 + "1]",
        "select [a = " + "not " * 250 + "true]",
        "select [a = " + "-" * 250 + "$I.a]",
    ],
)
def test_nested_over_200_levels(text: str) -> None:
    ((kind, _, _),) = places(text, SECTION_5)
    assert kind == "Syntax"


@pytest.mark.parametrize(
    "text",
    [
        "select O" + "[z" * 198 + "[a = $I.a]" + "]" * 198,
        "select O" + "[" * 190 + "a = $I.a" + "]" * 190,
        "select [a = " + "(" * 195 + "$I.a" + ")" * 195 + "]",
        "select [a = " + "1 + " * 140 + "$I.a]",
        "select [a = " + "-" * 140 + "$I.a]",
    ],
)
def test_nested_less(text: str) -> None:
    assert places(text, SECTION_5) == []


def test_a_compilation_knows_its_output_and_what_it_met() -> None:
    of = {"I": Schema(from_lists("I", [["v", "INTEGER"]]), 3), "J": Schema(from_lists("J", []), 9)}
    found = compile_query("from d[x = $I.v]; select out[y = $d.x, z = 1.5]", of, "q")
    assert (found.name, str(found.tree)) == ("q", "out{y INTEGER, z DOUBLE}")
    assert found.versions == {"I": 3}
    assert found.warnings == ()


def test_a_network_goes_from_its_sources_to_its_output() -> None:
    """Every edge comes from an earlier node and carries only columns of that node."""
    text = """from
      d[k = $I.v, s = agg.sum($I.v)];
      where window.range($J, 5), $J.v == $d.s select e[a = $J.v, b = $d.s];
      where util.union($e[T], $e[T]) select u[$new[T]];
      select out[$u[T]]"""
    of = {name: Schema(from_lists(name, [["v", "INTEGER"]])) for name in "IJ"}
    network = compile_query(text.replace("k = $I.v, ", ""), of).network
    assert set(network.sources) == {"I", "J"}
    assert len(network.titles) == len(network.nodes)
    for number, node in enumerate(network.nodes):
        assert bool(node.edges) == (number not in network.sources.values())
        for edge in node.edges:
            assert 0 <= edge.node < number
            assert max(edge.columns) < 2 + len(network.nodes[edge.node].leaves)
    reached = {len(network.nodes) - 1}
    for number in reversed(range(len(network.nodes))):
        assert number in reached, "nothing leads nowhere"
        reached |= {edge.node for edge in network.nodes[number].edges}
