"""Jobs in a simulated world, seed after seed: `python -m tests.world.campaign`.

Prints what happened, and of the first violation its story, shrunk. With `--planted` it puts each fault of
`tests.world.planted` into the product and says which seed finds it.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import multiprocessing.pool
import sys
from collections import Counter

from tests import campaigns
from tests.world.faults import KINDS
from tests.world.planted import PLANTED, planted
from tests.world.world import Violation, play, shrink

_BLOCK = 50
_COLLECTED = 25
"""Jobs of a process between two collections of garbage."""


def begin() -> None:
    """Begins a process of the campaign: garbage is collected between jobs, and only that of
    jobs."""
    gc.collect()
    gc.freeze()
    gc.disable()


def job(seed: int) -> tuple[int, Counter[str], bool, float, str | None]:
    """Plays a seed; returns what happened, whether a bridge refused, how long it took to drain, and
    the violation."""
    if seed % _COLLECTED == 0:
        gc.collect()
    try:
        played = play(seed)
    except Violation as found:
        return seed, Counter(), False, 0.0, found.what
    drained = played.simulation.time - played.faults.last
    return seed, played.faults.happened, played.refused is not None, drained, None


def search(name: str, first: int, seeds: int) -> tuple[str, int | None, str]:
    """Searches for the first seed that finds a planted fault."""
    with planted(name):
        for seed in range(first, first + seeds):
            if seed % _COLLECTED == 0:
                gc.collect()
            try:
                play(seed)
            except Violation as found:
                return name, seed, found.what
    return name, None, ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=None, help="(100,000; 10,000 a planted fault)")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--planted", nargs="*", default=None, metavar="NAME")
    campaigns.add_options(parser)
    options = parser.parse_args()
    # Whatever greenlets leave behind slows a process down after some thousand jobs.
    of = multiprocessing.get_context("spawn")
    with of.Pool(options.jobs, begin, maxtasksperchild=100) as pool:
        if options.planted is not None:
            return _planted(pool, options)
        work = campaigns.Work("world", options)
        wrong, longest = [], 0.0
        for first in work.cases(work.first + (options.seeds or 100_000), _BLOCK):
            for seed, found, no, drained, what in pool.map(job, range(first, first + _BLOCK), 5):
                work.found += found
                work.found["refused over a disk that lied"] += no
                longest = max(longest, drained)
                if what is not None:
                    wrong.append(seed)
                    print(f"seed {seed}: {what}", flush=True)
            if wrong:
                break
    work.close()
    print(f"{work.count / work.took:.1f} jobs a second, {len(wrong)} violations,", end=" ")
    print(f"drained at most {longest:.0f} virtual seconds after the last fault")
    for kind, count in sorted(work.found.items()):
        print(f"  {count:9,}  {kind}")
    if wrong:
        _tell(wrong[0])
    return 1 if wrong or not all(work.found[kind] for kind in KINDS) else 0


def _tell(seed: int) -> None:
    try:
        play(seed)
    except Violation as found:
        least = shrink(found)
        print(f"\n{least}, with {least.rows} rows, without {', '.join(least.without)}:")
        print(least.story)


def _planted(pool: multiprocessing.pool.Pool, options: argparse.Namespace) -> int:
    work = campaigns.Work("world planted", options)
    names = options.planted or list(PLANTED)[work.first :]
    cases = [(name, 0, options.seeds or 10_000) for name in names]
    missed = 0
    for done in [pool.apply_async(search, case) for case in cases]:
        name, seed, what = done.get()
        missed += seed is None
        within = "not found" if seed is None else f"within {10 ** len(str(seed)):,} seeds"
        work.found[within] += 1
        work.count += 1
        tries = "NOT FOUND" if seed is None else f"{seed + 1:6,} seeds"
        print(f"{tries}  {name}: {what:.90}", flush=True)
    if not options.planted and not missed:
        work.close(whole=len(PLANTED))
    print(f"{len(cases)} planted, {len(cases) - missed} found, in {work.took:.0f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
