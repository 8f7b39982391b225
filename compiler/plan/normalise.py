"""Brings the device's conditions into disjunctive normal form.

before  (R.c = S.e OR S.e = T.f) AND R.a = S.d
after   R.c = S.e AND R.a = S.d
        S.e = T.f AND R.a = S.d

A condition on one stream is a conjunction of selection bits instead, each all or any of some tests:

before  R.a > 1 AND (R.b = 2 OR R.c < 3 AND R.d = 4)
after   [R.a > 1] AND [R.b = 2 OR R.c < 3] AND [R.b = 2 OR R.d = 4]

The form can explode: past `max_terms` the device gets the leaves common to all terms, which
the condition implies, and the whole condition becomes residual.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from seustream.compiler.language import expressions as x
from seustream.compiler.plan.divide import Any, Division, Every, Formula, Leaf, SelectionTerm

DEFAULT_MAX_TERMS = 64
_SLACK = 16
"""The factor by which a product may exceed `max_terms` before absorption shrinks it."""

Term = tuple[Leaf, ...]


@dataclass(frozen=True, slots=True)
class Normalised:
    """A division with its terms; `residual` is what the host must still check."""

    division: Division
    terms: tuple[Term, ...]
    residual: tuple[x.Expression, ...]
    fell_back: bool


def normalise(divisions: tuple[Division, ...], max_terms: int) -> tuple[Normalised, ...]:
    return tuple(_normalise(division, max_terms) for division in divisions)


def _normalise(division: Division, max_terms: int) -> Normalised:
    if not division.on_device:
        return Normalised(division, (), (), False)
    whole = Every(tuple(part.device for part in division.parts))
    terms = _terms(whole, max_terms) if len(division.slots) > 1 else _clauses(whole, max_terms)
    if terms is None:
        implied = tuple(_implied(whole))
        # A conjunct that is itself a leaf is still decided by the device.
        residual = tuple(
            part.condition
            for part in division.parts
            if not (part.exact and isinstance(part.device, Leaf))
        )
        return Normalised(division, (merged(implied),), residual, True)
    residual = tuple(part.condition for part in division.parts if not part.exact)
    if len(division.slots) == 1:
        return Normalised(division, tuple(terms), residual, False)
    return Normalised(division, _absorbed(tuple(map(merged, terms))), residual, False)


def _terms(formula: Formula, most: int) -> list[Term] | None:
    """Returns the conjunctions whose union is the formula, each leaf once; None if there are more
    than `most`."""
    if isinstance(formula, Any):
        union: dict[Term, None] = {}
        for part in formula.parts:
            terms = _terms(part, most)
            if terms is None:
                return None
            union.update(dict.fromkeys(terms))
            if len(union) > most:
                return None
        return list(union)
    if isinstance(formula, Every):
        product: list[Term] = [()]
        for terms in _choices(formula.parts, most):
            if terms is None or len(product) * len(terms) > most * _SLACK:
                return None
            product = list(
                dict.fromkeys(
                    tuple(dict.fromkeys((*left, *right))) for left in product for right in terms
                )
            )
            product = list(_absorbed(tuple(product)))
            if len(product) > most:
                return None
        return product
    return [(formula,)]


def _clauses(formula: Formula, most: int) -> list[Term] | None:
    """Returns a condition on one stream as one conjunction; None if it has more than `most` parts."""
    # With AND and OR exchanged, a normal form of one kind is one of the other.
    found = _terms(_exchanged(formula), most)
    if found is None:
        return None
    clauses = []
    for clause in _absorbed(tuple(found)):
        some = [leaf for leaf in clause if isinstance(leaf, SelectionTerm)]
        if len(some) > 1:
            tests = tuple(sorted({test for one in some for test in one.tests}))
            text = " OR ".join(one.text for one in some)
            spans = tuple(span for one in some for span in one.spans)
            some = [SelectionTerm(some[0].slot, False, tests, text, spans)]
        clauses += some
    return [tuple(dict.fromkeys(clauses))]


def _exchanged(formula: Formula) -> Formula:
    match formula:
        case Every(parts):
            return Any(tuple(map(_exchanged, parts)))
        case Any(parts):
            return Every(tuple(map(_exchanged, parts)))
    return formula


def _choices(parts: tuple[Formula, ...], most: int) -> Iterator[list[Term] | None]:
    """Yields the terms of each part. Adjacent leaves are one term, so that the time for a long
    conjunction is not quadratic."""
    for _, run in groupby(parts, key=lambda part: isinstance(part, Leaf)):
        members = list(run)
        leaves = tuple(part for part in members if isinstance(part, Leaf))
        if leaves:
            yield [leaves]
        else:
            yield from (_terms(part, most) for part in members)


def _absorbed(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Removes terms that imply another one."""
    sets = [frozenset(term) for term in terms]
    kept: list[Term] = []
    for index, (term, mine) in enumerate(zip(terms, sets, strict=True)):
        weaker = any(theirs < mine for theirs in sets)
        if not weaker and mine not in sets[:index]:
            kept.append(term)
    return tuple(kept)


def _implied(formula: Formula) -> dict[Leaf, None]:
    """Returns the leaves that hold whenever the formula does, in order."""
    if isinstance(formula, Every):
        return {leaf: None for part in formula.parts for leaf in _implied(part)}
    if isinstance(formula, Any):
        first, *rest = (_implied(part) for part in formula.parts)
        return {leaf: None for leaf in first if all(leaf in other for other in rest)}
    return {formula: None}


def merged(term: Term) -> Term:
    """Merges plain tests on one slot into one selection bit, at the place of the first."""
    plain: dict[int, list[SelectionTerm]] = {}
    merged: dict[Leaf | int, Leaf] = {}
    for leaf in term:
        if isinstance(leaf, SelectionTerm) and leaf.every:
            plain.setdefault(leaf.slot, []).append(leaf)
            merged.setdefault(leaf.slot, leaf)
        else:
            merged[leaf] = leaf
    for slot, terms in plain.items():
        tests = tuple(sorted({test for one in terms for test in one.tests}))
        text = " AND ".join(one.text for one in terms)
        spans = tuple(span for one in terms for span in one.spans)
        merged[slot] = SelectionTerm(slot, True, tests, text, spans)
    return tuple(merged.values())
