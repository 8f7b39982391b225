"""Layout: assigns streams to join areas, and encodings to columns.

before  queries over named streams
after   slots (one join area each, in catalogue order; a self-join takes one for each
        alias) and an encoding for every column some query compares
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from seustream.compiler.catalogue import TIME_COLUMN, Stream
from seustream.compiler.language import expressions as x
from seustream.compiler.language import types as t
from seustream.compiler.language.types import Kind
from seustream.compiler.logical.program import Program, Query
from seustream.compiler.logical.windows import is_plain
from seustream.compiler.plan.computed import Computed, is_time
from seustream.compiler.plan.encoding import Codec, Encoding, digits_of
from seustream.hdl.config import MAX_ATTRIBUTES
from seustream.hdl.isa import Condition


@dataclass(frozen=True, slots=True)
class Slot:
    """A join area and the stream it holds; `copy` counts the aliases of a self-join from 0."""

    stream: Stream
    copy: int

    @property
    def name(self) -> str:
        return self.stream.name + ("" if self.copy == 0 else f"#{self.copy + 1}")


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout. `of_query[i][j]` is the slot of the j-th stream in FROM of the i-th query, empty
    for a query in which the device has no part. `encodings` is by stream and attribute name, and
    omits those that no code can represent. `compared[i]` is the condition of the i-th query with
    computed attributes; `computed` holds their expressions."""

    slots: tuple[Slot, ...]
    of_query: tuple[tuple[int, ...], ...]
    encodings: dict[tuple[str, str], Encoding]
    compared: tuple[x.Expression, ...] = ()
    computed: dict[tuple[str, str], x.Expression] = field(default_factory=dict)


def uses_device(query: Query) -> bool:
    """Returns whether a query joins base streams, or selects from one, and can have a result at
    all."""
    for source in query.sources:
        if source.stream.defined_by is not None or source.stream.table:
            return False
    return query.where != x.FALSE and (len(query.sources) > 1 or _selects(query))


def _selects(query: Query) -> bool:
    """Returns whether comparisons with constants exclude rows of a query's one stream. An
    expression that may have a fault belongs to the engine, which counts the faults of all rows."""
    if not is_plain(query.sources[0].window):
        return False
    if any(isinstance(part, x.Call | x.Cast) for part in x.walk(query.where)):
        return False
    return any(map(_compares_constants, x.conjuncts(query.where)))


def _compares_constants(e: x.Expression) -> bool:
    match e:
        case x.And() | x.Or():
            return all(map(_compares_constants, e.terms))
        case x.Compare(_, x.ColumnReference(), x.Literal()):
            return True
    return False


def lay_out(
    program: Program,
    attribute_width: int,
    software: Container[str] = frozenset(),
    attributes: int = MAX_ATTRIBUTES,
) -> Layout:
    """Lays out the queries of a program, except those named in `software`, with this many
    attributes per area."""
    on_device = {q.name for q in program.queries if q.name not in software and uses_device(q)}
    copies: dict[str, int] = {}
    wanted: list[list[tuple[str, int]]] = []
    for query in program.queries:
        seen: dict[str, int] = {}
        keys = []
        for source in query.sources if query.name in on_device else ():
            name = source.stream.name
            keys.append((name, seen.get(name, 0)))
            seen[name] = seen.get(name, 0) + 1
            copies[name] = max(copies.get(name, 0), seen[name])
        wanted.append(keys)
    slots = tuple(
        Slot(stream, copy)
        for stream in program.streams
        for copy in range(copies.get(stream.name, 0))
    )
    position = {(slot.stream.name, slot.copy): number for number, slot in enumerate(slots)}
    of_query = tuple(tuple(position[key] for key in keys) for keys in wanted)
    compared: list[x.Expression] = []
    computed: dict[tuple[str, str], x.Expression] = {}
    for query in program.queries:
        if query.name in on_device:
            compared.append(Computed(query, attributes, computed).where())
        else:
            compared.append(query.where)
    asked = [
        (query, where)
        for query, where in zip(program.queries, compared, strict=True)
        if query.name in on_device
    ]
    encodings = _encodings(asked, attribute_width, computed)
    return Layout(slots, of_query, encodings, tuple(compared), computed)


