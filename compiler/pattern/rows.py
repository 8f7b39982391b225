"""The meaning of MATCH_RECOGNIZE, SQL's row pattern matching, apart from how matches are found.

Variables are numbered by their first occurrence in the pattern; a set of them is an integer whose
bit v stands for variable v. Everything here is immutable and free of syntax.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field

from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import BIGINT, VARCHAR, Type
from seustream.compiler.pattern import ir

MAX_VARIABLES = 62
MAX_STEPS = 20_000
"""The most steps in the program of a pattern; `{n,m}` repeats those of its operand."""

# --- the pattern ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class One:
    """One row of a variable; `excluded` from ALL ROWS PER MATCH by `{- -}`."""

    variable: int
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class RowSequence:
    """Matches its parts in sequence; without parts, the empty pattern."""

    parts: tuple[RowPattern, ...]


@dataclass(frozen=True, slots=True)
class RowChoice:
    """Chooses the first of the parts that leads to a match."""

    parts: tuple[RowPattern, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Repeats a pattern `least` to `most` times, without a maximum if `most` is None; as often as
    possible, or with `reluctant` as rarely. Beyond `least`, an iteration must match rows."""

    part: RowPattern
    least: int
    most: int | None
    reluctant: bool = False


class Anchor(enum.Enum):
    """A place between rows: before the first or after the last one of the partition."""

    FIRST = "^"
    LAST = "$"


RowPattern = One | RowSequence | RowChoice | Repeat | Anchor


def parts(pattern: RowPattern) -> tuple[RowPattern, ...]:
    """Returns the direct parts of a pattern."""
    if isinstance(pattern, (RowSequence, RowChoice)):
        return pattern.parts
    return (pattern.part,) if isinstance(pattern, Repeat) else ()


def variables(pattern: RowPattern) -> Iterator[int]:
    """Yields the variables of a pattern, from left to right."""
    if isinstance(pattern, One):
        yield pattern.variable
    for part in parts(pattern):
        yield from variables(part)


def anchored(pattern: RowPattern) -> bool:
    """Returns whether the pattern asks for the beginning of its partition."""
    return pattern is Anchor.FIRST or any(map(anchored, parts(pattern)))


def fewest(pattern: RowPattern) -> int:
    """Returns the fewest rows that the pattern matches."""
    if isinstance(pattern, One):
        return 1
    inner = [*map(fewest, parts(pattern))]
    if isinstance(pattern, RowChoice):
        return min(inner)
    return sum(inner) * (pattern.least if isinstance(pattern, Repeat) else 1)


def preceding(pattern: RowPattern, before: int = 0) -> dict[int, int]:
    """Returns for each variable the fewest rows of a match that precede one of its rows; `before`
    precede the pattern."""
    if isinstance(pattern, One):
        return {pattern.variable: before}
    found: dict[int, int] = {}
    for part in parts(pattern):
        for variable, count in preceding(part, before).items():
            found[variable] = min(count, found.get(variable, count))
        before += fewest(part) if isinstance(pattern, RowSequence) else 0
    return found


def nullable(pattern: RowPattern) -> bool:
    """Returns whether the pattern can match without any rows."""
    match pattern:
        case One():
            return False
        case RowChoice():
            return any(map(nullable, pattern.parts))
        case Repeat():
            return pattern.least == 0 or nullable(pattern.part)
        case _:
            return all(map(nullable, parts(pattern)))


def steps(pattern: RowPattern) -> int:
    """Estimates the number of steps in the pattern's program."""
    inner = sum(map(steps, parts(pattern)))
    if isinstance(pattern, Repeat):
        often = pattern.least + 1 if pattern.most is None else pattern.most
        return often * (inner + 3)
    return inner + 2 * len(parts(pattern)) + 1


# --- expressions ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cell(x.Leaf):
    """An attribute of the current row, by its folded name; `ts` is the time."""

    attribute: str
    type: Type

    def show(self) -> str:
        return self.attribute


@dataclass(frozen=True, slots=True)
class Label(x.Leaf):
    """The variable to which the row is matched, in capitals; NULL for a row that is in no match."""

    type: Type = VARCHAR

    def show(self) -> str:
        return "CLASSIFIER()"


@dataclass(frozen=True, slots=True)
class MatchNumber(x.Leaf):
    """The number of the match in its partition, from 1."""

    type: Type = BIGINT

    def show(self) -> str:
        return "MATCH_NUMBER()"


@dataclass(frozen=True, slots=True)
class At(x.Leaf):
    """An expression over one row: the first or the last row of some variables, moved by `back` rows
    among these, then by `offset` rows in the partition. NULL if there is no such row. `final`
    counts the rows of the whole match, otherwise those up to the current row."""

    part: x.Expression
    among: int
    first: bool
    back: int
    offset: int
    final: bool
    type: Type
    text: str = field(default="", compare=False)

    def show(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class RowAggregate(x.Leaf):
    """An aggregate of the registry over the rows of some variables: of the whole match with
    `final`, else up to the current row."""

    aggregate: x.AggregateCall
    among: int
    final: bool
    type: Type
    text: str = field(default="", compare=False)

    def show(self) -> str:
        return self.text


# --- the query ------------------------------------------------------------------


class Give(enum.Enum):
    """The rows that a match gives."""

    ONE = "one row per match"
    ALL = "all rows per match"
    OMIT_EMPTY = "all rows per match omit empty matches"
    UNMATCHED = "all rows per match with unmatched rows"


@dataclass(frozen=True, slots=True)
class Definition:
    """The condition of a variable, bound and as written."""

    variable: int
    condition: x.Expression
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RowQuery(ir.MatchQuery):
    """A MATCH_RECOGNIZE query. `skip_to` are the variables of SKIP TO, `skip_name` their name
    there."""

    variables: tuple[str, ...]
    pattern: RowPattern
    definitions: tuple[Definition, ...]
    give: Give
    skip_to: int = 0
    skip_name: str = ""

    def leaves(self) -> Iterator[x.Leaf]:
        """Yields the leaves of its conditions and columns."""
        for definition in self.definitions:
            yield from x.leaves(definition.condition)
        for output in self.outputs:
            assert not isinstance(output.expression, ir.Whole)
            yield from x.leaves(output.expression)

    def cells(self) -> Iterator[Cell]:
        """Yields the attributes that it reads."""
        return (leaf for leaf in self._inner() if isinstance(leaf, Cell))

    @property
    def counts(self) -> bool:
        """Returns whether it reads the number of a match."""
        return any(isinstance(leaf, MatchNumber) for leaf in self._inner())

    def _inner(self) -> Iterator[x.Leaf]:
        """Yields the leaves within navigations and aggregates, and all others."""
        for leaf in self.leaves():
            inner = leaf.part if isinstance(leaf, At) else leaf
            yield from x.leaves(inner.aggregate if isinstance(inner, RowAggregate) else inner)
