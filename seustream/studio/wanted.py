"""Ends work whose client is gone: the page asked for something else, or was closed.

await while_connected(request, work)  # in a request: runs the work in a thread
check_wanted()                        # in the work, between two of its steps
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from threading import Event
from typing import TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

T = TypeVar("T")
_GONE: ContextVar[Event | None] = ContextVar("gone", default=None)
"""Set once the client of the request is gone. Threads of the request's work have it, too."""


class Unwanted(BaseException):
    """Ends work from within. As it is no `Exception`, no part of a run takes it for its own failure."""


def check_wanted() -> None:
    """Raises `Unwanted` if the client that asked for the present work is gone."""
    gone = _GONE.get()
    if gone is not None and gone.is_set():
        raise Unwanted


def while_wanted(steps: Iterable[T]) -> Iterator[T]:
    """Yields the steps of work until the client that asked for it is gone."""
    for step in steps:
        check_wanted()
        yield step


async def while_connected(request: Request, work: Callable[[], T]) -> T:
    """Does work in a thread. If the client goes, or the server ends, the work ends at its next check."""
    gone = Event()
    known = _GONE.set(gone)

    async def listen() -> None:
        # The body has come, so that only the disconnection is still to come.
        while (await request.receive())["type"] != "http.disconnect":
            pass
        gone.set()

    listening = asyncio.create_task(listen())
    try:
        return await run_in_threadpool(work)
    finally:
        gone.set()
        listening.cancel()
        _GONE.reset(known)
