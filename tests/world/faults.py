"""The faults of a simulated world, when each may happen, and how often each did.

Every job has some of them, each at a rate of its own, until the world calms down.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection

DISK = ("error", "short", "torn", "dead", "late", "lost")
"""Ways in which a call of the disk fails; `SimDisk` knows them."""
KINDS: dict[str, float] = {
    **{f"disk {kind}": 0.006 for kind in DISK},
    "disk error": 0.012,
    "disk short": 0.012,
    "disk lost": 0.001,
    "disk slow": 0.02,
    "disk full": 0.03,
    "bit flipped": 0.02,
    "file cut": 0.006,
    "device slow": 0.3,
    "request lost": 0.03,
    "answer lost": 0.03,
    "request repeated": 0.05,
    "request delayed": 0.05,
    "exchange cut": 0.04,
    "exchange half-open": 0.03,
    "network down": 0.03,
    "bridge killed": 0.06,
    "bridge stopped": 0.04,
    "power lost": 0.03,
    "bridge stalled": 0.03,
    "driver killed": 0.04,
    "task killed": 0.06,
    "task speculated": 0.1,
    "batch repeated": 0.05,
    "clock of day set": 0.04,
    "reader slow": 0.2,
    "queries swapped": 0.05,
    "query registered": 0.04,
    "rows forged": 0.1,
    "power lost after a stop": 0.3,
    "folder forgotten": 0.1,
}
"""Probability of each where it can happen: at a call of the disk, a request, a task, a batch, a
loss of power, or a tick of a world's clock."""
DAMAGE = ("disk lost", "bit flipped", "file cut", "folder forgotten")
"""Only after these may a bridge refuse to go on. A file that is cut is the only damage of its job:
when two of them meet in one record, nothing may be left that shows them."""


class _Chances(dict[str, random.Random]):
    """A stream of chance for each kind, created when it is first asked for."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed = seed

    def __missing__(self, kind: str) -> random.Random:
        return self.setdefault(kind, random.Random(f"{kind} {self._seed}"))


class Faults:
    """Decides which faults happen. Each kind has a stream of chance of its own, so that leaving one
    out changes little else."""

    def __init__(self, seed: int, without: Collection[str] = (), calm: float = 60.0) -> None:
        chosen = random.Random(f"kinds {seed}")
        share = chosen.choice((0.15, 0.4, 0.8))
        kinds = [kind for kind in KINDS if chosen.random() < share]
        self.kinds = [kind for kind in kinds if kind not in without]
        self._rates = {kind: KINDS[kind] for kind in self.kinds}
        self.happened: Counter[str] = Counter()
        self.calm = calm
        self.last = 0.0
        self._chances = _Chances(seed)
        self.disk_kinds = [(kind, f"disk {kind}") for kind in DISK if f"disk {kind}" in self._rates]

    def happens(self, kind: str, now: float) -> bool:
        """Returns whether a fault happens here and now."""
        rate = self._rates.get(kind)
        if rate is None or now > self.calm or self._chances[kind].random() >= rate:
            return False
        if kind in DAMAGE and self.damaged and "file cut" in (kind, *self.happened):
            return False
        self.note(kind, now)
        return True

    def note(self, kind: str, now: float) -> None:
        self.happened[kind] += 1
        self.last = max(self.last, now)

    def of(self, kind: str) -> random.Random:
        """Returns the stream of chance for the details of a kind."""
        return self._chances[kind]

    @property
    def of_disk(self) -> int:
        """Returns how many calls of the disk went wrong."""
        return sum(self.happened[f"disk {kind}"] for kind in (*DISK, "full"))

    @property
    def damaged(self) -> bool:
        return any(self.happened[kind] for kind in DAMAGE)
