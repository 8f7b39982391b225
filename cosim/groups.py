"""Groups of results as the golden model forms them: those of one push all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from seustream.cosim.pairs import Codes
from seustream.hdl.device import Batch, Grouped, Groups, Ints


@dataclass(frozen=True, slots=True)
class GroupedResults:
    """Results of one query in columns: the query, the number of their period, the codes of key and value, the time of the
    oldest component, and that of the raw tuple."""

    query: Ints
    period: Ints
    key: Ints
    value: Ints
    oldest: Ints
    time: Ints


def members_of(
    grouped: Grouped,
    block: Batch,
    row: Ints,
    attributes: Codes,
    oldest: Ints,
    some: npt.NDArray[np.bool_],
) -> GroupedResults:
    """Returns the members among joined tuples, given each tuple's raw tuple row in the block, its
    attributes by stream and number, and its oldest time."""
    row = row[some]

    def codes(place: tuple[int, int] | None) -> Ints:
        if place is None:
            return np.zeros(len(row), np.int64)
        return attributes[some][:, place[0], place[1]].astype(np.int64)

    time = block.timestamp[row]
    return GroupedResults(
        np.full(len(row), grouped.query, np.int64),
        (time - grouped.offset) // grouped.period,
        codes(grouped.key),
        codes(grouped.value),
        oldest[some],
        time,
    )


def groups_of(members: Sequence[GroupedResults]) -> Groups:
    """Returns the groups of members, in the order of queries, periods and keys."""
    some = [part for part in members if len(part.query)]
    if not some:
        return Groups()
    of = GroupedResults(
        *(
            np.concatenate([getattr(part, one.name) for part in some])
            for one in fields(GroupedResults)
        )
    )
    order = np.lexsort((of.key, of.period, of.query))
    of = GroupedResults(*(getattr(of, one.name)[order] for one in fields(GroupedResults)))
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (
        (of.query[1:] != of.query[:-1])
        | (of.period[1:] != of.period[:-1])
        | (of.key[1:] != of.key[:-1])
    )
    first = np.flatnonzero(begins)
    return Groups(
        of.query[first],
        of.key[first],
        np.diff(np.append(first, len(order))),
        np.add.reduceat(of.value, first),
        np.minimum.reduceat(of.value, first),
        np.maximum.reduceat(of.value, first),
        np.minimum.reduceat(of.oldest, first),
        np.minimum.reduceat(of.time, first),
    )