@dataclass
class _Class:
    """Columns compared with each other, directly or through others."""

    members: dict[tuple[str, str], x.ColumnReference]
    equated: bool = False
    ordered: bool = False


def _encodings(
    queries: Iterable[tuple[Query, x.Expression]],
    width: int,
    computed: Mapping[tuple[str, str], x.Expression],
) -> dict[tuple[str, str], Encoding]:
    classes: dict[tuple[str, str], _Class] = {}
    for query, where in queries:
        for compare in comparisons(where):
            sides = [
                side
                for side in (compare.left, compare.right)
                if isinstance(side, x.ColumnReference)
            ]
            if not sides:
                continue
            keys = [(query.sources[side.source].stream.name, side.name) for side in sides]
            merged = _Class(dict(zip(keys, sides, strict=True)))
            for key in keys:
                old = classes.get(key)
                if old is not None:
                    merged.members |= old.members
                    merged.equated |= old.equated
                    merged.ordered |= old.ordered
            merged.equated |= len(sides) == 2 and compare.condition is Condition.EQ
            merged.ordered |= compare.condition not in (Condition.EQ, Condition.NE)
            for key in merged.members:
                classes[key] = merged
    times = {key for key, e in computed.items() if is_time(e)}
    chosen = {key: _encoding(found, width, times) for key, found in classes.items()}
    return {key: encoding for key, encoding in chosen.items() if encoding is not None}


def comparisons(predicate: x.Expression) -> Iterator[x.Compare]:
    """Yields the comparisons that the device could make: of columns of two streams, or of a column
    with a constant, not nested in another operator."""
    match predicate:
        case x.And() | x.Or():
            for term in predicate.terms:
                yield from comparisons(term)
        case x.Compare(_, x.ColumnReference(), x.Literal()):
            yield predicate
        case x.Compare(_, x.ColumnReference() as left, x.ColumnReference() as right) if (
            left.source != right.source
        ):
            yield predicate


def encoding_of(column: x.ColumnReference, width: int) -> Encoding | None:
    """Returns the encoding of a column that nothing compares."""
    return _encoding(_Class({("", column.name): column}), width, ())


def _encoding(found: _Class, width: int, times: Container[tuple[str, str]]) -> Encoding | None:
    """Returns an encoding, or None if no code decides anything about the values."""
    types = {column.type for column in found.members.values()}
    if any(of.is_decimal for of in types):
        if not all(of.is_decimal or of.is_integer for of in types):
            return None
        sizes = [t.digits(of) for of in types]
        scale = max(scale for _, scale in sizes)
        whole = max(precision - scale for precision, scale in sizes)
        fits = whole + scale <= digits_of(width)
        return Encoding(Codec.INTEGER, width, scale) if fits else None
    if all(key in times or key[1] == TIME_COLUMN.name for key in found.members):
        return Encoding(Codec.TICKS, width)
    codec = _codec(found)
    return None if codec is None else Encoding(codec, width)


def _codec(found: _Class) -> Codec | None:
    kinds = {column.type.kind for column in found.members.values()}
    if kinds <= {Kind.SMALLINT, Kind.INT, Kind.INTERVAL} or kinds in ({Kind.DATE}, {Kind.BOOLEAN}):
        return Codec.INTEGER
    if kinds == {Kind.REAL}:
        return Codec.REAL
    if kinds == {Kind.TIME}:
        return Codec.CLOCK
    # A join on equality is worth more than an order: it leaves the fewest pairs to the host.
    hashed = found.equated or not found.ordered
    if kinds == {Kind.TIMESTAMP}:
        return Codec.TIMESTAMP_HASH if hashed else Codec.SECONDS
    if kinds <= {Kind.CHAR, Kind.VARCHAR}:
        return Codec.TEXT_HASH if hashed else Codec.TEXT
    if not kinds <= _NUMBERS:
        return None
    # The prefix of a double distinguishes most numbers, so it serves equality nearly as well.
    if found.ordered:
        return Codec.NUMBER
    return Codec.INTEGER_HASH if kinds == {Kind.BIGINT} else Codec.NUMBER_HASH


_NUMBERS = {Kind.SMALLINT, Kind.INT, Kind.BIGINT, Kind.REAL, Kind.DOUBLE}
