"""The tree by which a sequence of single events is searched without dead ends.

    a.p < b.p AND b.q < c.q                      a on b, b on c
    a.p < b.p AND a.q < c.q                      b on a, a on c
    a.id = c.id AND b.id = c.id                  a on b, b on c: all ids are equal
    a.id = c.id AND b.id = c.id AND a.p < c.p    a on c, b on c

The last element is the root; each other one hangs on an element that it is compared with. Where
several values are equal, any two of them may be compared: those of elements that are compared
anyway, or that follow each other. Elements that nothing compares hang on a neighbour. No two edges
cross, so what hangs on an element is a range of neighbours together with it. Comparisons that find
no place in the tree are left to be checked.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from seustream.compiler.language import expressions as x
from seustream.compiler.language.types import Type
from seustream.compiler.pattern import ir
from seustream.engine.pattern.columns import Once
from seustream.engine.pattern.links import PatternLink, of_any
from seustream.engine.stream.differences import Difference
from seustream.hdl.isa import Condition

Side = tuple[x.Expression, Type, Difference | None] | None
"""Numbers of events; of a difference those that bound the other side. None are keys of PARTITION
BY."""

Place = tuple[int, Side]
"""A side of the events of an element."""

Pair = tuple[int, int]
"""Two elements, the earlier first."""

_BOTH, _EQUAL, _COMPARED = range(3)


@dataclass(frozen=True, slots=True)
class TreeLink:
    """`one op other`. Between two elements of the tree it finds the events of the first one."""

    op: Condition
    one: Place
    other: Place


class SequenceTree:
    """`parents` holds, by element, the one on which it hangs; the last one hangs on none, -1.
    `links` are all that has to hold."""

    def __init__(self, query: ir.PatternQuery, links: Sequence[PatternLink]) -> None:
        count = len(query.elements)
        equal = [(_at(link.left), _at(link.right)) for link in links if _equal(link)]
        if query.partition:
            equal += [((e, None), (e + 1, None)) for e in range(count - 1)]
        classes = _classes(equal)
        edges = _edges(count, _ranks(links, classes))
        self.parents = _hung(count, edges)
        self.links = list(self._links(links, edges, classes, equal))

    @property
    def order(self) -> list[int]:
        """The order in which the kernel binds elements: each before what hangs on it, which it binds
        from right to left, first what is later."""
        order: list[int] = []
        due = [len(self.parents) - 1]
        while due:
            order.append(element := due.pop())
            below = [e for e, parent in enumerate(self.parents) if parent == element]
            due += sorted(below, key=lambda e: (e > element, e))
        return order

    def _links(
        self,
        links: Sequence[PatternLink],
        edges: Sequence[Pair],
        classes: Sequence[Sequence[Place]],
        equal: Sequence[tuple[Place, Place]],
    ) -> Iterator[TreeLink]:
        tied: list[tuple[Place, Place]] = []
        for pair, places in itertools.product(edges, classes):
            tied += [(a, b) for a in places for b in places if (a[0], b[0]) == pair]
        known = {place: number for number, some in enumerate(_classes(tied)) for place in some}
        # What the edges do not connect is checked.
        tied += [(a, b) for a, b in equal if a not in known or known[a] != known.get(b)]
        for a, b in tied:
            yield from self._along(TreeLink(Condition.EQ, a, b), TreeLink(Condition.EQ, b, a))
        for link in links:
            if not _equal(link):
                one, other, apart = link.left, link.right, link.apart
                back = None if apart is None else apart.exchanged
                yield from self._along(
                    TreeLink(link.op, _at(one), _at(other, apart)),
                    TreeLink(link.op.mirrored(), _at(other), _at(one, back)),
                )

    def _along(self, link: TreeLink, back: TreeLink) -> Iterator[TreeLink]:
        """Yields a comparison in the directions in which it is looked up: from what hangs to what
        it hangs on only where that is earlier, so that it waits."""
        if self.parents[link.other[0]] == link.one[0]:
            link, back = back, link
        yield link
        if self.parents[link.one[0]] == link.other[0] < link.one[0]:
            yield back


def _ranks(links: Sequence[PatternLink], classes: Sequence[Sequence[Place]]) -> dict[Pair, int]:
    """Returns which pairs should be edges, the more so the lower their rank: what is compared and
    equal, too, then what is equal, then what is compared. Any two of a class are equal, so those that
    follow each other are enough."""
    some = [sorted({element for element, _ in places}) for places in classes]
    ranks = {pair: _EQUAL for elements in some for pair in itertools.pairwise(elements)}
    for link in links:
        if link.op is not Condition.NE and not _equal(link):
            pair = _pair(link.left.element, link.right.element)
            both = any({*pair} <= {*elements} for elements in some)
            ranks[pair] = _BOTH if both else _COMPARED
    return ranks


def _equal(link: PatternLink) -> bool:
    return link.op is Condition.EQ and link.apart is None


def _at(one: Once, apart: Difference | None = None) -> Place:
    return one.element, (of_any(one.part), one.type, apart)


def _pair(a: int, b: int) -> Pair:
    return min(a, b), max(a, b)


def _classes(equal: Iterable[tuple[Place, Place]]) -> list[list[Place]]:
    """Returns the places that have to be equal, together."""
    classes: dict[Place, list[Place]] = {}
    for a, b in equal:
        one, other = classes.setdefault(a, [a]), classes.setdefault(b, [b])
        if one is not other:
            one += other
            classes |= dict.fromkeys(other, one)
    return [*{id(one): one for one in classes.values()}.values()]


def _edges(count: int, ranks: Mapping[Pair, int]) -> list[Pair]:
    """Returns the edges of a tree of all elements: those of the lowest rank first, then the
    shortest ones."""
    edges: list[Pair] = []
    component = [*range(count)]

    def turn(pair: Pair) -> tuple[int, int, int]:
        # What is only compared had better be bound last, which is what hangs on something earlier.
        a, b = pair
        return ranks[pair], b - a, b if ranks[pair] == _COMPARED else -b

    for a, b in [*sorted(ranks, key=turn), *((e - 1, e) for e in reversed(range(1, count)))]:
        crossed = any(c < a < d < b or a < c < b < d for c, d in edges)
        if component[a] != component[b] and not crossed:
            edges.append((a, b))
            old, new = component[b], component[a]
            component = [new if one == old else one for one in component]
    return edges


def _hung(count: int, edges: Sequence[Pair]) -> list[int]:
    parents, reached = [-1] * count, [count - 1]
    for parent in reached:
        for pair in edges:
            if parent in pair:
                (child,) = {*pair} - {parent}
                if child not in reached:
                    parents[child] = parent
                    reached.append(child)
    return parents
