"""What a simulated network does to messages on their way: delay, loss, repetition, from a seed."""

from __future__ import annotations

import heapq
import itertools
import random
from dataclasses import dataclass
from typing import Generic, TypeVar

Parcel = TypeVar("Parcel")


@dataclass(frozen=True, slots=True)
class Weather:
    """How bad the network is: the longest delay, and the parts lost and repeated."""

    delay: int = 0
    loss: float = 0.0
    repeat: float = 0.0


CLEAR = Weather()


class Mail(Generic[Parcel]):
    """Messages under way. One from a node to itself arrives at once, and arrives."""

    def __init__(self, weather: Weather, seed: int) -> None:
        self.weather, self.chance = weather, random.Random(seed)
        self._count = itertools.count()
        self._under_way: list[tuple[float, int, int, int, Parcel]] = []

    def __bool__(self) -> bool:
        return bool(self._under_way)

    def post(self, now: float, sender: int, to: int, parcel: Parcel) -> None:
        here, copies = sender == to, 1
        if not here:
            copies -= self.chance.random() < self.weather.loss
            copies += self.chance.random() < self.weather.repeat
        for _ in range(copies):
            late = 0 if here else self.chance.randint(0, self.weather.delay)
            arrival = (now + late, next(self._count), sender, to, parcel)
            heapq.heappush(self._under_way, arrival)

    def arrived(self, until: float) -> tuple[float, int, int, Parcel] | None:
        """The next one that arrives up to a time: when, from whom, to whom, and what."""
        if not self._under_way or self._under_way[0][0] > until:
            return None
        at, _, sender, to, parcel = heapq.heappop(self._under_way)
        return at, sender, to, parcel
