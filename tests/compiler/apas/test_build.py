"""The context stack: what brackets assign, copy and overwrite."""

from __future__ import annotations

import pytest

from tests.compiler.apas.schemas import VALUES, catalogue, compiled
from tests.engine.temporal.reference.elements import insertion
from tests.engine.temporal.running import Run


@pytest.mark.acceptance(32)
def test_three_spellings_are_one() -> None:
    texts = ["O[z[x = $I.d]]", "O[z.x = $I.d]", "O.z.x = $I.d", "O.z[x = $I.d]"]
    networks = [compiled(f"select {text}").network for text in texts]
    assert all(network == networks[0] for network in networks)


@pytest.mark.acceptance(36)
def test_the_last_value_of_one_type_wins() -> None:
    one = Run("select [a = 1, a = 2, b = $I.v]", VALUES)
    one.feed("I", insertion(1, 2, 7, 0.0, "", True, 0))
    assert one.finish() == [(1, 2, 2, 7)]


@pytest.mark.acceptance(36)
def test_also_in_copies() -> None:
    one = Run("select [v = 1, $J[T], v = v + 1]", VALUES)
    one.feed("J", insertion(1, 2, 40))
    assert one.finish() == [(1, 2, 41)]


def test_t_copies_children_and_leaves() -> None:
    of = catalogue(I=[["a", "INTEGER"], ["c", [["p", "STRING"], ["e", [["q", "INTEGER"]]]]]])
    for text, shape in {
        "[$I[T]]": "out{a INTEGER, c{p STRING, e{q INTEGER}}}",
        "[$I.c[T]]": "out{p STRING, e{q INTEGER}}",
        "[$I[c[T], a.T]]": "out{p STRING, e{q INTEGER}, a INTEGER}",
        "[$I.c.e.T, $I.c[p.T]]": "out{q INTEGER, p STRING}",
        "[x[$I.c[e[T]]], y[$out.x.T]]": "out{x{q INTEGER}, y{q INTEGER}}",
    }.items():
        assert str(compiled(f"select {text}", of).tree) == shape
