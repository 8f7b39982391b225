"""Shows progress on stderr, if that is a terminal: a bar, or a line."""

from __future__ import annotations

import sys
import time
from typing import TextIO

_WIDTH = 30
_SECONDS_BETWEEN = 0.1


class Progress:
    """Counts towards a total; silent if stderr is not a terminal.

    with Progress("run", 100_000, "tuples") as progress:
        progress.add(8192)
    """

    def __init__(self, what: str, total: int, unit: str, stream: TextIO | None = None) -> None:
        self.what, self.total, self.unit = what, total, unit
        self.stream = stream if stream is not None else sys.stderr
        self.shown = self.stream.isatty()
        self.done = 0
        self.began = self.last = time.monotonic()

    def __enter__(self) -> Progress:
        self._draw()
        return self

    def add(self, count: int) -> None:
        self.done += count
        if time.monotonic() - self.last >= _SECONDS_BETWEEN:
            self._draw()

    def __exit__(self, *error: object) -> None:
        self._draw()
        if self.shown:
            self.stream.write("\n")
            self.stream.flush()

    def _draw(self) -> None:
        if not self.shown:
            return
        self.last = time.monotonic()
        share = min(self.done / self.total, 1.0) if self.total else 1.0
        filled = int(share * _WIDTH)
        seconds = self.last - self.began
        rate = f"{self.done / seconds:,.0f}/s" if seconds > 0 else ""
        left = f"{seconds / share - seconds:.0f} s left" if 0 < share < 1 else f"{seconds:.1f} s"
        self.stream.write(
            f"\r{self.what} [{'█' * filled}{'·' * (_WIDTH - filled)}] {share:4.0%}"
            f" {self.done:,} {self.unit} {rate} {left}\x1b[K"
        )
        self.stream.flush()


class Notes:
    """Shows the current activity on a line that the next note replaces; silent if stderr is not a
    terminal."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream if stream is not None else sys.stderr

    def __call__(self, what: str) -> None:
        self._write(f"\r{what} …\x1b[K")

    def __enter__(self) -> Notes:
        return self

    def __exit__(self, *error: object) -> None:
        self._write("\r\x1b[K")

    def warn(self, what: str) -> None:
        """Prints a permanent line, on a terminal or not."""
        self._write("\r\x1b[K")
        print(f"warning: {what}", file=self.stream, flush=True)

    def _write(self, text: str) -> None:
        if self.stream.isatty():
            self.stream.write(text)
            self.stream.flush()
