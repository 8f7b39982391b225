"""Many random cases on all devices: `python -m tests.system.campaign --kind rtl --cases 2000`.

    models    query sets on streams, golden and instruction-level model against DuckDB
    rtl       the same on the golden model and the RTL, in every named configuration
    crowded   the same in one whose FIFOs hold a single probe
    swaps     images one after the other on the golden model and the RTL, some of whose results are grouped, in
              these and in ones whose counters come round soon or never and whose windows are full soon or never
    groups    queries that group by windows of time, on a model or the RTL against the engine alone, in
              configurations with many places for groups and with few
    patterns  patterns whose candidates a model or the RTL finds, against the engine alone, in every named
              configuration
    keys      equi-joins on keys in order, at random, in one bucket, by Zipf, all equal, on the models and the RTL
              against the brute-force definition
    programs  what a loader derives of a random program, and its rows as proved, against truth tables

The RTL's ports are held back at random. Spread over processes; every failing seed of a block is printed, and ends its kind. It can be run alone with --first and
--cases 1. With --record a kind goes on where the last run of the same processor ended.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import dataclasses
import io
import sys
from collections import Counter
from collections.abc import Callable

from seustream.compiler.plan import candidates
from seustream.cosim.golden import GoldenDevice
from seustream.cosim.iss import IssDevice
from seustream.cosim.verilated.device import VerilatedDevice
from seustream.hdl.boards.identity import processor_version
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.device import Device
from tests import campaigns
from tests.cosim.contract import CROWDED, NARROW, SHALLOW, TINY
from tests.cosim.devices import held
from tests.cosim.keys import KEYS, joined
from tests.cosim.swaps import play, same, swaps
from tests.engine.host import test_partial
from tests.engine.pattern import test_candidates
from tests.hdl.test_program import derived
from tests.system.differential import MODELS, Difference, run_case

_SWAPPED = (
    *CONFIGURATIONS.values(),
    NARROW,
    SHALLOW,
    dataclasses.replace(TINY, name="tiny16", timestamp_width=16, sequence_width=8),
    dataclasses.replace(TINY, name="wide", timestamp_width=64, sequence_width=64, lanes=16),
    dataclasses.replace(TINY, name="least", streams=2, depth=2, lanes=1, probe_fifo_depth=1),
)


DEVICES = ("golden", "iss", "verilated")


def on_models(seed: int) -> int:
    return run_case(seed, MODELS)


def on_rtl(seed: int) -> int:
    return run_case(seed, ("golden", "verilated"), list(CONFIGURATIONS)[seed % len(CONFIGURATIONS)])


def in_a_crowd(seed: int) -> int:
    return run_case(seed, ("golden", "verilated"), CROWDED.name)


def grouped(seed: int) -> int:
    model = DEVICES[seed % len(DEVICES)]
    config = ("default", "tiny", "grouping")[seed // len(DEVICES) % 3]
    found = Counter[str]()
    _asserted(seed, lambda: test_partial.check(seed, found, model, config))
    return found["rows"]


def patterns(seed: int) -> int:
    candidates.MOST = float("inf")  # also where there will be many
    found = Counter[str]()
    model, config = (
        DEVICES[seed % len(DEVICES)],
        list(CONFIGURATIONS)[seed // len(DEVICES) % len(CONFIGURATIONS)],
    )
    _asserted(seed, lambda: test_candidates.check(seed, found, model, config))
    return found["matches"]


def on_keys(seed: int) -> int:
    kind, streams = list(KEYS)[seed % len(KEYS)], 2 + seed // len(KEYS) % 2
    results = 0
    for made in (GoldenDevice, IssDevice, VerilatedDevice):

        def device(config: DeviceConfig, made: Callable[[DeviceConfig], Device] = made) -> Device:
            return held(made(config), seed)

        came, want = joined(seed, kind, streams, device)
        if came != want:
            missing, extra = Counter(want) - Counter(came), Counter(came) - Counter(want)
            some = f"missing {list(missing)[:3]}, too many {list(extra)[:3]}"
            raise Difference(
                f"seed {seed}, keys {kind}, {streams} streams, {made.__name__}: {some}"
            )
        results = len(want)
    return results


def programs(seed: int) -> int:
    found = Counter[str]()
    _asserted(seed, lambda: found.update(derived(seed)))
    if found["too many variables"]:
        return -1
    return found["joins"]


def _asserted(seed: int, check: Callable[[], object]) -> None:
    """Runs a check of the tests quietly; a failure names its seed."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            check()
    except AssertionError as error:
        raise Difference(f"seed {seed}: {error}") from None


def changing(seed: int) -> int:
    config: DeviceConfig = _SWAPPED[seed % len(_SWAPPED)]
    case = swaps(seed, config, tuples=200, images=12)
    got = play(held(VerilatedDevice(config), seed), case)
    want = play(GoldenDevice(config), case)
    if not same(case, got, want, processor=True):
        raise Difference(f"seed {seed}, configuration {config.name}: {got[-1]}, want {want[-1]}")
    return len(want[0][1]) + sum(group[0] for group in want[0][0].values())


KINDS: dict[str, tuple[Callable[[int], int], int]] = {
    "models": (on_models, 20_000),
    "rtl": (on_rtl, 10_000),
    "crowded": (in_a_crowd, 1_000),
    "groups": (grouped, 3_000),
    "patterns": (patterns, 3_000),
    "swaps": (changing, 2_000),
    "keys": (on_keys, 3_000),
    "programs": (programs, 100_000),
}
_BLOCK = 40
"""Cases between two looks at the clock."""


def attempt(kind: str, seed: int) -> tuple[int, str]:
    try:
        return KINDS[kind][0](seed), ""
    except Difference as error:
        return 0, str(error)
    except Exception as error:  # a crash is a finding, too, with its seed
        return 0, f"seed {seed}: {type(error).__name__}: {error}"


def campaign(
    kind: str, options: argparse.Namespace, pool: concurrent.futures.Executor
) -> tuple[int, int]:
    """Runs the cases of one kind; returns how many there were, and how many failed."""
    work, failed = campaigns.Work(f"device {kind}", options, of=f"{processor_version():08x}"), 0
    whole = KINDS[kind][1]
    end = whole if options.record else work.first + (options.cases or whole)
    for first in work.cases(end, _BLOCK):
        seeds = range(first, min(first + _BLOCK, end))
        for results, problem in pool.map(attempt, [kind] * len(seeds), seeds, chunksize=5):
            if problem:
                failed += 1
                print(f"{kind}: {problem}", flush=True)
            elif results < 0:
                work.found["too large"] += 1
            else:
                work.found["results"] += results
        if failed:
            break
    work.close(whole if options.record else None)
    print(f"{kind}: {dict(work.found)}, {failed} failed", flush=True)
    return work.count, failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kind", choices=KINDS, action="append", help="(default: all)")
    parser.add_argument("--cases", type=int, help="of each kind")
    parser.add_argument("--processes", type=int, default=2)
    campaigns.add_options(parser)
    options = parser.parse_args()
    failed = total = 0
    with concurrent.futures.ProcessPoolExecutor(options.processes) as pool:
        for kind in options.kind or KINDS:
            count, wrong = campaign(kind, options, pool)
            failed, total = failed + wrong, total + count
    print(f"{total} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
