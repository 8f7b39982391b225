"""Equalities that tie all elements of a pattern, as a PARTITION BY.

    before  PATTERN A a; !B b; C c WHERE b.id = a.id AND c.id = a.id
    after   PATTERN A a; !B b; C c PARTITION BY id WHERE a.id IS NOT NULL
    before  PATTERN A a; !B b WHERE b.id = a.id
    after   PATTERN A a; !B b PARTITION BY id WHERE b.id IS NOT NULL

Without it, USING NEXT and the search for absences and members of groups try every event of the
window for every match. The search of single events under ANY has indexes of its own.
"""

from __future__ import annotations

import dataclasses

from seustream.compiler.language import expressions as x
from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Class, Pick, Skip, Strategy
from seustream.hdl.isa import Condition

_LONGEST_WINDOW = 1 << 36
"""The longest window, in milliseconds, with which millions of keys can be laid out in one list."""


def tied(query: ir.PatternQuery) -> ir.PatternQuery:
    """Returns the query with the PARTITION BY that its equalities amount to, or as it is.

    Under STRICT an event of another key ends a match, and AFTER MATCH SKIP is applied by key.
    """
    several = query.kleene or any(element.negated for element in query.elements)
    if query.strategy is Strategy.STRICT or query.skip is not Skip.NONE:
        return query
    if not (several or query.strategy is Strategy.NEXT) or len(query.elements) < 2:
        return query
    if query.window is None or query.window > _LONGEST_WINDOW:
        return query
    ties: dict[str, list[ir.Conjunct]] = {}
    for conjunct in query.conjuncts:
        if (attribute := _tie(conjunct)) is not None and attribute not in query.partition:
            ties.setdefault(attribute, []).append(conjunct)
    for attribute, conjuncts in ties.items():
        if _ties_all(query, conjuncts):
            query = _by(query, attribute, conjuncts)
    return query


def _tie(conjunct: ir.Conjunct) -> str | None:
    """Returns the attribute that a condition requires to be equal in the events of two elements, if
    it is decided for each event by itself. Two groups are compared once both are complete."""
    e = conjunct.expression
    if conjunct.cls not in (Class.PAIR, Class.MEMBER, Class.NEGATED):
        return None
    if not isinstance(e, x.Compare) or e.condition is not Condition.EQ:
        return None
    left, right = e.left, e.right
    if not isinstance(left, ir.Value) or not isinstance(right, ir.Value):
        return None
    picks = {left.pick, right.pick} <= {Pick.ONE, Pick.EACH}
    same = left.attribute == right.attribute and left.type == e.of and not left.is_time
    return left.attribute if picks and same and left.element != right.element else None


def _ties_all(query: ir.PatternQuery, ties: list[ir.Conjunct]) -> bool:
    """Returns whether each element is tied to an event before it, or if it is an absence, to any event.

    Under NEXT, a later tie is too late: an event is taken if it fits the events before it. Members of
    a group that is first need not be equal.
    """
    first, *others = query.positives
    negated = {number for number, element in enumerate(query.elements) if element.negated}
    pairs = [tie.refs for tie in ties]
    later = {max(refs) for refs in pairs if not negated & {*refs}}
    absent = negated & {element for refs in pairs for element in refs}
    return query.elements[first].single and later == {*others} and absent == negated


def _by(query: ir.PatternQuery, attribute: str, ties: list[ir.Conjunct]) -> ir.PatternQuery:
    """Returns the query by this attribute, without these conditions. NULL equals nothing: a match of
    several events has none, and no event with NULL forbids a match of one."""
    first, *others = query.positives
    absent = [number for number, element in enumerate(query.elements) if element.negated]
    values = {value.element: value for tie in ties for value in ir.values(tie.expression)}
    known = []
    for element in [first] if others else absent:
        there = x.IsNull(values[element], True)
        known.append(ir.Conjunct(Class.CONSTANT, (element,), there, x.show(there), ties[0].at))
    rest = (c for c in query.conjuncts if not any(c is tie for tie in ties))
    return dataclasses.replace(
        query, partition=(*query.partition, attribute), conjuncts=(*known, *rest)
    )
