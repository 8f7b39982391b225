"""Steps that assign leaves: which steps a result depends on, and constants among them."""

from __future__ import annotations

import random

from seustream.compiler.apas import expressions as x
from seustream.compiler.apas.types import DOUBLE, INTEGER
from seustream.compiler.language import expressions as core
from seustream.compiler.language.types import INT
from tests.compiler.apas.schemas import SECTION_5, compiled


def read(name: str, attribute: str) -> x.LeafRead:
    return x.LeafRead((name, (attribute,)), INTEGER)


def test_steps_that_are_needed_are_those_on_a_way_to_what_is_wanted() -> None:
    """By definition: walks backwards from the wanted places; the last assignment to each place
    counts."""
    chance = random.Random(3)
    for _ in range(200):
        names = [f"a{n}" for n in range(5)]
        plain = [(chance.choice(names), chance.choice([*names, "in"])) for _ in range(8)]
        steps = [x.Assign(("O", (to,)), read("O", of)) for to, of in plain]
        wanted = set(chance.sample(names, 2))
        found, outside = x.needed(steps, [("O", (name,)) for name in wanted])
        live, kept = set(wanted), []
        for step, (to, of) in reversed(list(zip(steps, plain, strict=True))):
            if to in live:
                live = (live - {to}) | {of}
                kept.insert(0, step)
        assert found == kept
        assert outside == {("O", (name,)) for name in live}


def test_what_a_step_reads_includes_what_its_temporaries_read() -> None:
    c = compiled("select O[a.b = [z = 1, k = $I.a], w = a.b.z * $I.b]", SECTION_5)
    steps = c.analysed.definitions[-1].steps
    places = set(x.read_by(*steps))
    assert {("I", ("a",)), ("I", ("b",))} <= places
    written = {place for step in steps for place in x.written(step)}
    _, outside = x.needed(steps, [("O", ("w",))])
    assert outside == {("I", ("b",))}, "what w needs of k is nothing"
    assert ("O", ("w",)) in written


def test_constants_are_computed_and_what_reads_is_none() -> None:
    def call(*arguments: core.Expression) -> core.Expression:
        return core.Cast(arguments[0], DOUBLE)

    assert x.constant(core.Literal(3, INT)) == 3
    assert x.constant(call(core.Literal(3, INT))) == 3.0
    assert x.constant(call(read("I", "v"))) is None
    assert x.constant(core.Literal(None, INT)) is None


def test_a_literal_becomes_another_type_without_a_cast() -> None:
    three = core.Literal(3, INT)
    assert x.converted(three, INTEGER) == core.Literal(3, INTEGER)
    assert x.converted(read("I", "v"), INTEGER) == read("I", "v")
    assert x.converted(read("I", "v"), DOUBLE) == core.Cast(read("I", "v"), DOUBLE)
    assert x.converted(core.Literal(None, INT), DOUBLE) == core.Literal(None, DOUBLE)


def test_steps_are_shown_as_they_are_written() -> None:
    step = x.Assign(("O", ("a", "b")), read("I", "v"))
    assert x.show_step(step) == "$O.a.b = $I.v"
