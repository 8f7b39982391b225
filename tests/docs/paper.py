"""Every measurement again, and the pages of figures anew.

    python -m tests.docs.paper                    all that this machine and commit have not made yet
    python -m tests.docs.paper --full             at full size, hours; without, long ones are shortened
    python -m tests.docs.paper --only plans,smj   some of them
    python -m tests.docs.paper --anew             also what is there
    python -m tests.docs.paper --list             what would run, and how long each took last

The benchmarks are those of `bench/`, each in a process of its own, the short ones first. One that fails
does not stop the others; it is named at the end, and its output is in `build/paper/`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from seustream.commands import bench
from seustream.compiler.errors import suggest
from tests.docs import figures
from tests.docs.blocks import ROOT
from tests.docs.figures import span

LOGS = ROOT / "build" / "paper"
MINUTES: dict[str, tuple[float, float]] = {
    "boards": (11, 900),
    "bridge": (1, 1),
    "compile": (0.1, 0.1),
    "copies": (0.2, 0.2),
    "core": (15, 60),
    "device": (10, 10),
    "engines": (6, 14),
    "golden": (0.1, 0.1),
    "growth": (0.3, 2),
    "joins": (3, 3),
    "largest": (12, 180),
    "lengths": (0.1, 10),
    "memory": (0.5, 3),
    "nexmark": (5, 5),
    "outer": (0.2, 0.2),
    "pattern_costs": (1, 3),
    "pattern_memory": (0.3, 0.3),
    "patterns": (4, 25),
    "peers": (1, 30),
    "planners": (0.2, 0.2),
    "plans": (0.1, 0.1),
    "prefilter": (0.2, 0.2),
    "queries": (1, 1),
    "simulators": (2, 2),
    "sizes": (4, 20),
    "sliding": (0.5, 4),
    "smj": (3, 15),
    "spark": (3, 9),
    "startup": (0.1, 1),
    "steps": (1, 1),
    "temporal": (3, 3),
    "temporal_streams": (0.5, 0.5),
    "worked": (0.5, 0.5),
}
"""By benchmark, the minutes it takes on two cores, shortened and in full."""
FETCHED = {"core": "SEUSTREAM_CORE"}
"""Benchmarks that compare with something a user fetches and builds, by the variable with its
path."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", metavar="NAME,NAME", help="some of the benchmarks")
    parser.add_argument(
        "--full", action="store_true", help="measure at full size, which takes hours"
    )
    parser.add_argument("--anew", action="store_true", help="also those that are made")
    parser.add_argument("--list", action="store_true", help="list what would run and stop")
    given = parser.parse_args(arguments)
    there = [n for n in bench.available() if n not in FETCHED or FETCHED[n] in os.environ]
    names = given.only.split(",") if given.only else there
    for name in names:
        if name not in bench.available():
            hint = suggest(name, bench.available(), "benchmarks")
            print(f"paper: there is no benchmark {name!r}\n  hint: {hint}", file=sys.stderr)
            return 2
    found, now = {name: last(name) for name in names}, bench.environment()
    times = {name: expected(name, found[name], given.full) for name in names}
    due = [name for name in names if given.anew or not is_made(found[name], now, given.full)]
    due.sort(key=times.__getitem__)
    for name in names:
        if name not in due:
            print(f"{name}: made by this commit on this machine")
    together = f" (about {span(sum(map(times.__getitem__, due)))})" if due else ""
    print(f"to make: {', '.join(due) or 'nothing'}{together}", flush=True)
    if given.list:
        for name in due:
            print(f"  {name}: about {span(times[name])}")
        return 0
    failed = []
    for number, name in enumerate(due, 1):
        print(f"[{number}/{len(due)}] {name} (about {span(times[name])}) …", end=" ", flush=True)
        if not make(name, given.full):
            failed.append(name)
    figures.main()
    if failed:
        logs = LOGS.relative_to(ROOT).as_posix()
        print(f"failed: {', '.join(failed)}; what they said is in {logs}/NAME.log")
    print("which figures hold: docs/explanation/papers.md")
    return 1 if failed else 0


def last(name: str) -> Mapping[str, Any]:
    """Returns the last results of a benchmark; empty if there are none."""
    path = bench.folder() / "results" / f"{name}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def is_made(found: Mapping[str, Any], now: Mapping[str, Any], is_full: bool) -> bool:
    """Returns whether results are complete, of this machine and commit, and of the requested
    size."""
    is_known = bool(now["commit"]) and "+" not in now["commit"]
    same = all(found.get(key) == now[key] for key in ("machine", "commit"))
    return is_known and same and found.get("parts") is None and (not is_full or not is_short(found))


def is_short(found: Mapping[str, Any]) -> bool:
    """Returns whether results are of the smaller sizes."""
    return bool(found.get("short"))


def expected(name: str, found: Mapping[str, Any], is_full: bool) -> float:
    """Returns the seconds that a benchmark will take: its last time at this size, or else the
    listed one."""
    took = found.get("seconds")
    whole = found.get("parts") is None
    short, full = MINUTES[name]
    of_size = is_full != is_short(found) or short == full
    return float(took) if took and whole and of_size else 60.0 * (full if is_full else short)


def make(name: str, is_full: bool) -> bool:
    """Runs a benchmark; returns whether it succeeded."""
    LOGS.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    path = LOGS / f"{name}.log"
    with path.open("w") as log:
        line = [sys.executable, "-m", "seustream", "bench", *([] if is_full else ["--short"]), name]
        done = subprocess.run(line, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT)
    is_good = done.returncode == 0
    said = path.read_text("utf-8", "replace").strip().splitlines()
    why = "" if is_good or not said else f": {said[-1]}"
    took = span(time.monotonic() - begun)
    print(f"{'done' if is_good else 'FAILED'} in {took}{why}", flush=True)
    return is_good


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
    print("\nstopped: what is made is kept, and the next call goes on", file=sys.stderr)
    sys.exit(130)
