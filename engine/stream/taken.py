"""Takes some rows of a column.

A kernel does this in a fiftieth of the code that Arrow's own function runs through, which matters
where steps are small.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.engine.kernels import native

Places = npt.NDArray[np.int64] | npt.NDArray[np.int32]

Exported = tuple[object, object]
"""A column as `__arrow_c_array__` gives it."""


def taken(column: pa.Array, places: Places) -> pa.Array:
    """Returns the rows of a column in some places, all of which exist."""
    return of_pieces([column], places)


def of_pieces(pieces: Sequence[pa.Array], places: Places) -> pa.Array:
    """Returns the rows in some places of a column in pieces, at least one."""
    found = of_exported([piece.__arrow_c_array__() for piece in pieces], places, pieces[0].type)
    return pa.concat_arrays(pieces).take(pa.array(places)) if found is None else found


def of_exported(pieces: Sequence[Exported], places: Places, of: pa.DataType) -> pa.Array | None:
    """Returns the same for pieces that have been exported, which they can be once for many calls; None for
    a type that the kernel does not know."""
    together: Any = np.ascontiguousarray(places)
    found = native.taken(tuple(pieces), together)
    return None if found is None else made(found, of)


def rows_taken(rows: pa.Table, places: Places) -> pa.Table:
    """Returns the rows of a table in some places, all of which exist; each column is one array."""
    columns = []
    for column in rows.columns:
        pieces = column.chunks or [pa.array([], column.type)]
        columns.append(of_pieces(pieces, places))
    return pa.Table.from_arrays(columns, schema=rows.schema)


def made(found: native.Made, of: pa.DataType) -> pa.Array:
    """Returns a column of a type that a kernel has made. Arrow's public way, through capsules, takes
    twice the time."""
    _, address = found
    return pa.Array._import_from_c(address, of)
