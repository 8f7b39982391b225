"""Records what campaigns have done so far, so that sessions add up: `bench/results/campaigns.json`.

    work = Work("world", options)       # goes on where the last one ended, with --record
    for seed in work.cases(100_000):
        work.found[play(seed)] += 1
    work.close()

A campaign is a series of numbered cases. The first `done` ones went right: one that goes wrong ends the
campaign. Most are run by `run_cases`, in several processes.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
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


Case = Callable[[int], Counter[str]]
"""Runs the case with a number; returns what it counts. Any error counts as a difference."""


def run_cases(
    name: str,
    whole: int,
    case: Case,
    arguments: Sequence[str] | None = None,
    about: str | None = None,
) -> int:
    """Runs a campaign from the command line, to its end at the first block with a case that goes wrong.
    Returns the exit status."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--cases",
        type=int,
        default=whole,
        help="how many; with --record, up to which (%(default)s)",
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    add_options(parser)
    options = parser.parse_args(arguments)
    work, wrong = Work(name, options), list[str]()
    end = options.cases if options.record else work.first + options.cases
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for first in work.cases(end, _BLOCK):
            seeds = range(first, min(first + _BLOCK, end))
            for counts, story in pool.imap(partial(_told, case), seeds, 5):
                work.found += counts
                wrong += [story] if story is not None else []
            if wrong:
                break  # and no case of its block counts as right
    work.close(end)
    print("\n".join(wrong))
    print(f"{name}: {dict(work.found)}, {len(wrong)} differ")
    return int(bool(wrong))


def _told(case: Case, seed: int) -> tuple[Counter[str], str | None]:
    """Returns what a case counts, and an account of what goes wrong."""
    try:
        return case(seed), None
    except Exception:
        return Counter(), f"seed {seed}\n{traceback.format_exc(-4)}"


_BLOCK = 40
"""Cases between two looks at the clock."""
