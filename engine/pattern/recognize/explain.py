"""Facts of MATCH_RECOGNIZE for EXPLAIN: the pattern as an automaton, and when each condition is
decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seustream.compiler.language import expressions as x
from seustream.compiler.pattern.rows import RowQuery
from seustream.engine.pattern.recognize.conditions import Conditions
from seustream.engine.pattern.recognize.log import RowLog
from seustream.engine.pattern.recognize.program import Code, RowProgram

_MATCH = "match"
_MOST_STATES = 40

Way = tuple[str, str, str, tuple[str, ...]]
"""Kind, source, target, conditions."""


def row_automaton(query: RowQuery) -> tuple[list[str], list[Way]]:
    """Returns the rows of the pattern as states, `A` and `A:2` where a variable occurs twice, and
    the ways between them, preferred ones first. A pattern with too many states is reduced to the
    match."""
    steps = RowProgram(query.pattern).steps
    names: dict[int, str] = {}
    count: dict[int, int] = {}
    for place, (code, variable, _) in enumerate(steps):
        if code == Code.ROW:
            count[variable] = count.get(variable, 0) + 1
            number = f":{count[variable]}" if count[variable] > 1 else ""
            names[place] = query.variables[variable] + number
    if len(names) > _MOST_STATES:
        return [_MATCH], []
    names[len(steps) - 1] = _MATCH
    texts = {d.variable: d.text for d in query.definitions}
    ways: list[Way] = []
    for place, name in {-1: "", **names}.items():
        for to in _after(steps, place + 1) if name != _MATCH else ():
            condition = texts.get(steps[to][1]) if to != len(steps) - 1 else None
            own = (condition,) if condition else ()
            ways.append(("take" if to == place else "begin", name, names[to], own))
    return list(names.values()), ways


def _after(steps: Sequence[tuple[int, int, int]], place: int) -> Iterator[int]:
    """Yields the rows, or the match, that may follow a step, in order of preference."""
    waiting, seen = [place], set()
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        code, a, b = steps[at]
        if code in (Code.ROW, Code.ACCEPT):
            yield at
        elif code == Code.SPLIT:
            waiting += [b, a]
        else:
            waiting.append(a if code == Code.JUMP else at + 1)


def decided(query: RowQuery) -> Iterator[tuple[str, str, str]]:
    """Yields the conditions of DEFINE: when each is decided, its variable, and its text."""
    for definition in query.definitions:
        own = Conditions(RowLog(), query, None, definition)
        terms = len(x.conjuncts(definition.condition))
        compared = len(own.tests)
        asked = sum(map(len, own.asked)) - compared
        ways = {
            "once a row": terms - compared - asked,
            "compared by the search": compared,
            "evaluated on each way": asked,
        }
        how = [f"{way} ({count})" if terms > 1 else way for way, count in ways.items() if count]
        yield ", ".join(how), query.variables[definition.variable], definition.text
