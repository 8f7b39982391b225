"""The normal form has the same meaning, judged by truth tables over the leaves of the device."""

from __future__ import annotations

import dataclasses
import itertools
import random

import pytest

from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import INT
from seustream.compiler.pipeline import Options
from seustream.compiler.plan.divide import (
    ALWAYS,
    Any,
    DividedConjunct,
    Division,
    Every,
    Formula,
    JoinFactor,
    SelectionTerm,
)
from seustream.compiler.plan.normalise import DEFAULT_MAX_TERMS, Normalised, normalise
from tests.compiler.plan.cases import Case, cases, compiled
from tests.compiler.plan.shown import Shower

TEMPLATE = compiled("R.a = S.d AND R.b = S.e AND S.e = T.f AND R.a > 1 AND R.b > 2 AND S.d > 3"
                    " AND (R.c = 1 OR R.c = 2)", stop_after="dnf")  # fmt: skip
LEAVES: tuple[Formula, ...] = tuple(part.device for part in TEMPLATE.divisions[0].parts)
ATOMS = tuple(
    dict.fromkeys(
        atom
        for leaf in LEAVES
        for atom in (
            [(leaf.slot, test) for test in leaf.tests]
            if isinstance(leaf, SelectionTerm)
            else [leaf]
        )
    )
)
ASSIGNMENTS = [dict(zip(ATOMS, bits, strict=True)) for bits in itertools.product((False, True), repeat=len(ATOMS))]  # fmt: skip


@pytest.mark.parametrize("case", cases("normalise"), ids=str)
def test_case(case: Case) -> None:
    c = compiled(*case.before, "R, S, T, U", stop_after="dnf")
    assert Shower(c.layout).normalised(c.normalised[0]) == list(case.after)


# --- truth tables -------------------------------------------------------------


def holds(f: Formula, truth: dict[object, bool]) -> bool:
    match f:
        case Every(parts):
            return all(holds(part, truth) for part in parts)
        case Any(parts):
            return any(holds(part, truth) for part in parts)
        case JoinFactor():
            return truth[f]
        case SelectionTerm():
            outcomes = [truth[f.slot, test] for test in f.tests]
            return all(outcomes) if f.every else any(outcomes)


def formula(chance: random.Random, depth: int, leaves: tuple[Formula, ...] = LEAVES) -> Formula:
    if depth == 0 or chance.random() < 0.2:
        return chance.choice(leaves)
    parts = tuple(formula(chance, depth - 1, leaves) for _ in range(chance.choice((2, 2, 3))))
    return Every(parts) if chance.random() < 0.5 else Any(parts)


def division(
    formulas: list[Formula], exact: list[bool], slots: tuple[int, ...] = TEMPLATE.divisions[0].slots
) -> Division:
    """Returns a division with these conjuncts; the n-th condition is the constant n."""
    parts = tuple(
        DividedConjunct(x.Literal(number, INT), device, None if is_exact else "not exact")
        for number, (device, is_exact) in enumerate(zip(formulas, exact, strict=True))
    )
    return dataclasses.replace(TEMPLATE.divisions[0], slots=slots, parts=parts)


def checked(
    formulas: list[Formula],
    exact: list[bool],
    most: int,
    slots: tuple[int, ...] = TEMPLATE.divisions[0].slots,
) -> Normalised:
    (one,) = normalise((division(formulas, exact, slots),), most)
    residual = {e.value for e in one.residual if isinstance(e, x.Literal)}
    for term in one.terms:
        assert all(isinstance(leaf, (JoinFactor, SelectionTerm)) for leaf in term)
        plain = [leaf.slot for leaf in term if isinstance(leaf, SelectionTerm) and leaf.every]
        assert len(plain) == len(set(plain)) or slots == (0,)
    for truth in ASSIGNMENTS:
        device = any(all(holds(leaf, truth) for leaf in term) for term in one.terms)
        outcomes = [holds(f, truth) for f in formulas]
        if not one.fell_back:
            assert device == all(outcomes)
        # No result is lost, and the host's residual removes every false one.
        assert device or not all(outcomes)
        if device and not all(outcomes):
            assert any(not outcomes[number] for number in residual)  # type: ignore[index]
    assert residual >= {number for number, is_exact in enumerate(exact) if not is_exact}
    assert one.fell_back or len(residual) == exact.count(False)
    return one


