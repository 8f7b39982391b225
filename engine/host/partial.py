"""Turns results that a device has counted into rows again: as many of each group as it counted.

Their readers use only the key, and count, sum, mean, minimum and maximum of the value. So any rows
will do that agree in these: several with the least and with the greatest value, and one in between
that makes up the sum.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.plan.divide import Attribute, Division
from seustream.compiler.plan.encoding import Encoding
from seustream.compiler.plan.partial import PartialGroups
from seustream.engine.host.encode import decode
from seustream.engine.stream.answers import result_schema
from seustream.engine.stream.schema import arrow_type
from seustream.hdl.device import Groups

Encodings = Mapping[tuple[str, str], Encoding]
Ints = npt.NDArray[np.int64]


def members(groups: Groups) -> tuple[Ints, Ints]:
    """Returns the members of groups, side by side: for each, its group's place and the code of its
    value."""
    span = groups.greatest - groups.least
    above = groups.total - groups.count * groups.least
    many, rest = np.divmod(above, np.where(span > 0, span, 1))
    # One more row takes the remainder; where all values are alike, it is one of them.
    counts = np.column_stack((groups.count - many - 1, many, np.ones(len(groups), np.int64)))
    values = np.column_stack((groups.least, groups.greatest, groups.least + rest))
    return np.repeat(np.arange(len(groups)), groups.count), np.repeat(
        values.reshape(-1), counts.reshape(-1)
    )


def rows_of_groups(
    partial: PartialGroups,
    division: Division,
    encodings: Encodings,
    groups: Groups,
) -> pa.Table:
    """Returns the results of a query that a device has counted, each at the time of its group's
    first."""
    query = division.query
    place, value = members(groups)
    columns = []
    for item in query.items:
        e = item.expression
        assert isinstance(e, x.ColumnReference)
        stream = query.sources[e.source].stream.name
        is_key = partial.key == Attribute(division.slots[e.source], e.name)
        codes = groups.key[place] if is_key else value
        columns.append(decode(codes, encodings[stream, e.name], arrow_type(e.type)))
    times = [pa.array(groups.oldest[place]), pa.array(groups.first[place])]
    return pa.Table.from_arrays([*columns, *times], schema=result_schema(query))


def in_turn(answer: pa.Table, counted: pa.Table) -> pa.Table:
    """Merges single results and counted ones, by their times."""
    both = pa.concat_tables([answer, counted])
    order = np.argsort(np.asarray(both.column(both.num_columns - 1)), kind="stable")
    return both.take(pa.array(order))
