"""Every measurement again, and the pages of figures anew.

    python -m tests.docs.paper                    all that this machine and commit have not made yet
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
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seustream.commands import bench
from seustream.compiler.errors import suggest
from tests.docs import figures
from tests.docs.blocks import ROOT
from tests.docs.figures import span

LOGS = ROOT / "build" / "paper"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", metavar="NAME,NAME", help="some of the benchmarks")
    parser.add_argument("--anew", action="store_true", help="also those that are made")
    parser.add_argument("--list", action="store_true", help="list what would run and stop")
    given = parser.parse_args(arguments)
    names = given.only.split(",") if given.only else list(bench.available())
    for name in names:
        if name not in bench.available():
            hint = suggest(name, bench.available(), "benchmarks")
            print(f"paper: there is no benchmark {name!r}\n  hint: {hint}", file=sys.stderr)
            return 2
    found = {name: last(name) for name in names}
    due = [name for name in names if given.anew or not is_made(found[name], bench.environment())]
    due.sort(key=lambda name: length(name, found[name]))
    for name in names:
        if name not in due:
            print(f"{name}: made by this commit on this machine")
    print(f"to make: {', '.join(due) or 'nothing'}{about(found[name] for name in due)}", flush=True)
    if given.list:
        return 0
    failed = [name for number, name in enumerate(due, 1) if not make(name, found, number, len(due))]
    figures.main()
    if failed:
        logs = LOGS.relative_to(ROOT).as_posix()
        print(f"failed: {', '.join(failed)}; what they said is in {logs}/NAME.log")
    print("which figures hold: docs/explanation/papers.md")
    return 1 if failed else 0


def last(name: str) -> Mapping[str, Any]:
    """The last results of a benchmark; empty where there are none."""
    path = bench.folder() / "results" / f"{name}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def is_made(found: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Says whether results are whole, and of this machine and commit."""
    is_known = bool(now["commit"]) and "+" not in now["commit"]
    same = all(found.get(key) == now[key] for key in ("machine", "commit"))
    return is_known and same and found.get("parts") is None


def expected(found: Mapping[str, Any]) -> float | None:
    """The seconds that a benchmark took last, the whole of it."""
    return None if found.get("parts") else found.get("seconds")


def length(name: str, found: Mapping[str, Any]) -> tuple[bool, bool, float]:
    """What benchmarks are ordered by: known and short ones first."""
    seconds = expected(found)
    is_long = bool(bench.said(bench.available()[name]).get("LONG"))
    return seconds is None, is_long, seconds or 0


def about(found: Iterable[Mapping[str, Any]]) -> str:
    """How long some benchmarks take together, as far as that is known."""
    times = [expected(one) for one in found]
    if not times:
        return ""
    known = [seconds for seconds in times if seconds is not None]
    unknown = len(times) - len(known)
    said = [f"about {span(sum(known))}"] if known else []
    said += [f"{unknown} of unknown length"] if unknown else []
    return f" ({' and '.join(said)})"


def make(name: str, found: Mapping[str, Mapping[str, Any]], number: int, count: int) -> bool:
    """Runs one; says whether it went well."""
    print(f"[{number}/{count}] {name}{about([found[name]])} …", end=" ", flush=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    path = LOGS / f"{name}.log"
    with path.open("w") as log:
        line = [sys.executable, "-m", "seustream", "bench", name]
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
