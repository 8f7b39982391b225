"""State as plain values for JSON, and back: numbers, texts, None, tuples, lists, deques, dicts,
times, decimals, columns; of a tally the counts. Nothing else is accepted, and reading executes nothing.

    plain({"total": (1.5, 2), "ends": deque([7])})
    == {"dict": [["total", {"tuple": [1.5, 2]}], ["ends", {"deque": [7]}]]}
"""

from __future__ import annotations

import base64
import datetime
from collections import deque
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from seustream.compiler.language.tallies import Tally

_SEQUENCES: dict[str, Any] = {"tuple": tuple, "list": list, "deque": deque}
_TIMES: dict[str, Any] = {
    "datetime": datetime.datetime,
    "date": datetime.date,
    "time": datetime.time,
}
_DTYPES = ("int64", "float64", "bool", "object")


class Unsavable(TypeError):
    """State that a snapshot cannot hold."""


def plain(value: Any) -> Any:
    """Returns a value as plain JSON values; raises `Unsavable` if it cannot."""
    if value is None or isinstance(value, str | bool | int | float):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.generic):
        return plain(value.item())
    for name, of in _SEQUENCES.items():
        if type(value) is of:
            return {name: [plain(each) for each in value]}
    if type(value) is dict or isinstance(value, Tally):
        return {"dict": [[plain(key), plain(each)] for key, each in value.items()]}
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.name in _DTYPES:
        return {"column": value.dtype.name, "values": [plain(each) for each in value.tolist()]}
    if isinstance(value, pa.Array):
        sink = pa.BufferOutputStream()
        batch = pa.record_batch([value], names=["column"])
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return {"arrow": base64.b64encode(sink.getvalue()).decode()}
    if isinstance(value, datetime.timedelta):
        return {"timedelta": value // datetime.timedelta(microseconds=1)}
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return {type(value).__name__: value.isoformat()}
    if isinstance(value, Decimal):
        return {"Decimal": str(value)}
    raise Unsavable(f"{type(value).__name__} is no plain value: {value!r:.80}")


def restored(saved: Any) -> Any:
    """Returns the value that `plain` was given."""
    if not isinstance(saved, dict):
        return saved
    if "column" in saved:
        values = [restored(each) for each in saved["values"]]
        if saved["column"] != "object":
            return np.array(values, saved["column"])
        column = np.empty(len(values), np.object_)
        column[:] = values
        return column
    ((name, inside),) = saved.items()
    if name == "arrow":
        return pa.ipc.open_stream(base64.b64decode(inside)).read_all().column(0).combine_chunks()
    if name == "timedelta":
        return datetime.timedelta(microseconds=inside)
    if name in _TIMES:
        return _TIMES[name].fromisoformat(inside)
    if name == "Decimal":
        return Decimal(inside)
    if name == "dict":
        return {restored(key): restored(each) for key, each in inside}
    return _SEQUENCES[name](restored(each) for each in inside)
