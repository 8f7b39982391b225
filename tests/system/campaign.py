"""Many random cases: `python -m tests.system.campaign --kind models --cases 20000 --first 1000000`.

    models  query sets on streams, golden and instruction-level model against DuckDB
    rtl     the same on the golden model and the RTL, its ports held back at random, in every
            named configuration
    crowded the same in one whose FIFOs hold a single probe
    swaps   images one after the other on the golden model and the RTL, in these and in ones whose
            counters come round soon or never and whose windows are full soon or never
    groups  queries that group by windows of time, on a model or the RTL against the engine alone, in
            configurations with many places for groups and with few

Spread over processes; every failing seed is printed and can be run alone with --cases 1.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import sys
import time
from collections import Counter
from collections.abc import Callable

from seustream.cosim.golden import GoldenDevice
from seustream.cosim.verilated.device import VerilatedDevice
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from tests.cosim.contract import CROWDED, NARROW, SHALLOW, TINY
from tests.cosim.swaps import play, same, swaps
from tests.engine.host.test_partial import check
from tests.system.differential import MODELS, Difference, run_case

_SWAPPED = (
    *CONFIGURATIONS.values(),
    NARROW,
    SHALLOW,
    dataclasses.replace(TINY, name="tiny16", timestamp_width=16, sequence_width=8),
    dataclasses.replace(TINY, name="wide", timestamp_width=64, sequence_width=64, lanes=16),
    dataclasses.replace(TINY, name="least", streams=2, depth=2, lanes=1, probe_fifo_depth=1),
)


def on_models(seed: int) -> int:
    return run_case(seed, MODELS)


def on_rtl(seed: int) -> int:
    return run_case(seed, ("golden", "verilated"), list(CONFIGURATIONS)[seed % len(CONFIGURATIONS)])


def in_a_crowd(seed: int) -> int:
    return run_case(seed, ("golden", "verilated"), CROWDED.name)


def grouped(seed: int) -> int:
    model = ("golden", "iss", "verilated")[seed % 3]
    config = ("default", "tiny", "grouping")[seed // 3 % 3]
    try:
        return check(seed, Counter(), model, config)
    except AssertionError as error:
        raise Difference(f"seed {seed}, configuration {config}, {model}: {error}") from None


def changing(seed: int) -> int:
    config: DeviceConfig = _SWAPPED[seed % len(_SWAPPED)]
    case = swaps(seed, config, tuples=200, images=12)
    rtl = VerilatedDevice(config)
    rtl.hold(seed, *((0, 0.5)[seed >> bit & 1] for bit in range(2)))
    got, want = play(rtl, case), play(GoldenDevice(config), case)
    if not same(case, got, want, processor=True):
        raise Difference(f"seed {seed}, configuration {config.name}: {got[2]}, want {want[2]}")
    return len(want[0])


KINDS: dict[str, tuple[Callable[[int], int], int]] = {
    "models": (on_models, 20_000),
    "rtl": (on_rtl, 2_000),
    "crowded": (in_a_crowd, 1_000),
    "groups": (grouped, 3_000),
    "swaps": (changing, 2_000),
}


def attempt(kind: str, seed: int) -> tuple[int, int, str]:
    try:
        return seed, KINDS[kind][0](seed), ""
    except Difference as error:
        return seed, 0, str(error)
    except Exception as error:  # a crash is a finding too, with its seed
        return seed, 0, f"seed {seed}: {type(error).__name__}: {error}"


def campaign(kind: str, cases: int, first: int, processes: int) -> int:
    """Runs the cases of one kind; gives how many failed."""
    begin, done, results, misfits, failures = time.monotonic(), 0, 0, 0, []
    seeds = range(first, first + cases)
    with concurrent.futures.ProcessPoolExecutor(processes) as pool:
        for seed, found, problem in pool.map(attempt, [kind] * cases, seeds, chunksize=10):
            done += 1
            misfits += found < 0
            results += max(found, 0)
            if problem:
                failures.append(seed)
                print(f"{kind}: {problem}", flush=True)
            if done % 500 == 0:
                rate = done / (time.monotonic() - begin)
                print(
                    f"{kind}: {done}/{cases} cases, {len(failures)} differ, {rate:.0f}/s",
                    flush=True,
                )
    print(
        f"{kind}: {done} cases from seed {first}, {results} results compared,"
        f" {misfits} sets too large for one device, {len(failures)} failed"
    )
    return len(failures)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kind", choices=KINDS, action="append", help="(default: all)")
    parser.add_argument("--cases", type=int, help="of each kind")
    parser.add_argument("--first", type=int, default=1_000_000, help="first seed")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    failed = total = 0
    for kind in options.kind or KINDS:
        cases = KINDS[kind][1] if options.cases is None else options.cases
        failed += campaign(kind, cases, options.first, options.processes)
        total += cases
    print(f"{total - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
