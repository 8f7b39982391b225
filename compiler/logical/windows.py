"""Windows that no device has: code that does not know them treats them as UNBOUNDED."""

from __future__ import annotations

from dataclasses import dataclass

from seustream.hdl.device import Window, WindowKind


@dataclass(frozen=True, slots=True)
class PartitionWindow(Window):
    """The last `size` tuples of each partition by some columns."""

    keys: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"PARTITION BY {', '.join(self.keys)} ROWS {self.size}"


@dataclass(frozen=True, slots=True)
class LandmarkWindow(Window):
    """The tuples since a time, or with `every` since the last whole multiple of that many
    milliseconds."""

    since: int = 0
    every: int | None = None

    def __str__(self) -> str:
        return f"SINCE {self.since}" if self.every is None else f"SINCE EVERY {self.every} ms"


def has_end(window: Window) -> bool:
    """Returns whether tuples leave a window before their streams end."""
    if isinstance(window, LandmarkWindow):
        return window.every is not None
    return window.kind is not WindowKind.UNBOUNDED or isinstance(window, PartitionWindow)


def is_plain(window: Window) -> bool:
    """Returns whether a device could have the window."""
    return not isinstance(window, PartitionWindow | LandmarkWindow)
