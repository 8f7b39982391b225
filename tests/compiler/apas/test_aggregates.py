"""Places of the parts of an aggregating select: the ids of sections 5 and 7, and of temporaries."""

from __future__ import annotations

import pytest

from seustream.compiler.apas.aggregates import laid_out, phase_1, phase_2
from seustream.compiler.apas.types import DOUBLE, INTEGER
from tests.compiler.apas.schemas import SECTION_5, catalogue, compiled
from tests.engine.temporal.reference.elements import insertion
from tests.engine.temporal.running import Run


@pytest.mark.acceptance(30)
def test_section_5() -> None:
    text = "select O[a.b = [z = 1, k = $I.a], w = a.b.z * $I.b, $I.c[T]]"
    c = compiled(text, SECTION_5)
    layout = laid_out(c.analysed.definitions[-1].hierarchy)
    assert layout.slots == {
        ("O", ("a", "b", "z")): 2,
        ("O", ("a", "b", "k")): 3,
        ("O", ("w",)): 4,
        ("O", ("p",)): 5,
        ("O", ("q",)): 6,
        ("1", ("z",)): 7,
        ("1", ("k",)): 8,
    }
    assert (layout.width, layout.length) == (7, 9)
    one = Run(text, SECTION_5)
    one.feed("I", insertion(5, 9, 4, 2.5, "s", 9))
    assert one.finish() == [(5, 9, 1, 4, 2.5, "s", 9)]


@pytest.mark.acceptance(30, 43)
def test_section_7() -> None:
    of = catalogue(I=[["val", "DOUBLE"]])
    text = "select result[a = agg.avg($I.val + 1.0), b = (agg.min($I.val) + agg.max($I.val)) / 2]"
    c = compiled(text, of)
    (select,) = c.analysed.definitions
    below = phase_1(select.hierarchy, select.partials)
    assert str(below.root.tree) == "{$1{val DOUBLE 2}, $2{val DOUBLE 3}, $3{val DOUBLE 4}}".replace(
        "$", ""
    )
    above = laid_out(phase_2(select.hierarchy, select.partials))
    assert str(above.root.tree) == "result{a DOUBLE 2, b DOUBLE 3}"
    one = Run(text, of)
    one.feed("I", insertion(2, 10, 40.0), insertion(4, 10, 70.0))
    assert one.finish() == [(2, 4, 41.0, 40.0), (4, 10, 56.0, 55.0)]


@pytest.mark.acceptance(31)
def test_temporaries_alive_together_share_no_id() -> None:
    from seustream.compiler.apas.functions import Overload, Scalar
    from seustream.compiler.apas.libraries import Libraries

    class Pair(Scalar):
        names = ("one", "other")
        overloads = (Overload((INTEGER, DOUBLE), DOUBLE),)

        def call(self, values: tuple[float, ...]) -> tuple[float, ...]:
            return (values[0] * 10 + values[1],)

    libraries = Libraries()
    libraries.register("mine", {"pair": Pair()})
    text = "select O[r = mine.pair([x = $I.a], [y = $I.b])]"
    c = compiled(text, SECTION_5, libraries)
    layout = laid_out(c.analysed.definitions[-1].hierarchy)
    assert (layout.slots["1", ("x",)], layout.slots["2", ("y",)]) == (3, 4)
    one = Run(c, SECTION_5)
    one.feed("I", insertion(5, 9, 4, 2.5, "s", 9))
    assert one.finish() == [(5, 9, 42.5)]


def test_siblings_share_a_pool() -> None:
    c = compiled("select O[a = [x = $I.a], b = [y = $I.b, z = $I.a]]", SECTION_5)
    layout = laid_out(c.analysed.definitions[-1].hierarchy)
    assert layout.slots["1", ("x",)] == layout.slots["2", ("y",)] == 5
    assert layout.length == 7
