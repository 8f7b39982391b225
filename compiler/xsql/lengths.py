"""Lengths of windows that are given by name, as in Flink.

before  HOP(DATA => TABLE R, TIMECOL => DESCRIPTOR(ts), SIZE => 10 s, SLIDE => 5 s)
after   HOP(TABLE R, DESCRIPTOR(ts), 5 s, 10 s)
"""

from __future__ import annotations

from collections.abc import Sequence

from seustream.compiler.language.syntax import Expression

_NAMES = {
    "tumble": ("size", "offset"),
    "hop": ("slide", "size", "offset"),
    "cumulate": ("step", "size", "offset"),
    "session": ("gap",),
}


def in_order(
    function: str, lengths: Sequence[tuple[str | None, Expression]]
) -> tuple[Expression, ...]:
    """Returns the lengths in the order in which they are written without names. It returns no
    lengths if a name is not one of the function's, so that the reader of windows reports the
    expected form."""
    if all(name is None for name, _ in lengths):
        return tuple(e for _, e in lengths)
    names = _NAMES.get(function.lower(), ())
    given = dict(lengths)
    known = [name for name in names if name in given]
    if len(known) < len(lengths) or known != list(names[: len(known)]):
        return ()
    return tuple(given[name] for name in known)
