"""Lengths of windows that are given by name, as Flink has it.

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
    """The lengths as they follow each other without names; none where a name is not one of the function's, so
    that its form is what the reader of windows asks for."""
    if all(name is None for name, _ in lengths):
        return tuple(e for _, e in lengths)
    names = _NAMES.get(function.lower(), ())
    given = dict(lengths)
    known = [name for name in names if name in given]
    if len(known) < len(lengths) or known != list(names[: len(known)]):
        return ()
    return tuple(given[name] for name in known)
