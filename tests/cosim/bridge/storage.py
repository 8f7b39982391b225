"""A journal under every fault of its disk: correct results, or a refusal that says where.

A session is fed epoch by epoch on a simulated disk, whose state is kept after each. Then

    calls    from the state before each epoch, each call that changes the disk goes wrong in turn, in
             each way there is; the client does what clients do, and the power goes
    flips    each byte of each file of the last state has a bit flipped
    cuts     each file is cut at every 64th byte, or is gone

`python -m tests.cosim.bridge.storage` is the campaign; a few seeded cases run with the tests.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from seustream.compiler.apas.libraries import Libraries
from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.bridge import Bridge
from seustream.cosim.bridge.client import message_of
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.journal import Journal
from seustream.cosim.bridge.journal_errors import JournalDamaged
from seustream.cosim.bridge.limits import USUAL
from seustream.cosim.golden import GoldenDevice
from tests import campaigns
from tests.cosim.bridge.serving import QUERIES, TINY, compiled, cut, stage_epoch, streams
from tests.cosim.bridge.simdisk import FAULTS, SimDisk

FOLDER = Path("/j")
ROWS = 5
"""Rows per epoch in each stream."""
TEXT = QUERIES + "REGISTER QUERY counts AS SELECT R.a, count(*) FROM R GROUP BY R.a WINDOW ROWS 9;"
NAMES = ("pairs", "large", "counts")
LIMITS = replace(USUAL, journal_bytes=24_000, replay_seconds=float("inf"))
LIBRARIES = Libraries()
"""Shared by all bridges, so that their queries are compiled once."""
LATER = 2
"""Epochs that follow the one with the fault."""


@dataclass
class Run:
    """A run without faults: the disk before each epoch, how far results reached after it, and the
    results."""

    epochs: list[dict[str, pa.Table]]
    disks: list[SimDisk] = field(default_factory=list)
    ends: list[dict[str, int]] = field(default_factory=list)
    results: dict[str, pa.Table] = field(default_factory=dict)
    spare: SimDisk | None = None
    """A copy of the last disk, for a case that restores it afterwards."""


def run(epochs: int, seed: int) -> Run:
    made = Run(cut(streams(ROWS * epochs, seed), epochs))
    disk = SimDisk()
    with contextlib.closing(opened(disk)) as bridge:
        bridge.act("load", p.write(message_of(compiled(TEXT))))
        for number, rows in enumerate(made.epochs):
            made.disks.append(at_rest(disk))
            stage_epoch(bridge, number, rows)
            bridge.session.flush()
            made.ends.append({name: bridge.session.reading.log(name).end for name in NAMES})
        stage_epoch(bridge, epochs, made.epochs[0], commit=False)
        made.disks.append(at_rest(disk))
        for name in NAMES:
            made.results[name] = bridge.read(p.Read(name, 0, made.ends[-1][name]))
    return made


def at_rest(disk: SimDisk) -> SimDisk:
    """Returns a copy of a disk whose bridge was killed."""
    found = disk.__deepcopy__({})
    found.restart()
    found.changes = 0
    return found


def opened(disk: SimDisk) -> Bridge:
    return Bridge(GoldenDevice(TINY), FOLDER, "golden", LIMITS, disk=disk, libraries=LIBRARIES)


# --- calls ------------------------------------------------------------------------


def calls_of(made: Run, epoch: int) -> int:
    """Returns how many calls of an epoch change the disk."""
    disk = at_rest(made.disks[epoch])
    with contextlib.closing(opened(disk)) as bridge:
        stage_epoch(bridge, epoch, made.epochs[epoch])
        bridge.session.flush()
        return disk.changes


def call_case(made: Run, epoch: int, call: int, fault: str, seed: int) -> str:
    """Runs a case in which one call goes wrong; returns `right` or `refused`, or raises an
    error."""
    chance = random.Random(seed)
    disk = at_rest(made.disks[epoch])
    disk.faults[call] = fault
    last = min(epoch + 1 + LATER, len(made.epochs))
    told = f"epoch {epoch}, call {call}, {fault}, seed {seed}"
    try:
        for number in range(epoch, last):
            feed(disk, made, number, chance, cut_power=chance.random() < 0.4)
        disk.lose_power(chance)
        with contextlib.closing(restarted(disk, chance)) as bridge:
            check(bridge, made, last, told)
    except (JournalDamaged, BridgeError) as error:
        # Only a disk that reports writes it has not done may end a journal.
        if fault == "lost" and re.search(r"/j/[\w/.-]+: byte [\d,]+: ", str(error)):
            return "refused"
        raise AssertionError(f"{told}: {error}") from error
    except AssertionError as error:
        raise AssertionError(f"{told}: {error}") from error
    assert not disk.faults, f"{told}: the call never came"
    return "right"


def feed(disk: SimDisk, made: Run, epoch: int, chance: random.Random, cut_power: bool) -> None:
    """Acts as a client until an epoch is acknowledged; the power may go afterwards."""
    bridge, errors = restarted(disk, chance), list[str]()
    try:
        for attempt in range(10):
            try:
                commit = stage_epoch(bridge, epoch, made.epochs[epoch], f"-{attempt}", False)
                bridge.act("commit", p.write(commit))
                if chance.random() < 0.3:
                    assert bridge.act("commit", p.write(commit))["already"]
                bridge.session.flush()
                break
            except BridgeError as error:
                errors.append(f"{error.kind}: {error}; {disk.changes} calls")
                if not disk.power:
                    bridge.close()
                    bridge = restarted(disk, chance)
                elif error.kind not in ("storage", "unknown"):
                    raise
        else:
            raise AssertionError(f"storage works, and nothing is taken: {errors}")
    finally:
        bridge.close()
        if cut_power:
            disk.lose_power(chance)
        disk.restart() if disk.power else None


def restarted(disk: SimDisk, chance: random.Random) -> Bridge:
    """Opens a bridge after its end, or after a loss of power."""
    for _ in range(3):
        if not disk.power:
            disk.lose_power(chance)
        disk.restart()
        try:
            return opened(disk)
        except (OSError, BridgeError, JournalDamaged) as error:
            # The fault of the case may strike here, too.
            if disk.power and isinstance(error, JournalDamaged):
                raise
    raise AssertionError("a disk that works, and no bridge on it")


def check(bridge: Bridge, made: Run, epochs: int, told: str) -> None:
    """Asserts that all results so far are there, each once, at its offset."""
    bridge.session.flush()
    for name in NAMES:
        end = bridge.session.reading.log(name).end
        assert end == made.ends[epochs - 1][name], f"{told}: {name} has {end} results"
        found = bridge.read(p.Read(name, 0, end))
        assert found.equals(made.results[name].slice(0, end)), f"{told}: other results of {name}"


# --- damage -----------------------------------------------------------------------


def contents(journal: Journal) -> tuple[object, ...]:
    """Returns everything that a session goes on from."""
    snapshot = journal.snapshot
    return journal.load, journal.records(), snapshot.seal if snapshot else None


def damage_case(made: Run, path: Path, data: bytes, first: int, whole: bool) -> str:
    """Opens a journal in which a file has other bytes from some place on; returns `right`, `healed`
    or `refused`. With `whole`, a session goes on as well, and must give all results."""
    disk, made.spare = made.spare or at_rest(made.disks[-1]), None
    was = bytes(disk.files[path].data)
    if data or not whole:
        disk.files[path].data[:] = data
    else:
        del disk.files[path]
    told = f"{path}, {len(data)} bytes, other from {first}"
    calls = disk.changes
    try:
        journal = Journal(FOLDER, disk)
    except JournalDamaged as error:
        if error.path == path and error.offset <= first:
            if path in disk.files and disk.changes == calls:
                # Nothing was written, so the next case can use this disk, restored to its former
                # state.
                disk.files[path].data[:] = was
                disk.restart()
                made.spare = disk
            return "refused"
        raise AssertionError(f"{told}: {error}") from error
    with contextlib.closing(journal):
        assert contents(journal) == _sound(made), told
    if whole:
        disk.restart()
        with contextlib.closing(opened(disk)) as bridge:
            check(bridge, made, len(made.epochs), told)
    return "healed" if journal.notes else "right"


def _sound(made: Run) -> tuple[object, ...]:
    if not hasattr(made, "sound"):
        with contextlib.closing(Journal(FOLDER, at_rest(made.disks[-1]))) as journal:
            made.sound = contents(journal)  # type: ignore[attr-defined]
    return made.sound  # type: ignore[attr-defined,no-any-return]


def files_of(made: Run) -> dict[Path, bytes]:
    found = made.disks[-1].files.items()
    return {path: bytes(inode.data) for path, inode in found if path.name != "lock"}


def flipped(data: bytes, at: int, bit: int) -> bytes:
    return data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]


# --- the campaign -----------------------------------------------------------------


Case = tuple[str, Callable[[], str]]


def call_cases(made: Run, seed: int) -> Iterator[Case]:
    """Yields each call of each epoch with each fault, and the name to count it under."""
    for epoch in range(len(made.epochs)):
        for call in range(calls_of(made, epoch)):
            for fault in FAULTS:
                told = f"{seed} {epoch} {call} {fault}"
                chance = random.Random(told).randrange(1 << 30)
                yield fault, functools.partial(call_case, made, epoch, call, fault, chance)


def flip_cases(made: Run, seed: int) -> Iterator[Case]:
    for path, data in files_of(made).items():
        chance = random.Random(f"{seed} {path}")
        kind = path.name.split("-")[0][-8:].lstrip("0123456789abcdef")
        for at in range(len(data)):
            changed = functools.partial(flipped, data, at, chance.randrange(8))
            whole = chance.random() < 0.002
            yield kind, lambda c=changed, a=at, w=whole, p=path: damage_case(made, p, c(), a, w)


def cut_cases(made: Run, seed: int) -> Iterator[Case]:
    for path, data in files_of(made).items():
        for at in range(0, len(data), 64):
            yield "cut", functools.partial(damage_case, made, path, data[:at], at, at % 640 == 0)
        yield "gone", functools.partial(damage_case, made, path, b"", 0, True)


PARTS = {"calls": call_cases, "flips": flip_cases, "cuts": cut_cases}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=list(PARTS))
    campaigns.add_options(parser)
    options = parser.parse_args()
    made = run(options.epochs, options.seed)
    for part in options.parts:
        cases = list(PARTS[part](made, options.seed))
        work = campaigns.Work(f"storage {part}", options)
        for number in work.cases(len(cases)):
            kind, case = cases[number]
            work.found[f"{kind} {case()}"] += 1
        work.close(whole=len(cases))
        print(dict(sorted(work.found.items())), flush=True)


if __name__ == "__main__":
    main()
