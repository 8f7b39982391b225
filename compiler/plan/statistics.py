"""Statistics of the streams, used to order probes."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field

from seustream.compiler.plan.divide import Attribute, JoinFactor
from seustream.compiler.plan.layout import Layout
from seustream.hdl.isa import Condition

_TYPICAL = {
    Condition.EQ: 0.01,
    Condition.NE: 0.99,
}
_TYPICAL_ORDER = 1 / 3
TYPICAL_ROWS = 1000.0


class StatisticsError(ValueError):
    """A statistics file with invalid content."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """`distinct` counts values by (stream, column), `rows` the tuples of a stream that a window
    typically holds; both by lower-case name. Missing figures are assumed to be typical."""

    distinct: dict[tuple[str, str], float] = field(default_factory=dict)
    rows: dict[str, float] = field(default_factory=dict)

    @classmethod
    def from_json(cls, text: str) -> Statistics:
        """Reads `{"R": {"rows": 500, "distinct": {"a": 100}}}`."""
        try:
            data = json.loads(text)
            distinct: dict[tuple[str, str], float] = {}
            rows: dict[str, float] = {}
            for stream, known in data.items():
                if unknown := set(known) - {"rows", "distinct"}:
                    raise StatisticsError(f"{stream}: unknown member {min(unknown)!r}")
                if "rows" in known:
                    rows[stream.lower()] = float(known["rows"])
                for column, count in known.get("distinct", {}).items():
                    distinct[stream.lower(), column.lower()] = float(count)
        except StatisticsError:
            raise
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise StatisticsError(
                f'want {{"stream": {{"rows": n, "distinct": {{"column": n}}}}}}: {error}'
            ) from None
        if any(not 0 < value < math.inf for value in (*distinct.values(), *rows.values())):
            raise StatisticsError("counts must be positive and finite")
        return cls(distinct, rows)

    def to_json(self) -> dict[str, dict[str, object]]:
        """Returns the form that `from_json` reads back."""
        known: dict[str, dict[str, object]] = {}
        for stream, rows in sorted(self.rows.items()):
            known.setdefault(stream, {})["rows"] = rows
        for stream in sorted({stream for stream, _ in self.distinct}):
            counts = {c: n for (s, c), n in sorted(self.distinct.items()) if s == stream}
            known.setdefault(stream, {})["distinct"] = counts
        return known


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimates over the slots of one layout."""

    statistics: Statistics
    layout: Layout

    def rows(self, slot: int) -> float:
        name = self.layout.slots[slot].stream.name.lower()
        return self.statistics.rows.get(name, TYPICAL_ROWS)

    def selectivity(self, factor: JoinFactor) -> float:
        """Returns the share of pairs that a factor lets through."""
        if factor.condition not in _TYPICAL:
            return _TYPICAL_ORDER
        counts = [self._distinct(side) for side in (factor.left, factor.right)]
        known = [count for count in counts if count is not None]
        equal = 1 / max(known) if known else _TYPICAL[Condition.EQ]
        return equal if factor.condition is Condition.EQ else 1 - equal

    def _distinct(self, side: Attribute) -> float | None:
        name = self.layout.slots[side.slot].stream.name.lower()
        return self.statistics.distinct.get((name, side.column.lower()))