@pytest.mark.parametrize("most", [1, 2, 4, DEFAULT_MAX_TERMS])
def test_random_conditions(most: int) -> None:
    chance = random.Random(most)
    fell_back = 0
    for _ in range(100):
        formulas = [formula(chance, 3) for _ in range(chance.choice((1, 1, 2, 3)))]
        exact = [chance.random() < 0.7 for _ in formulas]
        fell_back += checked(formulas, exact, most).fell_back
    assert fell_back == 0 if most == DEFAULT_MAX_TERMS else fell_back > 20


def test_every_small_formula() -> None:
    for shape in itertools.product((Every, Any), repeat=2):
        for a, b, c in itertools.product(LEAVES[:4], repeat=3):
            inner = shape[1]((b, c))
            checked([shape[0]((a, inner))], [True], 64)
            checked([shape[0]((inner, a))], [True], 64)


def test_no_condition_is_one_term_without_leaves() -> None:
    (one,) = normalise((division([], []),), 64)
    assert one.terms == ((),)
    (one,) = normalise((division([ALWAYS], [False]),), 64)
    assert (one.terms, len(one.residual)) == (((),), 1)


@pytest.mark.parametrize("most", [1, 4, DEFAULT_MAX_TERMS])
def test_random_conditions_on_one_stream(most: int) -> None:
    """Conditions on one stream become one conjunction."""
    chance = random.Random(most)
    own = tuple(leaf for leaf in LEAVES if isinstance(leaf, SelectionTerm) and leaf.slot == 0)
    fell_back = 0
    for _ in range(200):
        formulas = [formula(chance, 3, own) for _ in range(chance.choice((1, 1, 2, 3)))]
        exact = [chance.random() < 0.7 for _ in formulas]
        one = checked(formulas, exact, most, slots=(0,))
        assert len(one.terms) == 1
        fell_back += one.fell_back
    assert fell_back == 0 if most == DEFAULT_MAX_TERMS else fell_back > 20 or most > 1


def test_alternatives_on_one_stream_are_selections() -> None:
    c = compiled("R.a > 1 AND (R.b = 2 OR R.c < 3 AND R.n = 4)", "R", stop_after="dnf")
    assert Shower(c.layout).normalised(c.normalised[0]) == [
        "R[a > 1] AND R[b = 2 or c < 3] AND R[b = 2 or n = 4]"
    ]


def test_a_query_in_software_has_no_terms() -> None:
    c = compiled("R.a = R.b", "R")
    assert c.normalised == (Normalised(c.divisions[0], (), (), False),)


# --- explosion ----------------------------------------------------------------


def alternatives(count: int) -> str:
    columns = ("a", "b", "c", "n", "m")
    pairs = [(o, c) for o in ("=", "<", ">", "<>", "<=") for c in columns][:count]
    return " AND ".join(f"(R.{c} {o} S.d OR R.{c} {o} S.e)" for o, c in pairs)


@pytest.mark.parametrize(
    ("count", "most", "terms"),
    [(6, 64, 64), (7, 64, None), (7, 128, 128), (3, 8, 8), (3, 7, None), (25, 64, None)],
)
def test_so_many_terms_and_no_more(count: int, most: int, terms: int | None) -> None:
    c = compiled(alternatives(count), options=Options(max_terms=most), stop_after="dnf")
    (one,) = c.normalised
    assert one.fell_back == (terms is None)
    assert len(one.terms) == (terms or 1)
    assert len(one.residual) == (0 if terms else count)


def test_what_all_terms_have_in_common_stays_in_the_device() -> None:
    c = compiled(
        f"R.n = S.k AND R.b > 5 AND R.s LIKE 'x%' AND (R.a = 1 AND R.m = S.e OR R.a = 2 AND"
        f" R.m = S.e) AND {alternatives(8)}",
        stop_after="dnf",
    )
    (one,) = c.normalised
    assert [Shower(c.layout).term(term) for term in one.terms] == [
        "R.n = S.k AND R[b > 5] AND R.m = S.e AND R[a = 1 or a = 2]"
    ]
    shown = [x.show(e) for e in one.residual]
    assert len(shown) == 8  # of eight alternatives, R.m = S.e decides one
    assert shown[0] == "R.s LIKE 'x%'"
    assert "R.n = S.k" not in shown


def test_a_long_conjunction_is_one_term() -> None:
    condition = " AND ".join(f"R.a <> {number}" for number in range(2_000))
    (one,) = compiled(condition, stop_after="dnf").normalised
    (term,) = one.terms
    (leaf,) = term
    assert isinstance(leaf, SelectionTerm)
    assert len(leaf.tests) == 2_000
