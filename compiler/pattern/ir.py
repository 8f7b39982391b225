"""The meaning of a PATTERN query, apart from how a matcher finds it. MATCH_RECOGNIZE has its own in
`rows`; what both share is here.

Elements are numbered as written, negated ones included; an expression refers to a variable by the
number of its element. Everything here is immutable and free of syntax.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field

from seustream.compiler.catalogue import Stream
from seustream.compiler.errors import Span
from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import Type

# --- expressions --------------------------------------------------------------


class Pick(enum.Enum):
    """The events that a reference to a variable selects."""

    ONE = "one"  # the event of a single element
    EACH = "each"  # every member of a group in turn; `v` and `v[i]`
    FIRST = "first"  # `v[1]`
    LAST = "last"
    PREVIOUS = "previous"  # `v[i-1]`, the member before the one of EACH


TIME = "ts"
"""The attribute name for an event's time."""


@dataclass(frozen=True, slots=True)
class Value(x.Leaf):
    """An attribute of an element's event, by its folded name; `ts` is the time. `variable` is the
    element's name, for display."""

    element: int
    pick: Pick
    attribute: str
    type: Type
    variable: str = field(default="", compare=False)

    def show(self) -> str:
        index = {Pick.FIRST: "[1]", Pick.PREVIOUS: "[i-1]", Pick.EACH: "[i]", Pick.LAST: "[last]"}
        return f"{self.variable}{index.get(self.pick, '')}.{self.attribute}"

    @property
    def origin(self) -> tuple[int, Pick]:
        return self.element, self.pick

    @property
    def is_time(self) -> bool:
        return self.attribute == TIME


@dataclass(frozen=True, slots=True)
class GroupAggregate(x.Leaf):
    """An aggregate of the registry over the events of a group, or with `before` over those before
    the one of EACH. In its arguments EACH is the event being added; `count` without an argument
    counts events."""

    element: int
    before: bool
    aggregate: x.AggregateCall
    type: Type
    variable: str = field(default="", compare=False)

    def show(self) -> str:
        if not self.aggregate.arguments:
            return f"{self.aggregate.function}({self.variable}{'[..i-1]' * self.before})"
        return x.show(self.aggregate).replace("[i]", "[..i-1]" if self.before else "")


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole event, or with EACH a group; allowed in RETURN only."""

    element: int
    pick: Pick


def parts(e: x.Expression) -> Iterator[Value | GroupAggregate]:
    """Yields the leaves of an expression in the order in which they occur."""
    return (leaf for leaf in x.leaves(e) if isinstance(leaf, (Value, GroupAggregate)))


def values(e: x.Expression) -> Iterator[Value]:
    """Yields every attribute that an expression reads, including within aggregates."""
    for part in parts(e):
        if isinstance(part, Value):
            yield part
        else:
            yield from values(part.aggregate)


def references(e: x.Expression) -> tuple[int, ...]:
    """Returns the elements that an expression mentions, in order."""
    mentioned = {value.element for value in values(e)}
    return tuple(sorted(mentioned | {part.element for part in parts(e)}))


# --- the query ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Element:
    """One step: an event of one of its types, or of any type if it lists none. `least` is None for
    a single event; otherwise the step is a Kleene group of `least` to `most` events, without a
    maximum if `most` is None. Elements to be matched have a `least` of at least 1; only a query
    with variants has groups that may be empty."""

    variable: str
    types: tuple[str, ...]
    negated: bool = False
    least: int | None = None
    most: int | None = None

    @property
    def kind(self) -> str:
        """Returns the types as they are written."""
        if len(self.types) > 1:
            return f"({' | '.join(self.types)})"
        return self.types[0] if self.types else "ANY"

    @property
    def filter(self) -> str | None:
        """Returns the condition on the type, for display."""
        if len(self.types) > 1:
            return f"type in {self.kind}"
        return f"type = {self.types[0]}" if self.types else None

    @property
    def kleene(self) -> bool:
        return self.least is not None

    @property
    def single(self) -> bool:
        return not self.negated and self.least is None

    def __str__(self) -> str:
        what = kind = self.kind
        if self.negated:
            what = f"!{what}"
        if self.least is not None:
            most = "" if self.most is None else str(self.most)
            sign = {(1, ""): "+", (0, ""): "*"}.get((self.least, most))
            what += sign or f"{{{self.least},{most}}}"
        return what if self.variable == kind.lower() != "any" else f"{what} {self.variable}"


class Class(enum.Enum):
    """The class of a conjunct: what it mentions, and hence when it can be decided."""

    CONSTANT = "constant"
    PAIR = "pair"
    MEMBER = "member"
    FIRST = "first"
    STEP = "step"
    GROUP = "group"
    NEGATED = "negated"


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One condition of WHERE. `refs` are the elements it mentions, in order; `text` and `at` give
    its source."""

    cls: Class
    refs: tuple[int, ...]
    expression: x.Expression
    text: str
    at: Span


