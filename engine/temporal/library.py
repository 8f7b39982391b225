"""Calls to libraries of users: errors there are reported as the library's, with file and line."""

from __future__ import annotations

import contextlib
import threading
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seustream.compiler.apas.streams import JoinIndex, Lifetimes

Ints = npt.NDArray[np.int64]


class LibraryFailed(ValueError):
    """A function of a library raised an error, or broke its contract."""


@contextlib.contextmanager
def calling(shown: str) -> Iterator[None]:
    """Names the function, and the line of the library, in an error raised within the block."""
    try:
        yield
    except LibraryFailed:
        raise
    except BaseException as error:
        if not is_theirs(error):
            raise
        raise LibraryFailed(f"{shown}: {type(error).__name__}: {error} ({_line(error)})") from error


def is_theirs(error: BaseException) -> bool:
    """Returns whether a function of a library raised the error, whatever it is. An interrupt of the
    main thread is the user's."""
    interrupted = isinstance(error, KeyboardInterrupt)
    return not (interrupted and threading.current_thread() is threading.main_thread())


def reason(error: BaseException) -> str:
    """Names the fault of a function that raised: the same for all rows with one cause."""
    return f"{type(error).__name__} ({_line(error)})"


def _line(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}:{last.lineno}"


def ints(shown: str, found: object) -> Ints:
    """Returns a library's result as row numbers or times; raises `LibraryFailed` unless it is a
    column of integers."""
    array = np.asarray(found)
    if array.ndim != 1 or (len(array) and not np.issubdtype(array.dtype, np.integer)):
        raise LibraryFailed(f"{shown}: want a column of integers, got {array.dtype} {array.shape}")
    return array.astype(np.int64, copy=False)


def lifetimes(shown: str, found: Lifetimes) -> tuple[Ints, Ints, Ints]:
    """Returns the columns that a window gave, checked for equal length."""
    which, ts, te = (ints(shown, each) for each in found)
    if not len(which) == len(ts) == len(te):
        lengths = f"{len(which)}, {len(ts)} and {len(te)}"
        raise LibraryFailed(f"{shown}: numbers, begins and ends are {lengths} values")
    return which, ts, te


def wrong_lifetime(shown: str, was: int, ts: int, te: int) -> str | None:
    """Describes the error in the lifetime [ts, te) of a tuple that began at `was`, or returns
    None."""
    if ts < was:
        return f"{shown}: [{ts}, {te}) begins before its tuple, which begins at {was}"
    return f"{shown}: [{ts}, {te}) ends before it begins" if te < ts else None


def candidates(shown: str, index: JoinIndex, values: Sequence[Any]) -> tuple[Ints, Ints]:
    """Returns the places and numbers that an index gives for columns of values."""
    with calling(shown):
        places, numbers = index.candidates(*values)
    found = ints(shown, places), ints(shown, numbers)
    if len(found[0]) != len(found[1]):
        raise LibraryFailed(f"{shown}: {len(found[0])} places and {len(found[1])} numbers")
    return found
