"""The facts of EXPLAIN agree with the compiled APAS query."""

from __future__ import annotations

from typing import Any

from seustream.compiler.apas.compile import Compiled
from seustream.compiler.explain import shown
from seustream.compiler.explain.facts.apas import apas
from seustream.compiler.explain.text import plain
from tests.compiler.apas.schemas import SECTION_5, compiled


def facts(c: Compiled) -> Any:
    return plain(apas(c))


def test_ids_and_what_lies_above() -> None:
    c = compiled("select O[a.b = [z = 1, k = $I.a], w = a.b.z * $I.b, $I.c[T]]", SECTION_5)
    (select,) = facts(c)["subqueries"]
    tree = "O{a{b{z INTEGER 2, k INTEGER 3}}, w DOUBLE 4, p STRING 5, q INTEGER 6}"
    assert select["layout"] == {
        "tree": tree, "temporaries": ["$1.z 7", "$1.k 8"], "width": 7, "length": 9,
    }  # fmt: skip
    assert "above   $1.z 7, $1.k 8; length 9, cut to 7" in shown(apas(c), "text")


def test_every_node_says_what_it_does() -> None:
    text = """from where window.range($I, 5), $I.a > 1 select s[n = agg.count($I)];
    where $s.n == $I.a, $I.b < 2.0 select [n = $s.n, p = $I.c.p]"""
    found = facts(compiled(text, SECTION_5))
    does = {node["title"]: node["does"] for node in found["network"]}
    assert does["window range 5 of I"] == ["te := ts + 5"]
    assert does["join s, I"][:2] == ["right: where $I.b < 2.0", "hash: $s.n == $I.a"]
    carried = {n["title"]: [edge["carries"] for edge in n["inputs"]] for n in found["network"]}
    assert carried["join s, I"] == [["n"], ["a", "b", "c.p"]]


def test_the_picture_has_every_node_and_edge() -> None:
    c = compiled("where $I.a == $K.a select [a = $I.a]", {**SECTION_5, "K": SECTION_5["I"]})
    drawn = shown(apas(c).diagram, "svg")
    assert drawn.count('id="node-') == len(c.network.nodes) == 3
    assert drawn.count('id="edge-') == 2
