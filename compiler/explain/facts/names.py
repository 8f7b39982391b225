"""Names the numbers of a compilation in the reader's words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from seustream.compiler.explain.marks import circled, sigma
from seustream.compiler.logical.program import Query
from seustream.compiler.pipeline import Compilation
from seustream.compiler.plan.divide import JoinFactor, SelectionTerm
from seustream.compiler.plan.normalise import Normalised
from seustream.compiler.plan.routes import Step
from seustream.hdl.device import Retention, Window, WindowKind

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


class View:
    """A compilation, whole or restricted to one query: selects what to show, and names it. One query
    is shown on the device that has it."""

    def __init__(self, c: Compilation, query: str | None = None) -> None:
        names = [q.name for q in c.program.relations]
        if query is not None and query.lower() not in [name.lower() for name in names]:
            known = ", ".join(names) or "none"
            raise ValueError(f"no query {query!r}; queries: {known}")
        self.only = None if query is None else query.lower()
        self.c = c if query is None else next(filter(self._has, c.devices), c)

    def _has(self, device: Compilation) -> bool:
        return any(self.wants(one.division.query) for one in device.device_queries)

    @property
    def name(self) -> str | None:
        """Returns the one query that this view covers, as it is written."""
        return next((r.name for r in self.c.program.relations if r.name.lower() == self.only), None)

    def wants(self, query: Query) -> bool:
        """Returns whether a query is shown. The parts of an operation, named after it with a #, are
        included."""
        name = query.name.lower()
        return self.only is None or name == self.only or name.startswith(f"{self.only}#")

    @cached_property
    def queries(self) -> list[Query]:
        return [q for q in self.c.program.queries if self.wants(q)]

    @cached_property
    def normalised(self) -> list[Normalised]:
        return [one for one in self.c.normalised if self.wants(one.division.query)]

    @cached_property
    def numbers(self) -> frozenset[int]:
        """Returns the device numbers of the wanted queries."""
        queries = enumerate(self.c.device_queries)
        return frozenset(number for number, one in queries if self.wants(one.division.query))

    @cached_property
    def subqueries(self) -> frozenset[int]:
        mine = self.numbers
        return frozenset(s.number for s in self.c.subqueries if mine.intersection(s.parents))

    @cached_property
    def tags(self) -> frozenset[int]:
        """Returns the route tags that lead to a wanted query, including those of its own streams'
        raw tuples."""
        wanted = self.subqueries
        slots = {slot for s in self.c.subqueries if s.number in wanted for slot in s.slots}
        return frozenset(
            tag.number
            for tag in self.c.routes.tags
            if (len(tag.bound) == 1 and tag.bound <= slots) or tag.subqueries & wanted
        )

    @cached_property
    def steps(self) -> list[Step]:
        tags = self.tags
        return [s for s in self.c.routes.steps if s.pre in tags and s.post in tags]

    # --- names ----------------------------------------------------------------

    def slot(self, number: int) -> str:
        return self.c.layout.slots[number].name

    def slots(self, numbers: Iterable[int]) -> tuple[str, ...]:
        return tuple(self.slot(number) for number in sorted(numbers))

    def device_queries(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """Returns the names of wanted queries by their device numbers."""
        wanted = self.numbers
        queries = self.c.device_queries
        return tuple(queries[n].division.query.name for n in sorted(numbers) if n in wanted)

    def factor(self, factor: JoinFactor) -> str:
        """Shows a factor by the names of the join areas, which do not depend on a query's aliases."""
        left, right = factor.left, factor.right
        return (
            f"{self.slot(left.slot)}.{left.column} {factor.condition.symbol}"
            f" {self.slot(right.slot)}.{right.column}"
        )

    def selection_mark(self, slot: int, bit: int) -> str:
        """Returns the mark of a selection. Selections are numbered across all join areas, as
        factors are."""
        before = sum(map(len, self.c.requests.selections[:slot]))
        return sigma(before + bit + 1)

    def step_selections(self, step: Step) -> list[tuple[int, int]]:
        """Returns the join area and bit of every selection that a step checks: the window's, then
        the probe's."""
        probe = min(self.c.routes.tags[step.pre].bound)
        window = [(step.area, bit) for bit in step.window_selections]
        return window + [(probe, bit) for bit in step.probe_selections]


def bracketed(term: SelectionTerm) -> str:
    return f"[{term.text}]"


def marks(factors: Iterable[int]) -> str:
    """Shows factor numbers as the request table does."""
    return " ".join(circled(number) for number in factors)


@dataclass(frozen=True, slots=True)
class WindowOf:
    """A stream's window in a query; `text` is for people."""

    stream: str
    kind: str
    size: int
    text: str


def window_of(stream: str, window: Window) -> WindowOf:
    return WindowOf(stream, window.kind.name.lower(), window.size, window_text(window))


def window_text(window: Window) -> str:
    if window.kind is WindowKind.RANGE:
        return f"RANGE {span_text(window.size)}" if window.size else "NOW"
    return str(window)


def span_text(ticks: int) -> str:
    """Shows ticks in the largest unit that divides them; below a second, as plain ticks."""
    for size, unit in _UNITS:
        if ticks and ticks % size == 0:
            return f"{ticks // size} {unit}"
    return str(ticks)


def retention_text(kept: Retention) -> str:
    if kept.range is None:
        return "for ever"
    parts = []
    if kept.range >= 0:
        whole = kept.range % 1000 == 0
        ticks = span_text(kept.range) if whole else f"{kept.range:,} ticks"
        parts.append(ticks if kept.range else "this instant")
    if kept.rows:
        parts.append(f"the last {kept.rows:,}")
    return " or ".join(parts) or "not at all"


def windows_text(windows: Iterable[WindowOf]) -> str:
    """Shows one window if all streams have the same."""
    windows = tuple(windows)
    if len({w.text for w in windows}) == 1:
        return windows[0].text
    return ", ".join(f"{w.stream}: {w.text}" for w in windows)
