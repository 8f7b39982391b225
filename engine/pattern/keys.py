"""Numbers for the keys of PARTITION BY."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from seustream.compiler.pattern import ir
from seustream.engine.pattern.batch import EventBatch
from seustream.engine.pattern.columns import Ints

_FEW = 64
"""Rows whose keys are looked up one by one, which takes less than finding those that differ."""


class PartitionKeys:
    """Numbers the keys of a stream as they come. NULL is a key like any other."""

    def __init__(self, partition: tuple[str, ...]) -> None:
        self.known: dict[tuple[Any, ...], int] = {}
        self._partition = partition

    def of(self, batch: EventBatch) -> Ints:
        """The number of each row's key."""
        codes: Ints = np.zeros(len(batch), np.int64)
        if not self._partition:
            self.known.setdefault((), 0)
            return codes
        if len(batch) <= _FEW:
            keys = [
                batch.ts.tolist() if name == ir.TIME else batch.columns[name].to_pylist()
                for name in self._partition
            ]
            return self._numbers(zip(*keys, strict=True))
        for name in self._partition:
            column = pa.array(batch.ts) if name == ir.TIME else batch.columns[name]
            coded = column.dictionary_encode(null_encoding="encode")
            own = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
            codes = codes * (len(coded.dictionary) + 1) + own
            if len(self._partition) > 1:
                codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
        _, first, which = np.unique(codes, return_index=True, return_inverse=True)
        values = [
            (
                batch.ts[first] if name == ir.TIME else batch.columns[name].take(pa.array(first))
            ).tolist()
            for name in self._partition
        ]
        return self._numbers(zip(*values, strict=True))[which]

    def _numbers(self, keys: Iterable[tuple[Any, ...]]) -> Ints:
        known = self.known
        return np.array([known.setdefault(key, len(known)) for key in keys], np.int64)
