"""A join that several queries share.

    R.k = S.k AND R.v = 17      the join R.k = S.k of the rows of R that some query wants,
    R.k = S.k AND R.v = 23      whose results are looked up by R.v

Queries share a join if they read the same streams in the same windows and have the same equalities
between two of these. The join applies the conditions that all of them have; the rest of each
query's conditions are decided on its results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.logical.program import Query
from seustream.engine.host.answers import JoinRows
from seustream.engine.host.candidates import Answers, Member
from seustream.engine.host.constants import ConstantIndex, intervals
from seustream.engine.host.families import Family, by_interval, may_fault
from seustream.engine.host.grouping import Grouping
from seustream.engine.host.join import Side, WindowJoin
from seustream.engine.stream.faults import QueryFaults
from seustream.engine.stream.numbers import Key
from seustream.hdl.isa import Condition

Ints = npt.NDArray[np.int64]


def shape(query: Query) -> tuple[object, ...] | None:
    """Returns the features that queries sharing a join have in common. Returns None for a query
    without an equality between two streams: its results may be many more than any query asks
    for."""
    conditions = x.conjuncts(query.where)
    equal = frozenset(e for e in conditions if _links(e))
    if not equal:
        return None
    sources = tuple((s.alias, s.stream.name, s.window) for s in query.sources)
    interval, _ = by_interval(conditions)
    return sources, equal, None if interval is None else interval.key


def _links(e: x.Expression) -> bool:
    if not isinstance(e, x.Compare) or e.condition is not Condition.EQ:
        return False
    left, right = x.sources(e.left), x.sources(e.right)
    return len(left) == len(right) == 1 and left != right


class SharedJoin:
    """The join of queries of one shape, and the families that are answered from its results."""

    def __init__(
        self,
        queries: Sequence[Query],
        sides: list[Side],
        groupings: Mapping[str, Grouping],
        faults: Mapping[str, QueryFaults],
    ) -> None:
        self.sides = sides
        conditions = [x.conjuncts(query.where) for query in queries]
        everywhere = set(conditions[0]).intersection(*conditions[1:])
        common = tuple(
            e for e in conditions[0] if e in everywhere and (_links(e) or not may_fault(e))
        )
        members: dict[Key | None, list[Member]] = {}
        for query, all_of_it in zip(queries, conditions, strict=True):
            interval, rest = by_interval([e for e in all_of_it if e not in common])
            name = query.name
            member = Member(query, interval, rest, faults[name])
            members.setdefault(None if interval is None else interval.key, []).append(member)
        self.queries = tuple(queries)
        self.families = [Family(some, groupings) for some in members.values()]
        wanted: dict[int, list[ConstantIndex]] = {}
        found = [intervals(all_of_it) for all_of_it in conditions]
        for key in found[0]:
            sources = x.sources(key[0])
            if len(sources) == 1 and all(key in some for some in found):
                (source,) = sources
                index = ConstantIndex([some[key] for some in found])
                wanted.setdefault(source, []).append(index)
        self.join = WindowJoin(common, sides, wanted=wanted)

    def answers(self, new: list[Ints], skips: Callable[[Query], bool]) -> Answers:
        """Yields answers like `Family.answers`, for rows that have just arrived."""
        for found in self.join.results(new, Faults()):
            for family in self.families:
                yield from family.answers(JoinRows(self.sides, found), skips)
