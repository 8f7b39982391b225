"""Plans which matcher runs a query, and in which order the lists are searched.

The anchors are the single positive elements. A search binds them one by one, and those bound are
always neighbours. An order is a list of anchor positions, such as (1, 2, 3, 0).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from seustream.compiler.pattern import ir
from seustream.compiler.pattern.ir import Class, Mode, Strategy
from seustream.engine.pattern.errors import EngineRefused
from seustream.engine.pattern.links import asks

ENGINES = ("auto", "columns", "compiled", "optiseq", "nfa", "compact")
MOST_ELEMENTS = 62
"""The most elements that fit, one bit each, into a signed 64-bit number."""
Order = tuple[int, ...]


# --- orders -------------------------------------------------------------------


def paper_order(counts: Sequence[int]) -> Order:
    """Returns the order of the paper: the shortest list first (the leftmost of equals), then the
    side whose lists are shorter on average, or the right side if both are equal."""
    start = min(range(len(counts)), key=lambda i: (counts[i], i))
    left, right = list(range(start - 1, -1, -1)), list(range(start + 1, len(counts)))
    if not left or not right:
        return (start, *left, *right)
    before = sum(counts[i] for i in left) / len(left)
    after = sum(counts[i] for i in right) / len(right)
    return (start, *right, *left) if before >= after else (start, *left, *right)


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """Statistics of the lists: their lengths, the time they span, the window, and for each
    condition on anchors its positions and how often it holds."""

    counts: tuple[int, ...]
    span: float
    window: float
    selectivities: tuple[tuple[tuple[int, ...], float], ...] = ()

    def raw(self, low: int, high: int) -> float:
        """Returns how many combinations of the neighbours low..high lie within the window,
        regardless of conditions."""
        span = max(self.span, 1.0)
        windows = max(span / self.window, 1.0) if self.window else 1.0
        # Divided factor by factor, since neither the product nor the factorial may fit.
        rates = (count / windows for count in self.counts[low : high + 1])
        raw = windows * math.prod(rate / max(place, 1) for place, rate in enumerate(rates))
        return min(raw, sys.float_info.max)

    def passing(self, low: int, high: int) -> float:
        """Returns the share of these combinations that all conditions among low..high let
        through."""
        inside = [
            share
            for places, share in self.selectivities
            if all(low <= place <= high for place in places)
        ]
        return math.prod(inside)


def cost_order(estimate: CostEstimate) -> tuple[float, Order]:
    """Returns the cheapest order and its cost, by dynamic programming over blocks of neighbours
    whose last anchor is at either end. Of equally cheap orders it takes the smaller sequence of
    positions."""
    size = len(estimate.counts)
    best: dict[tuple[int, int], tuple[float, Order]] = {
        (i, i): (float(estimate.counts[i]), (i,)) for i in range(size)
    }
    for length in range(2, size + 1):
        for low in range(size - length + 1):
            high = low + length - 1
            raw = estimate.raw(low, high)
            ways = []
            for block, added in (((low, high - 1), high), ((low + 1, high), low)):
                cost, order = best[block]
                ways.append((cost + raw * estimate.passing(*block), (*order, added)))
            best[low, high] = min(ways)
    return best[0, size - 1]


def stale(measured: Sequence[int], counts: Sequence[int]) -> bool:
    """Returns whether a count has changed by more than a factor of two since it was measured."""
    if len(measured) != len(counts):
        return True
    return any(max(a, b) > 2 * max(min(a, b), 1) for a, b in zip(measured, counts, strict=True))


class OrderChooser:
    """Chooses the order for each epoch; estimates anew once a list has more than doubled or halved.

    `share` takes a conjunct and a pair of anchors. It returns how many pairs were sampled, and how
    many of them the conjunct lets through.
    """

    def __init__(
        self,
        query: ir.PatternQuery,
        order: str | Order,
        share: Callable[[ir.Conjunct, int, int], tuple[int, int]],
    ) -> None:
        self.query = query
        self.order = order
        self._share = share
        self._place = {element: i for i, element in enumerate(query.anchors)}
        self._pairs = [
            c
            for c in query.conjuncts
            if c.cls is Class.PAIR and all(i in self._place for i in c.refs)
        ]
        self._measured: tuple[int, ...] = ()
        self._shares: tuple[tuple[tuple[int, ...], float], ...] = ()
        self.estimate: CostEstimate | None = None

    def choose(self, counts: Sequence[int], span: float, searched: Sequence[int]) -> Order:
        """Returns the order; `searched` counts the events of each list that a search may begin
        with."""
        if isinstance(self.order, tuple):
            return self.order
        if self.order == "paper":
            return paper_order(counts)
        if stale(self._measured, counts):
            self._measured = tuple(counts)
            self._shares = tuple(self._selectivity(c) for c in self._pairs)
        window = float(self.query.window) if self.query.window is not None else max(span, 1.0)
        self.estimate = CostEstimate(tuple(searched), span, window, self._shares)
        return cost_order(self.estimate)[1]

    def _selectivity(self, conjunct: ir.Conjunct) -> tuple[tuple[int, ...], float]:
        places = tuple(self._place[i] for i in conjunct.refs)
        if len(places) != 2:
            return places, 1.0
        pairs, passed = self._share(conjunct, *places)
        return places, max(passed, 1) / pairs if pairs else 1.0


def check_order(order: str | Order, anchors: int) -> None:
    """Checks that an order given by hand grows one block of neighbours over all anchors."""
    if isinstance(order, str):
        if order not in ("paper", "cost"):
            raise EngineRefused(f"there is no order {order!r}", "orders: cost, paper")
        return
    low = high = order[0] if order else -1
    for place in order[1:]:
        if place not in (low - 1, high + 1):
            raise EngineRefused(f"order {order} leaves a hole", "neighbours follow each other")
        low, high = min(low, place), max(high, place)
    if (low, high) != (0, anchors - 1):
        raise EngineRefused(f"order {order} is not of {anchors} anchors")


# --- engines ------------------------------------------------------------------


def supports(query: ir.PatternQuery) -> Mapping[str, str | None]:
    """Returns for every matcher the reason why it cannot run a query, or None if it can."""
    positive = [query.elements[i] for i in query.positives]
    lists: str | None = None
    if query.strategy is not Strategy.ANY:
        lists = f"it searches for any match, not USING {query.strategy.value.upper()}"
    elif (
        query.kleene and query.mode is Mode.SUBSETS and (positive[0].kleene or positive[-1].kleene)
    ):
        lists = "a group under SUBSETS has no single element on both sides"
    columns = lists
    if query.strategy is not Strategy.ANY:
        how = query.strategy.value.upper()
        columns = f"a group under {how} has choices" if query.kleene else None
    elif columns is None and query.kleene and query.mode is Mode.SUBSETS:
        columns = "subsets of a group are no columns"
    automaton = "its groups are the largest there are" if query.grouped else None
    compiled = automaton
    if len(query.elements) > MOST_ELEMENTS:
        compiled = f"it knows {MOST_ELEMENTS} elements"
    return {
        "columns": columns,
        "compiled": compiled,
        "optiseq": lists,
        "nfa": automaton,
        "compact": _not_compact(query),
    }


def _not_compact(query: ir.PatternQuery) -> str | None:
    if query.strategy is not Strategy.ANY or query.grouped:
        return "it enumerates ANY SUBSETS"
    if any(c.cls is not Class.CONSTANT for c in query.conjuncts):
        return "it knows no conditions between events"
    if any(element.most is not None for element in query.elements):
        return "it knows no maximum"
    if query.elements[0].negated or query.elements[-1].negated:
        return "it knows absences only between events"
    return None


def pick(query: ir.PatternQuery, engine: str = "auto") -> tuple[str, str]:
    """Returns the matcher for a query and the reason; raises P016 if a forced one cannot run it."""
    if engine not in ENGINES:
        raise EngineRefused(f"there is no engine {engine!r}", f"engines: {', '.join(ENGINES)}")
    reasons = supports(query)
    if engine != "auto":
        reason = reasons[engine]
        if reason is not None:
            can = ", ".join(name for name, why in reasons.items() if why is None)
            raise EngineRefused(
                f"P016 engine {engine} cannot run this query: {reason}", f"can: {can}"
            )
        return engine, "asked for"
    columns, compiled = reasons["columns"] is None, reasons["compiled"] is None
    if compiled and not asks(query) and not (columns and _piles_up(query)):
        return "compiled", "runs of an automaton, which a kernel advances"
    if columns:
        return "columns", "ordered lists searched as whole columns"
    if reasons["optiseq"] is None:
        return "optiseq", "groups between single events, searched by ordered lists"
    if compiled:
        return "compiled", f"only an automaton can: {reasons['optiseq']}"
    assert reasons["nfa"] is None, "every query has a matcher"
    return "nfa", f"only the automaton can: {reasons['optiseq']}"


def _piles_up(query: ir.PatternQuery) -> bool:
    """Returns whether an automaton may hold far more runs than there are matches and events: each
    event is tested with all of them, while a search looks up those that fit."""
    if query.strategy is Strategy.STRICT:
        return False
    positives = {*query.positives}
    linked = any(c.cls is Class.PAIR and positives >= {*c.refs} for c in query.conjuncts)
    if query.strategy is Strategy.NEXT:
        return linked
    if query.ends_with_stream and len(positives) > 1:
        return True  # all matches wait for the end of the stream
    return linked or not query.waits or len(positives) > 2
