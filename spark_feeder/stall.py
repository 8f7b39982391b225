"""Notices bridges that wait for a reader who does not come: names the query and its last reader, and ends
the job when its budget is over.

The budget is the one of a query that fails again and again for the same reason: so many tries, each as long
as the patience of the connection, and the pauses between them. Whatever a bridge does meanwhile begins it anew.
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
"""Of what fails for a reason that may pass, without a batch in between."""
_WORD, _AGAIN = 3.0, 60.0
"""Seconds without progress until that is said; and until it is said once more."""
_BETWEEN = 1.0
"""Seconds between two looks at the bridges."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 15.0
_PROGRESS = ("rows_waiting", "rows_total", "results_total", "results_kept", "epochs_total")
"""Of a bridge's status: as long as none of it changes, there is none."""


class StallWarning(UserWarning):
    """A job waits until results are read."""


def warned(what: str) -> None:
    """Warns a program that has given no function of its own."""
    warnings.warn(what, StallWarning, stacklevel=2)


def pause(tries: int) -> float:
    """Returns the seconds until a try follows the last of so many: twice as many each time."""
    return min(_FIRST_PAUSE * 2.0**tries, _LONGEST_PAUSE)


def budget(tries: int, patience: float) -> float:
    """Returns the seconds that so many tries take, each with its patience and the pause behind it."""
    return sum(patience + pause(number) for number in range(tries))


class Stall:
    """The bridges of one job. `say` is called when they stand still; `longest` are the
    seconds after which the job ends."""

    def __init__(self, world: World, longest: float, say: Callable[[str], None]) -> None:
        self._world, self._longest, self._say = world, longest, say
        self._reached: dict[BridgeClient, tuple[list[Any], float]] = {}
        self._said: dict[BridgeClient, float] = {}
        self._looked = float("-inf")

    def look(self, clients: Sequence[BridgeClient]) -> None:
        """Names the results that no reader takes. Ends nothing: feeds have budgets of their own."""
        if self._world.now() >= self._looked + _BETWEEN:
            self._looked = self._world.now()
            for client in clients:
                self._check(client, float("inf"))

    def check(self, clients: Sequence[BridgeClient]) -> None:
        """As `look`; raises `FeedError` for a bridge that has stood still, or been away, too long."""
        for client in clients:
            self._check(client, self._longest)

    def _check(self, client: BridgeClient, longest: float) -> None:
        hint: str | None = HINT
        try:
            status = client.status(patience=0)
            found = [status.get(name) for name in _PROGRESS]
            full = status.get("full")  # which a bridge of an older release does not say
            what = f"busy: {full}" if full else None
        except BridgeError as error:
            found, what, hint = [], f"{error.kind}: {error}", error.hint
        now = self._world.now()
        before, since = self._reached.get(client, ([], now))
        # One that is not full works, however long; one that is away has done nothing.
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
    """Returns the check of one who waits for bridges beside Spark."""
    stall = Stall(MACHINE, budget(TRIES, patience), warned)

    def check() -> None:
        with as_feed_errors():
            stall.check(clients)

    return check
