"""Classifies conjuncts into seven classes by what they mention, which decides when a matcher can
use them."""

from __future__ import annotations

from collections.abc import Sequence

from seustream.compiler.errors import Problems, Span
from seustream.compiler.language import expressions as x
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Class, Pick


def classify(
    e: x.Expression, elements: Sequence[ir.Element], span: Span, problems: Problems
) -> Class | None:
    """Returns the class of a conjunct; reports a conjunct that has none and returns None."""
    refs = ir.references(e)
    negated = [i for i in refs if elements[i].negated]
    kleene = [i for i in refs if elements[i].kleene]
    parts = list(ir.parts(e))
    stepping = any(_steps(part) for part in parts)
    if len(negated) > 1:
        names = " and ".join(f"!{elements[i].variable}" for i in negated)
        hint = "each absence is a condition of its own; split it at AND"
        problems.add("P012", f"P012 a condition on {names} together", span, hint)
        return None
    if stepping and (negated or len(kleene) > 1 or any(_closes(part) for part in parts)):
        hint = "[i-1] and [..i-1] compare a member with those before it, in one group"
        problems.add("P014", "P014 i-1 in a condition that is not about one member", span, hint)
        return None
    bare = all(isinstance(p, ir.Value) and p.pick in (Pick.ONE, Pick.EACH) for p in parts)
    if len(refs) == 1 and bare:
        return Class.CONSTANT
    if negated:
        return Class.NEGATED
    if not kleene:
        return Class.PAIR
    if stepping:
        return Class.STEP
    if len(kleene) == 1:
        of_group = [p for p in parts if p.element == kleene[0]]
        picks = {p.pick if isinstance(p, ir.Value) else None for p in of_group}
        if picks == {Pick.EACH}:
            return Class.MEMBER
        if picks == {Pick.FIRST}:
            return Class.FIRST
    return Class.GROUP


def _steps(part: ir.Value | ir.GroupAggregate) -> bool:
    if isinstance(part, ir.GroupAggregate):
        return part.before
    return part.pick is Pick.PREVIOUS


def _closes(part: ir.Value | ir.GroupAggregate) -> bool:
    """Returns whether the value is known only when its group is complete."""
    if isinstance(part, ir.GroupAggregate):
        return not part.before
    return part.pick is Pick.LAST
