"""Runs a whole build, cached: nothing is built again from the same sources by the same tools."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from seustream.hdl.boards.board import Board
from seustream.hdl.boards.flow import floorplan, names, picture, placement, synthesis
from seustream.hdl.boards.flow.placement import Placed, SeedFailed, pack, place
from seustream.hdl.boards.flow.report import BuildReport
from seustream.hdl.boards.flow.synthesis import Size, size, synthesise
from seustream.hdl.boards.flow.tools import (
    NEEDED,
    USB_NEEDED,
    BitstreamFailed,
    Note,
    check,
    versions,
)
from seustream.hdl.boards.identity import code, version
from seustream.hdl.boards.tops import Setting
from seustream.hdl.config import DeviceConfig

_MAKERS = (names, synthesis, floorplan, placement)
FILES = ("bitstream.bit", "report.txt", "report.json", "floorplan.svg")


class DoesNotFit(BitstreamFailed):
    """The part has too little of some resource."""

    def __init__(self, board: Board, config: DeviceConfig, exceeds: list[str]) -> None:
        self.exceeds = exceeds
        super().__init__(
            f"configuration {config.name} does not fit {board.title}: " + ", ".join(exceeds)
        )


class TimingFailed(BitstreamFailed):
    """No seed reached the clock. There is a report, but no bitstream."""

    def __init__(self, report: BuildReport, folder: Path) -> None:
        self.report, self.folder = report, folder
        reached = int(report.best.clock)
        super().__init__(
            f"timing failed: {report.short_by()}; the report is in {folder}",
            f"--clock {reached} makes a bitstream of what was reached; or more --seeds",
        )


@dataclass(frozen=True, slots=True)
class Build:
    """One board with one configuration.

    constraints  the folder of the board's pins and clocks
    cache        where builds are kept
    """

    setting: Setting
    constraints: Path
    cache: Path

    def netlist(self, note: Note) -> tuple[Path, Size]:
        """Returns the folder with `top.json`, and the resources that the netlist needs."""
        setting = self.setting
        check(needed=self._needed())
        folder = self.cache / f"netlist-{self._key()}"
        with _alone(folder, note):
            if not (folder / "done").exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(parents=True)
                note(f"synthesis of {setting.config.name} for {setting.board.name}, some minutes")
                synthesise(setting, folder)
                (folder / "done").touch()
        return folder, size(folder)

    def run(self, seeds: int, note: Note, every: bool = False) -> tuple[Path, BuildReport]:
        """Returns the folder with the files, made from the first seed that reaches the clock, or from the
        best if `every` seed is to be tried. A seed that cannot be placed counts as one that fails."""
        folder, needs = self.netlist(note)
        board, config = self.setting.board, self.setting.config
        exceeds = needs.exceeds(board.part)
        if exceeds:
            raise DoesNotFit(board, config, exceeds)
        tried, unplaced = list[Placed](), list[int]()
        for seed in range(1, seeds + 1):
            try:
                tried.append(self._placed(seed, folder, note))
            except SeedFailed as error:
                if seed == seeds and not tried:
                    raise
                note(str(error))
                unplaced.append(seed)
                continue
            if tried[-1].meets and not every:
                break
        best = max(tried, key=lambda placed: placed.clock)
        setting = self.setting
        report = BuildReport(
            board,
            config,
            version(),
            setting.baud,
            best,
            tried,
            unplaced,
            setting.address,
            setting.usb,
        )
        with _alone(folder, note):
            _write(report, folder)
            if best.meets:
                note("packing the bitstream")
                pack(best.seed, folder, folder / FILES[0])
        if not best.meets:
            raise TimingFailed(report, folder)
        return folder, report

    def _placed(self, seed: int, folder: Path, note: Note) -> Placed:
        kept = folder / f"{seed}.placed"
        with _alone(kept, note):  # other seeds may be placed at the same time
            if not kept.exists():
                placed = place(
                    self.setting.board.part, self._files(), self.setting.clock, seed, folder, note
                )
                kept.write_text(json.dumps(dataclasses.asdict(placed)))
            data = json.loads(kept.read_text())
        for name in ("used", "clocks"):
            data[name] = {of: tuple(pair) for of, pair in data[name].items()}
        return Placed(**data)

    def _needed(self) -> tuple[str, ...]:
        return USB_NEEDED if self.setting.usb else NEEDED

    def _files(self) -> list[Path]:
        """Constraint files with the pins and clocks of the ports that the top has."""
        ethernet, usb = bool(self.setting.address), self.setting.usb
        ports = ["", *["ethernet_"] * ethernet, *["usb_"] * usb]
        kinds = ("clocks", "pins")
        return [self.constraints / f"{port}{kind}.lpf" for port in ports for kind in kinds]

    def _key(self) -> str:
        pins = [file.read_text() for file in self._files()]
        what = [
            # The clock is in the identity; the clocks of other configurations do not matter.
            dataclasses.asdict(self.setting.board) | {"clock": None, "clocks": None},
            self.setting.identity.encode().hex(),
            str(self.setting.address) if self.setting.address else self.setting.divisor,
            self.setting.usb,
            version(),
            pins,
            [code(Path(module.__file__ or "")) for module in _MAKERS],
            versions(self._needed()),
        ]
        return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:32]


def _write(report: BuildReport, folder: Path) -> None:
    (folder / FILES[1]).write_text(report.to_text())
    (folder / FILES[2]).write_text(json.dumps(report.to_json(), indent=2) + "\n")
    placed = picture.tiles(folder / f"{report.best.seed}.json")
    (folder / FILES[3]).write_text(picture.svg(report, placed))


@contextlib.contextmanager
def _alone(folder: Path, note: Note) -> Iterator[None]:
    """Admits one process at a time to a folder. The lock ends with the process that holds it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note("waiting for another process that builds the same")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
