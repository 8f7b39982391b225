"""Puts the rows of a stream that a pattern defines in order of their times.

A match may be certain before an earlier one: its key has decided, where another key still waits. A
stream has its rows in order, so the later match waits until the watermark has passed it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from seustream.engine.pattern.columns import Ints
from seustream.engine.stream.sorting import lexsort

_TIME, _PLACE = "time", "place"


class Release:
    """Rows that wait for the watermark. Rows of one time come in the order of their `places`, and at
    the same place in the order in which they were added."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = pa.schema(
            [pa.field(_TIME, pa.int64()), pa.field(_PLACE, pa.int64()), *schema]
        )
        self._rows = self._schema.empty_table()

    def add(self, rows: pa.Table, times: Ints, places: Ints) -> None:
        """Takes the rows of matches, with their times."""
        if not rows.num_rows:
            return
        more = pa.Table.from_arrays(
            [pa.array(times), pa.array(places), *rows.columns], schema=self._schema
        )
        rows = pa.concat_tables([self._rows, more]).combine_chunks()
        keys = [rows.column(at).to_numpy() for at in (1, 0)]
        self._rows = rows.take(pa.array(lexsort(keys)))

    def released(self, watermark: int) -> tuple[pa.Table, Ints]:
        """Removes and returns the rows up to the watermark, in order, with their times."""
        times: Ints = self._rows.column(0).to_numpy()
        count = int(np.searchsorted(times, watermark, side="right"))
        rows, self._rows = self._rows.slice(0, count), self._rows.slice(count)
        return rows.select(range(2, rows.num_columns)), times[:count]

    @property
    def waiting(self) -> pa.Table:
        """The rows that wait, for `resume`."""
        return self._rows

    def resume(self, waiting: pa.Table) -> None:
        """Continues with rows that waited in another run."""
        self._rows = waiting
