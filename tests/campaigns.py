"""Records what campaigns have done so far, so that sessions add up: `bench/results/campaigns.json`.

    work = Work("world", options)       # goes on where the last one ended, with --record
    for seed in work.cases(100_000):
        work.found[play(seed)] += 1
    work.close()

A campaign is a series of numbered cases. The first `done` ones went right: one that goes wrong ends the
campaign.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "bench/results/campaigns.json"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--first", type=int, default=0, help="the first case (%(default)s)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so many")
    parser.add_argument(
        "--record", action="store_true", help="go on where the record ends, and add to it"
    )


def recorded() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(FILE.read_text()) if FILE.exists() else {}
    return found


class Work:
    """One run of a campaign; `found` counts what happened in it. A run that does not add up to
    others is made `anew`: its record is that of the last run. So is a run whose record is `of`
    something else."""

    def __init__(
        self, name: str, options: argparse.Namespace, anew: bool = False, of: str = ""
    ) -> None:
        self.name, self.recording, self._of = name, options.record, of
        self._anew = anew or recorded().get(name, {}).get("of", "") != of
        before = {} if self._anew else recorded().get(name, {})
        self.first = before.get("done", 0) if options.record else options.first
        self.found: Counter[str] = Counter()
        self.count = 0
        self._seconds, self._begun = options.seconds, time.monotonic()

    @property
    def took(self) -> float:
        return time.monotonic() - self._begun

    def cases(self, end: int, step: int = 1) -> Iterator[int]:
        """Yields numbers of cases until there are no more, or the time is over; in steps of this
        many. When one is asked for, those before it went right."""
        for number in range(self.first, end, step):
            if self.took > self._seconds:
                return
            yield number
            self.count += min(step, end - number)

    def close(self, whole: int | None = None) -> None:
        """Prints how many cases there were, of `whole` if that is given, and records them."""
        done = self.first + self.count
        print(f"{self.name}: cases {self.first:,} to {done:,}", end="")
        print(f"{f' of {whole:,}' if whole else ''} in {self.took:.0f} s")
        if not self.recording or not self.count:
            return
        all = recorded()
        before = {} if self._anew else all.get(self.name, {})
        found = Counter(before.get("found", {})) + self.found
        all[self.name] = {
            **({"of": self._of} if self._of else {}),
            "done": done,
            **({"whole": whole} if whole else {}),
            "seconds": round(before.get("seconds", 0) + self.took),
            "found": dict(sorted(found.items())),
        }
        FILE.write_text(json.dumps(dict(sorted(all.items())), indent=1) + "\n")
