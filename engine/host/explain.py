"""Shows how the engine finds the partners of a row, as facts for EXPLAIN."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from seustream.compiler.explain.text import Columns
from seustream.compiler.language import expressions as x
from seustream.compiler.logical import program as logical
from seustream.compiler.logical.joins import AsofJoin, JoinTree, TreeJoin, joins, visible
from seustream.engine.host.links import JoinLink, Search, between, searches
from seustream.hdl.isa import Condition


@dataclass(frozen=True, slots=True)
class SearchFacts:
    """A search for the partners of a row of `arrival`. Of the conditions, some are `compared` or
    `computed` by the search, and others `evaluated` for the pairs that are left."""

    COLUMNS: ClassVar[Columns] = (
        ("query", "query"),
        ("a row of", "arrival"),
        ("finds", "finds"),
        ("by", "by"),
        ("compared", lambda one: "; ".join(one.compared)),
        ("computed", lambda one: "; ".join(one.computed)),
        ("evaluated", lambda one: "; ".join(one.evaluated)),
    )

    query: str
    arrival: str
    finds: str
    by: str
    compared: tuple[str, ...]
    computed: tuple[str, ...]
    evaluated: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JoinSearches:
    """The searches of all queries."""

    SECTIONS: ClassVar = (("How partners are found", "rows"),)

    rows: tuple[SearchFacts, ...]


def search_facts(relations: Iterable[logical.Relation]) -> tuple[SearchFacts, ...]:
    """Returns the searches of all joins in some queries."""
    return tuple(one for relation in relations for one in _of(relation))


def _of(relation: logical.Relation) -> Iterator[SearchFacts]:
    if isinstance(relation, logical.Query):
        conjuncts, names = x.conjuncts(relation.where), [s.alias for s in relation.sources]
        for source, alias in enumerate(names if len(names) > 1 else ()):
            for search in searches(conjuncts, source, len(names)):
                yield _fact(relation.name, alias, names[search.source], search)
    elif isinstance(relation, JoinTree) and isinstance(relation.tree, TreeJoin):
        names = [source.alias for source in relation.sources]
        for join in joins(relation.tree):
            if isinstance(join, AsofJoin):
                continue  # it has one partner, which its time decides
            left, right = visible(join.left), visible(join.right)
            search = between(x.conjuncts(join.condition), frozenset(left), frozenset(right))
            sides = [", ".join(names[one] for one in side) for side in (left, right)]
            yield _fact(relation.name, sides[0], sides[1], search)


def _fact(query: str, arrival: str, finds: str, search: Search) -> SearchFacts:
    equal = [link for link in search.links if link.op is Condition.EQ and link.apart is None]
    whole = [link for link in search.links if link.apart is None and link not in equal]
    formulas = {formula.condition for formula in search.formulas}
    choice = search.choice
    compared = [x.show(link.conjunct) for link in whole]
    if choice is not None and choice.exact:
        compared.append(x.show(choice.condition))
    return SearchFacts(
        query,
        arrival,
        finds,
        _by(search.links, equal),
        tuple(dict.fromkeys(compared)),
        tuple(x.show(e) for e in search.others if e in formulas),
        tuple(x.show(e) for e in search.others if e not in formulas),
    )


def _by(links: Sequence[JoinLink], equal: Sequence[JoinLink]) -> str:
    """Returns the index of a search: a key, the order of some values in a large window, or none."""
    if equal:
        return "key " + ", ".join(x.show(link.theirs) for link in equal)
    ordered = [x.show(link.theirs) for link in links if link.op is not Condition.NE]
    return f"order of {' or '.join(dict.fromkeys(ordered))}" if ordered else "scan"
