"""Detects bridges that wait for a reader who does not come: names the query and its last reader,
and ends the job when its budget is spent.

The budget is that of a query that fails again and again for the same reason: a number of tries,
each as long as the patience of the connection, and the pauses between them. Any progress of a
bridge resets it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.errors import BridgeError
from seustream.cosim.bridge.world import MACHINE, World
from seustream.spark_feeder.errors import FeedError, as_feed_errors

HINT = "read the results of that query, too, or leave it out of the query set"
TRIES = 10
"""Tries of an operation that fails for a transient reason, without a batch in between."""
_WORD, _AGAIN = 3.0, 60.0
"""Seconds without progress before the first message, and between messages."""
_BETWEEN = 1.0
"""Seconds between two polls of the bridges."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 15.0
_PROGRESS = ("rows_waiting", "rows_total", "results_total", "results_kept", "epochs_total")
"""Members of a bridge's status that change while it makes progress."""


class StallWarning(UserWarning):
    """Warns that a job waits until results are read."""


def warned(what: str) -> None:
    """Warns a program that has passed no function of its own."""
    warnings.warn(what, StallWarning, stacklevel=2)


def pause(tries: int) -> float:
    """Returns the seconds before the try after this many: doubled each time, up to a limit."""
    return min(_FIRST_PAUSE * 2.0**tries, _LONGEST_PAUSE)


def budget(tries: int, patience: float) -> float:
    """Returns the seconds that this many tries take, each with its patience and the pause after it."""
    return sum(patience + pause(number) for number in range(tries))


class Stall:
    """Watches the bridges of one job. `say` is called when they make no progress; `longest` is the
    number of seconds after which the job ends."""

    def __init__(self, world: World, longest: float, say: Callable[[str], None]) -> None:
        self._world, self._longest, self._say = world, longest, say
        self._reached: dict[BridgeClient, tuple[list[Any], float]] = {}
        self._said: dict[BridgeClient, float] = {}
        self._looked = float("-inf")

    def look(self, clients: Sequence[BridgeClient]) -> None:
        """Names the results that no reader takes. It ends nothing, since feeds have budgets of
        their own."""
        if self._world.now() >= self._looked + _BETWEEN:
            self._looked = self._world.now()
            for client in clients:
                self._check(client, float("inf"))

    def check(self, clients: Sequence[BridgeClient]) -> None:
        """Does the same as `look`; raises `FeedError` for a bridge that has stalled, or been away,
        too long."""
        for client in clients:
            self._check(client, self._longest)

    def _check(self, client: BridgeClient, longest: float) -> None:
        hint: str | None = HINT
        try:
            status = client.status(patience=0)
            found = [status.get(name) for name in _PROGRESS]
            full = status.get("full")  # which a bridge of an older release does not report
            what = f"busy: {full}" if full else None
        except BridgeError as error:
            found, what, hint = [], f"{error.kind}: {error}", error.hint
        now = self._world.now()
        before, since = self._reached.get(client, ([], now))
        # A bridge that is not full is working, however long; one that is away has made no progress.
        if what is None or found not in (before, []):
            since = now
        self._reached[client] = found or before, since
        if what is None or now - since < _WORD:
            return
        if now - since >= longest:
            raise FeedError(f"{what} (for {now - since:,.0f} seconds)", hint)
        if found and now >= self._said.get(client, float("-inf")) + _AGAIN:
            self._said[client] = now
            self._say(f"{what} ({hint})")


def checking(clients: Sequence[BridgeClient], patience: float) -> Callable[[], None]:
    """Returns a check for code that waits for bridges outside Spark."""
    stall = Stall(MACHINE, budget(TRIES, patience), warned)

    def check() -> None:
        with as_feed_errors():
            stall.check(clients)

    return check
