"""The signals between a reader of results and the feed of its streams, which runs in the driver's
process.

Spark plans its sources in a Python process beside the driver's, and reveals a query's trigger only
there. The reader therefore leaves its request in a folder of the driver's machine, and the feed its
answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from seustream.spark_feeder.errors import FeedError

_WANTED, _ALL_WANTED, _ANSWERED, _FAILED = "wanted", "all-wanted", "answered", "failed"


@dataclass(frozen=True, slots=True)
class Drain:
    """Exchanges the signals; sent to Spark's workers as it is."""

    folder: str

    def ask(self, all_there: bool) -> None:
        """Requests rows: whatever comes, or everything there is by now, followed by an end."""
        self._at(_ALL_WANTED if all_there else _WANTED).touch()

    @property
    def wanted(self) -> bool:
        return self._at(_WANTED).exists()

    @property
    def all_wanted(self) -> bool:
        return self._at(_ALL_WANTED).exists()

    def answer(self) -> None:
        """Signals that everything there was has been processed."""
        self._at(_ANSWERED).touch()

    def answered(self) -> bool:
        return self._at(_ANSWERED).exists()

    def fail(self, why: str) -> None:
        """Signals that the feed has stopped."""
        partial = self._at(_FAILED + ".partial")
        partial.write_text(why, encoding="utf-8")
        partial.rename(self._at(_FAILED))

    def check(self) -> None:
        """Raises `FeedError` if the feed has stopped."""
        if self._at(_FAILED).exists():
            raise FeedError(self._at(_FAILED).read_text(encoding="utf-8"))

    def _at(self, name: str) -> Path:
        return Path(self.folder) / name
