"""Names of result columns.

before  SELECT R.a, S.a, S.b, S.b + 1 AS more
after   R_a, S_a, b, more
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seustream.compiler.errors import Span
from seustream.compiler.language.syntax import Name, Reference
from seustream.compiler.logical.program import RESULT_TIMES
from seustream.compiler.xsql import tree


@dataclass(frozen=True, slots=True)
class ResultName:
    """A column's name: `short` where no other column is, else `long`."""

    short: str
    long: str

    @classmethod
    def fixed(cls, name: str) -> ResultName:
        """A name that was chosen, which stays whatever the others are."""
        return cls(name, name)

    @classmethod
    def of_column(cls, alias: str, column: str) -> ResultName:
        """A stream's column: bare where that is unique, with the stream's alias otherwise."""
        return cls(column, f"{alias}_{column}")


def result_names(names: Sequence[ResultName]) -> list[str]:
    """The name of each column of a result; names differ if they differ in more than case."""
    count = Counter([*RESULT_TIMES, *(name.short.lower() for name in names)])
    return [name.short if count[name.short.lower()] == 1 else name.long for name in names]


def name_of(item: tree.SelectItem, text: Callable[[Span], str]) -> Name:
    """The name of an item of SELECT alone; `text` gives what is written at a place."""
    e = item.expression
    if item.alias is not None:
        return item.alias
    if isinstance(e, Reference) and e.parts:
        return e.parts[-1]
    return Name(" ".join(text(e.span).split()), e.span)