class Strategy(enum.Enum):
    ANY = "any"
    NEXT = "next"
    STRICT = "strict"


class Mode(enum.Enum):
    GROUP = "group"
    SUBSETS = "subsets"


class Skip(enum.Enum):
    NONE = "no skip"
    NEXT = "to next event"
    PAST_LAST = "past last event"
    TO_FIRST = "to first"
    TO_LAST = "to last"


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of the result, or with `Whole` the columns of an event. `each` is the Kleene element
    whose members it lists."""

    name: str
    expression: x.Expression | Whole
    each: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchQuery:
    """The common part of PATTERN and MATCH_RECOGNIZE.

    `window` is in milliseconds, None without a bound. `empty` is a condition without variables that
    is never true, if there is one. `defines` names the derived stream that the query defines, if
    any; its matches are not results then. `strict` turns its first fault into an error. Each row of
    `candidates` holds the times between which there may be a match that ends there; without
    candidates, `whole` gives the reason for scanning all events. `written` is the statement behind
    its header, as it was written; `text` is on one line, and snapshots know a query by it.
    """

    name: str
    window: int | None
    skip: Skip
    partition: tuple[str, ...]
    outputs: tuple[OutputColumn, ...]
    stream: Stream
    text: str
    span: Span
    empty: str = ""
    defines: str | None = None
    strict: bool = False
    candidates: Stream | None = None
    whole: str = ""
    written: str = ""

    @property
    def ways(self) -> tuple[MatchQuery, ...]:
        """Lists the patterns to be matched: the query, or its variants."""
        return (self,)


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternQuery(MatchQuery):
    """A PATTERN query; `mode` matters under ANY only. If elements are optional or alternatives, its
    matches are those of its `variants`. A variant has some of the elements, at `places` among all,
    and lacks the columns that only concern the others."""

    elements: tuple[Element, ...]
    conjuncts: tuple[Conjunct, ...]
    strategy: Strategy
    mode: Mode
    type_column: str | None
    variants: tuple[PatternQuery, ...] = ()
    places: tuple[int, ...] = ()

    @property
    def ways(self) -> tuple[MatchQuery, ...]:
        return self.variants or (self,)

    @property
    def positives(self) -> tuple[int, ...]:
        return tuple(i for i, e in enumerate(self.elements) if not e.negated)

    @property
    def anchors(self) -> tuple[int, ...]:
        """Returns the single positive elements."""
        return tuple(i for i, e in enumerate(self.elements) if e.single)

    @property
    def kleene(self) -> bool:
        return any(e.kleene for e in self.elements)

    @property
    def grouped(self) -> bool:
        """Returns whether groups are maximal: some Kleene element under ANY GROUP."""
        return self.kleene and self.strategy is Strategy.ANY and self.mode is Mode.GROUP

    @property
    def waits(self) -> bool:
        """Returns whether a match is known only once its whole window has passed."""
        last = self.elements[-1]
        return last.negated or (last.kleene and self.grouped)

    @property
    def ends_with_stream(self) -> bool:
        """Returns whether a match is known only once the stream has ended."""
        return self.waits and self.window is None

    @property
    def horizon(self) -> int | None:
        """Returns how far back a matcher must remember events: W, or 2W if the window reaches back
        from a match whose end is known late."""
        if self.window is None:
            return None
        first = self.elements[0]
        back = first.negated or (first.kleene and self.grouped)
        return 2 * self.window if self.waits and back else self.window
