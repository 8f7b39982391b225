"""Limits of a device, as messages that a user can act on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar


class LimitExceeded(Exception):
    """A hardware limit that was exceeded: its name, the amount needed, the amount available."""

    def __init__(self, limit: str, need: int, most: int, detail: str = "") -> None:
        self.limit, self.need, self.most, self.detail = limit, need, most, detail
        super().__init__(f"{limit}: {need} needed, at most {most}{detail and f' ({detail})'}")


def within(limit: str, need: int, most: int, detail: str = "") -> None:
    if need > most:
        raise LimitExceeded(limit, need, most, detail)


T = TypeVar("T")


def first_over(items: Sequence[T], fits: Callable[[Sequence[T]], bool]) -> int:
    """Returns the position of the item with which a growing set stops fitting."""
    low, high = 0, len(items)  # items[:low] fits, items[:high] does not
    while high - low > 1:
        middle = (low + high) // 2
        if fits(items[:middle]):
            low = middle
        else:
            high = middle
    return low


def pack(items: Sequence[T], fits: Callable[[Sequence[T]], bool]) -> tuple[list[list[T]], list[T]]:
    """Spreads items over devices, first fit; also returns those that fit no device even alone."""
    devices: list[list[T]] = []
    alone: list[T] = []
    for item in items:
        if not fits([item]):
            alone.append(item)
            continue
        for device in devices:
            if fits([*device, item]):
                device.append(item)
                break
        else:
            devices.append([item])
    return devices, alone
