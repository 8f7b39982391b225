"""Names of result columns, and the expansion of `*`.

before  SELECT R.a, S.a, S.b, S.b + 1 AS more
after   R_a, S_a, b, more
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress

from seustream.compiler.errors import Span
from seustream.compiler.language import expressions as x
from seustream.compiler.language.syntax import Name, Reference
from seustream.compiler.logical.program import RESULT_TIMES, Source
from seustream.compiler.xsql import tree
from seustream.compiler.xsql.scope import Merged, QueryScope, reference


@dataclass(frozen=True, slots=True)
class ResultName:
    """A column's name: `short` if it is unique, else `long`."""

    short: str
    long: str

    @classmethod
    def fixed(cls, name: str) -> ResultName:
        """Returns a chosen name, which does not depend on the others."""
        return cls(name, name)

    @classmethod
    def of_column(cls, alias: str, column: str) -> ResultName:
        """Returns the name of a stream's column: bare if that is unique, otherwise with the
        stream's alias."""
        return cls(column, f"{alias}_{column}")


def result_names(names: Sequence[ResultName]) -> list[str]:
    """Returns the name of each column of a result; names are distinct if they differ in more than
    case."""
    count = Counter([*RESULT_TIMES, *(name.short.lower() for name in names)])
    return [name.short if count[name.short.lower()] == 1 else name.long for name in names]


def name_of(item: tree.SelectItem, text: Callable[[Span], str]) -> Name:
    """Returns the name of a single item of SELECT; `text` returns the source text at a place."""
    e = item.expression
    if item.alias is not None:
        return item.alias
    if isinstance(e, Reference) and e.parts:
        return e.parts[-1]
    return Name(" ".join(text(e.span).split()), e.span)


def columns_of_all(scope: QueryScope) -> list[tuple[ResultName, x.Expression]]:
    """Returns the columns of `*`: those of USING come first and once, those of the last join before
    those of joins in it."""
    level, joined = scope.levels[0], dict[frozenset[int], list[Merged]]()
    for one in reversed(scope.merged):
        if not one.sources.isdisjoint(level):
            joined.setdefault(one.sources, []).append(one)
    found, taken = list[tuple[ResultName, x.Expression]](), set[tuple[int, str]]()
    for one in (one for ones in reversed(joined.values()) for one in ones):
        places = {(position, one.name) for position in one.sources}
        if places.isdisjoint(taken):
            source = scope.sources[min(one.sources)]
            column = source.stream.column(one.name)
            name = one.name if column is None else column.name
            found.append((ResultName.of_column(source.alias, name), one.value))
        taken |= places
    for position in level:
        of = scope.sources[position].stream.columns
        kept = [(position, column.name.lower()) not in taken for column in of]
        found += compress(columns_of(scope.sources, position), kept)
    return found


def columns_of(sources: tuple[Source, ...], index: int) -> list[tuple[ResultName, x.Expression]]:
    """Returns the columns of one source."""
    source = sources[index]
    return [
        (
            ResultName.of_column(source.alias, column.name),
            reference(index, source, column),
        )
        for column in source.stream.columns
    ]
