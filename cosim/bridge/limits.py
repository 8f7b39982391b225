"""The limits of one bridge."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits at which a bridge refuses, or waits.

    batch_rows     rows of one record batch
    batch_bytes    and its bytes
    epoch_rows     rows of an epoch: they are sorted together, so they are in memory together
    epoch_bytes    and their bytes, as they are on disk
    waiting_rows   rows committed and not yet processed, before commits wait
    result_rows    results kept for readers, before processing waits
    result_bytes   and their bytes
    journal_bytes  of inputs, before a snapshot replaces them
    replay_seconds of work, before a snapshot replaces it: a restart would repeat it
    queries        names of queries, running or ended
    query_text     characters of a text with statements
    live_rows      of the last results kept of each
    live_bytes     and their bytes
    sources        streams that sources may announce
    max_latency    milliseconds that rows of sources may wait for others, to be processed together
    memory         bytes of the process above which it takes no more rows; None: no limit
    call_seconds   a call of a user's function, before it is ended and its query fails
    patience       seconds a call waits for room before it is refused as `busy`
    """

    batch_rows: int = 1 << 20
    batch_bytes: int = 256 << 20
    epoch_rows: int = 1 << 23
    epoch_bytes: int = 1 << 30
    waiting_rows: int = 1 << 21
    result_rows: int = 1 << 21
    result_bytes: int = 512 << 20
    journal_bytes: int = 256 << 20
    replay_seconds: float = 2.0
    queries: int = 10_000
    query_text: int = 1 << 22
    live_rows: int = 10_000
    live_bytes: int = 4 << 20
    sources: int = 256
    max_latency: int = 50
    memory: int | None = None
    call_seconds: int = 30
    patience: float = 30.0

    def within(self, memory: int) -> Limits:
        """Returns the limits of a bridge that may use this much memory: one half is for waiting
        data, the other for windows and work."""
        return replace(
            self,
            memory=memory,
            batch_bytes=min(self.batch_bytes, memory // 16),
            epoch_bytes=min(self.epoch_bytes, memory // 8),
            result_bytes=min(self.result_bytes, memory // 4),
        )


USUAL = Limits()
