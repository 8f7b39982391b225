"""Plans a network from analysed subqueries: each edge carries exactly what is needed downstream.

Needs are collected from the output backwards, then nodes are built from the sources forwards.
Conditions on one input of a join or aggregation are checked before a tuple is stored, those on
several inputs at the first join that has them all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from seustream.compiler.apas import expressions as x
from seustream.compiler.apas import network as n
from seustream.compiler.apas.aggregates import StateLayout, laid_out, phase_1, phase_2
from seustream.compiler.apas.analyse import Analysed, Applied, BoundSubquery, Input
from seustream.compiler.apas.streams import Matching
from seustream.compiler.apas.tree import FIRST_ID, RESERVED, Node, Path
from seustream.compiler.apas.types import BOOLEAN, DATETIME
from seustream.compiler.language import expressions as lang
from seustream.compiler.language.convert import may_lack_value
from seustream.compiler.language.expressions import Expression
from seustream.compiler.language.types import Type
from seustream.hdl.isa import Condition

TIMES: tuple[Path, ...] = tuple((label,) for label in RESERVED)


@dataclass(slots=True)
class _Need:
    """The needed part of a subquery: leaves of its result, the steps that compute them, the partials, and
    the places read from each input."""

    used: bool = False
    paths: set[Path] = field(default_factory=set)
    steps: tuple[x.Step, ...] = ()
    partials: tuple[x.PartialAggregate, ...] = ()
    reads: dict[str, set[Path]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _PlannedStream:
    """A built input: its node, and the place of each path in the node's array."""

    node: int
    at: dict[Path, int]


def plan(analysed: Analysed) -> n.Network:
    needs = _needs(analysed)
    return _Planner(analysed, *needs).run()


# --- needs, backwards ---------------------------------------------------------


def _needs(analysed: Analysed) -> tuple[list[_Need], dict[str, set[Path]]]:
    needs = [_Need() for _ in analysed.definitions]
    sources: dict[str, set[Path]] = {}
    needs[-1].used = True
    needs[-1].paths = set(analysed.definitions[-1].tree.paths)

    def demand(one: Input, paths: set[Path]) -> None:
        paths = set(paths)
        if one.window is not None:
            paths |= one.window.reads
        paths -= set(TIMES)
        for part, under in one.parts:
            demand(part, {(*under, *path) for path in paths})
        if one.symbol is not None and one.symbol.number is not None:
            needs[one.symbol.number].used = True
            needs[one.symbol.number].paths |= paths
        elif one.symbol is not None:
            sources.setdefault(one.name, set()).update(paths)

    for subquery, need in zip(reversed(analysed.definitions), reversed(needs), strict=True):
        if need.used:
            _need_of(subquery, need)
            for one in subquery.inputs:
                demand(one, need.reads[one.name])
    return needs, sources


def _need_of(subquery: BoundSubquery, need: _Need) -> None:
    wanted = [(subquery.name, path) for path in need.paths]
    steps, live = x.needed(subquery.steps, wanted)
    need.steps = tuple(steps)
    # All of them, whoever reads them: where one changes, another tuple begins.
    need.partials = subquery.partials
    read = live | set(x.read_by(*need.partials)) | set(x.read_by(*subquery.conditions))
    for one in subquery.inputs:
        need.reads[one.name] = {path for structure, path in read if structure == one.name}


# --- nodes, forwards ----------------------------------------------------------


class _Planner:
    def __init__(
        self, analysed: Analysed, needs: list[_Need], sources: dict[str, set[Path]]
    ) -> None:
        self.analysed, self.needs, self.sources = analysed, needs, sources
        self.nodes: list[n.Node] = []
        self.titles: list[str] = []
        self.built: dict[int, _PlannedStream] = {}
        self.source_nodes: dict[str, _PlannedStream] = {}

    def run(self) -> n.Network:
        for number, (subquery, need) in enumerate(
            zip(self.analysed.definitions, self.needs, strict=True)
        ):
            if need.used:
                self.built[number] = self._subquery(subquery, need)
        return n.Network(tuple(self.nodes), tuple(self.titles))

    def _add(self, node: n.Node, title: str) -> int:
        self.nodes.append(node)
        self.titles.append(title)
        return len(self.nodes) - 1

    def _leaves(self, columns: Iterable[int], node: int) -> tuple[n.Leaf, ...]:
        """Returns the leaves that an edge picks from a node."""
        times: list[n.Leaf] = [("ts", DATETIME), ("te", DATETIME)]
        array = [*times, *self.nodes[node].leaves]
        return tuple(array[column] for column in columns)

    def _edge(self, stream: _PlannedStream, paths: Iterable[Path]) -> n.Edge:
        return n.Edge(stream.node, tuple(stream.at[path] for path in paths))

    # --- inputs ---------------------------------------------------------------

    def _input(self, one: Input, paths: set[Path]) -> _PlannedStream:
        """Builds the input's own nodes, with its union and window."""
        if one.window is not None:
            paths = paths | one.window.reads
        paths = paths - set(TIMES)  # a reader of this input's times reads the new ones
        stream = self._stream(one, paths)
        window = one.window
        if window is None or window.kind == "table":
            return stream
        carried = _in_order(one.tree, paths)
        edge = self._edge(stream, carried)
        leaves = self._leaves(edge.columns, edge.node)
        if window.applied is not None:
            made = _lifetimes(one, window.applied, edge, carried, leaves)
            return _at(self._add(made, f"window {window} of {one.name}"), carried)
        size = {"range": window.size, "now": 1, "unbounded": None}[window.kind]
        node = self._add(n.SetEndNode(edge, size, leaves), f"window {window} of {one.name}")
        return _at(node, carried)

    def _stream(self, one: Input, paths: set[Path]) -> _PlannedStream:
        if one.parts:
            carried = _in_order(one.tree, paths)
            edges = []
            for part, under in one.parts:
                wanted = {(*under, *path) for path in paths}
                stream = self._input(part, wanted)
                edges.append(self._edge(stream, [(*under, *path) for path in carried]))
            leaves = tuple((".".join(path), _type(one.tree, path)) for path in carried)
            names = ", ".join(part.name for part, _ in one.parts)
            return _at(self._add(n.MergeNode(tuple(edges), leaves), f"union of {names}"), carried)
        assert one.symbol is not None
        if one.symbol.number is not None:
            return self.built[one.symbol.number]
        if one.name not in self.source_nodes:
            carried = _in_order(one.tree, self.sources.get(one.name, set()))
            leaves = tuple((".".join(path), _type(one.tree, path)) for path in carried)
            node = self._add(n.StreamNode(one.name, tuple(carried), leaves), f"stream {one.name}")
            self.source_nodes[one.name] = _at(node, carried)
        return self.source_nodes[one.name]

    # --- subqueries -----------------------------------------------------------

    def _subquery(self, subquery: BoundSubquery, need: _Need) -> _PlannedStream:
        scratch = laid_out(subquery.scratch)
        if len(subquery.inputs) == 1:
            node, layout = self._one_input(subquery, need, scratch)
        else:
            node, layout = self._joined(subquery, need, scratch)
        at = {path: id for (name, path), id in layout.slots.items() if name == subquery.name}
        return _PlannedStream(node, {**at, TIMES[0]: 0, TIMES[1]: 1})

    def _one_input(
        self, subquery: BoundSubquery, need: _Need, scratch: StateLayout
    ) -> tuple[int, StateLayout]:
        (one,) = subquery.inputs
        stream = self._input(one, need.reads[one.name])
        keyed = one.window is not None and one.window.key and subquery.partials
        side, reads = self._side(one, stream, need.reads[one.name], bool(keyed))
        guard = _filter(subquery.conditions, reads, scratch)
        if subquery.partials:
            side = n.JoinSide(side.edge, side.key, guard)
            return self._aggregate(subquery, need, side, reads)
        map, layout = _map(subquery, need, reads)
        leaves = _leaves_of(layout)
        return self._add(
            n.SelectNode(side.edge, guard, map, leaves), f"select {subquery.name}"
        ), layout

    def _side(
        self, one: Input, stream: _PlannedStream, paths: set[Path], keyed: bool
    ) -> tuple[n.JoinSide, dict[x.Place, int]]:
        """Returns an edge that carries what is read from an input, and the places of these reads in
        its array."""
        key = one.window.key if keyed and one.window is not None else ()
        carried = _in_order(one.tree, paths - set(TIMES) | ({key} if key else set()))
        edge = self._edge(stream, carried)
        reads = {(one.name, path): at for path, at in _at(0, carried).at.items()}
        return n.JoinSide(edge, reads[one.name, key] if key else None, n.Filter()), reads

    def _aggregate(
        self, subquery: BoundSubquery, need: _Need, side: n.JoinSide, reads: dict[x.Place, int]
    ) -> tuple[int, StateLayout]:
        below = phase_1(subquery.hierarchy, need.partials)
        frame = n.Places(reads, below.slots, below.length)
        results = tuple(
            tuple(below.slots[p.structure, path] for path in p.bound.result.paths)
            for p in need.partials
        )
        partial_reads = {
            (p.structure, path): below.slots[p.structure, path]
            for p in need.partials
            for path in p.bound.result.paths
        }
        map, layout = _map(subquery, need, partial_reads)
        leaves = _leaves_of(layout)
        node = n.AggregateNode(side, need.partials, frame, results, below.width, map, leaves)
        return self._add(node, f"aggregate {subquery.name}"), layout

    # --- joins ----------------------------------------------------------------

    def _joined(
        self, subquery: BoundSubquery, need: _Need, scratch: StateLayout
    ) -> tuple[int, StateLayout]:
        """Joins the inputs left-deep, in order of first mention."""
        streams = {one.name: self._input(one, need.reads[one.name]) for one in subquery.inputs}
        left_over = list(subquery.conditions)
        first, *others = subquery.inputs

        def conditions_on(name: str) -> tuple[Expression, ...]:
            mine = [c for c in left_over if _streams(c, streams) == {name}]
            left_over[:] = [c for c in left_over if c not in mine]
            return tuple(mine)

        have = {first.name}
        left = _stored(self._table_side(first, streams, need), conditions_on(first.name), scratch)
        layout: StateLayout | None = None
        node = -1
        for place, one in enumerate(others):
            last = place == len(others) - 1
            right = _stored(self._table_side(one, streams, need), conditions_on(one.name), scratch)
            have |= {one.name}
            mine = [c for c in left_over if _streams(c, streams) <= have]
            left_over = [c for c in left_over if c not in mine]
            terms, residual = _terms(mine, have - {one.name}, one.name, streams)
            width = len(left[0].edge.columns)
            reads = dict(left[1])
            for read, at in right[1].items():
                reads[read] = at + width if at >= FIRST_ID else at
            map = None
            if last and not subquery.partials:
                map, layout = _map(subquery, need, reads)
                leaves = _leaves_of(layout)
            else:
                leaves = self._leaves(left[0].edge.columns, left[0].edge.node)
                leaves += self._leaves(right[0].edge.columns, right[0].edge.node)
            equal = tuple(
                (_filter([a], left[1], scratch), _filter([b], right[1], scratch)) for a, b in terms
            )
            rest = _filter(residual, reads, scratch)
            index = _index(residual, left, right, scratch)
            node = self._add(
                n.JoinNode(left[0], right[0], equal, rest, map, leaves, index),
                f"join {', '.join(each.name for each in subquery.inputs if each.name in have)}",
            )
            if not last or subquery.partials:
                later = set(x.read_by(*left_over)) | self._read_later(subquery, need)
                left = _carry(node, reads, later)
        if subquery.partials:
            return self._aggregate(subquery, need, left[0], left[1])
        assert layout is not None
        return node, layout

    def _table_side(
        self, one: Input, streams: dict[str, _PlannedStream], need: _Need
    ) -> tuple[n.JoinSide, dict[x.Place, int]]:
        """Builds one side of a table join. Times that the result reads are columns, since the
        result has times of its own."""
        paths = need.reads[one.name]
        key = one.window.key if one.window is not None else ()
        carried = _in_order(one.tree, paths | ({key} if key else set()))
        edge = self._edge(streams[one.name], carried)
        reads = {(one.name, path): FIRST_ID + i for i, path in enumerate(carried)}
        return n.JoinSide(edge, reads[one.name, key] if key else None, n.Filter()), reads

    def _read_later(self, subquery: BoundSubquery, need: _Need) -> set[x.Place]:
        reading: list[x.Step | x.PartialAggregate] = list(need.partials or need.steps)
        return set(x.read_by(*reading))


def _carry(
    node: int, reads: dict[x.Place, int], later: set[x.Place]
) -> tuple[n.JoinSide, dict[x.Place, int]]:
    """Returns the edge from an inner join with only those of its columns that are read later."""
    kept = [(place, at) for place, at in reads.items() if place in later]
    edge = n.Edge(node, tuple(at for _, at in kept))
    found = {place: FIRST_ID + i for i, (place, _) in enumerate(kept)}
    return n.JoinSide(edge, None, n.Filter()), found


def _stored(
    side: tuple[n.JoinSide, dict[x.Place, int]],
    conditions: tuple[Expression, ...],
    scratch: StateLayout,
) -> tuple[n.JoinSide, dict[x.Place, int]]:
    """Returns the side with the conditions on that side alone."""
    one, reads = side
    return n.JoinSide(one.edge, one.key, _filter(conditions, reads, scratch)), reads


def _terms(
    conditions: list[Expression], left: set[str], right: str, streams: Iterable[str]
) -> tuple[list[tuple[Expression, Expression]], list[Expression]]:
    """Splits conditions into equalities of an expression over the left and one over the right, and
    the rest."""
    terms, residual = [], []
    names = set(streams)
    for condition in conditions:
        if isinstance(condition, lang.Compare) and _hashable(condition):
            a, b = (x.converted(e, condition.of) for e in (condition.left, condition.right))
            of_a, of_b = _streams(a, names), _streams(b, names)
            if of_a and of_b and of_a <= left and of_b == {right}:
                terms.append((a, b))
                continue
            if of_a and of_b and of_b <= left and of_a == {right}:
                terms.append((b, a))
                continue
        residual.append(condition)
    return terms, residual


def _hashable(e: lang.Compare) -> bool:
    """Returns whether the two sides are equal exactly when they are equal in their common type."""
    sides = (e.left.type, e.right.type)
    return e.condition is Condition.EQ and not any(may_lack_value(of, e.of) for of in sides)


def _index(
    conditions: list[Expression],
    left: tuple[n.JoinSide, dict[x.Place, int]],
    right: tuple[n.JoinSide, dict[x.Place, int]],
    scratch: StateLayout,
) -> n.MatchedNode | None:
    """Returns a node for the first condition that a library's index serves, if its two groups of
    arguments belong to the two sides."""
    names = ({name for name, _ in left[1]}, {name for name, _ in right[1]})
    for condition in conditions:
        e = _called(condition)
        if not isinstance(e, x.Invoke) or not isinstance(e.bound.function, Matching) or e.before:
            continue
        first = e.bound.function.sides[0]
        groups = (e.arguments[:first], e.arguments[first:])
        of = tuple({name for name, _ in x.read_by(*group)} for group in groups)
        for mine, place in ((names, 0), (names[::-1], 1)):
            if of[0] and of[1] and of[0] <= mine[0] and of[1] <= mine[1]:
                sides = (left, right) if place == 0 else (right, left)
                arguments = tuple(
                    tuple(_filter([a], side[1], scratch) for a in group)
                    for side, group in zip(sides, groups, strict=True)
                )
                return n.MatchedNode(
                    e.bound.function,
                    e.name,
                    arguments[place],
                    arguments[1 - place],
                    place,
                    tuple(tuple(a.type for a in groups[side ^ place]) for side in (0, 1)),
                )
    return None


def _called(condition: Expression) -> Expression:
    """Returns the value behind a comparison with TRUE, else the condition itself."""
    if isinstance(condition, lang.Compare) and condition.right == lang.TRUE:
        return condition.left
    return condition


def _lifetimes(
    one: Input,
    applied: Applied,
    edge: n.Edge,
    carried: list[Path],
    leaves: tuple[n.Leaf, ...],
) -> n.LifetimesNode:
    reads = {(one.name, path): at for path, at in _at(0, carried).at.items()}
    scratch = laid_out(applied.scratch)
    arguments = tuple(_filter([a], reads, scratch) for a in applied.arguments)
    types = tuple(a.type for a in applied.arguments)
    return n.LifetimesNode(
        edge, applied.function, str(applied), applied.constants, arguments, types, leaves
    )


def _streams(e: Expression, names: Iterable[str]) -> set[str]:
    known = set(names)
    return {structure for structure, _ in x.read_by(e)} & known


def _filter(
    conditions: Iterable[Expression], reads: dict[x.Place, int], scratch: StateLayout
) -> n.Filter:
    return n.Filter(tuple(conditions), n.Places(reads, scratch.slots, scratch.length))


def _map(
    subquery: BoundSubquery, need: _Need, reads: dict[x.Place, int]
) -> tuple[n.Map, StateLayout]:
    wanted = {(subquery.name, path) for path in need.paths}
    targets = {place for step in need.steps for place in x.written(step)}
    layout = laid_out(phase_2(subquery.hierarchy, subquery.partials), wanted | targets)
    # An attribute that only others read precedes them in the text but is not part of the result.
    dropped = {p for p in targets if p[0] == subquery.name} - wanted
    if dropped:
        layout = _behind(layout, subquery.name, wanted, dropped)
    own = {(subquery.name, TIMES[0]): 0, (subquery.name, TIMES[1]): 1}
    frame = n.Places({**reads, **own}, layout.slots, layout.length)
    return n.Map(need.steps, frame, layout.width), layout


def _behind(
    layout: StateLayout, name: str, wanted: set[x.Place], dropped: set[x.Place]
) -> StateLayout:
    """Moves attributes that are computed but not needed downstream to where temporaries are."""
    order = sorted(wanted, key=lambda p: layout.slots[p])
    slots = {place: FIRST_ID + i for i, place in enumerate(order)}
    width = FIRST_ID + len(order)
    extra = {p: layout.length + i for i, p in enumerate(sorted(dropped))}
    temporary = {p: id for p, id in layout.slots.items() if p[0] != name}
    return StateLayout(
        layout.root, {**slots, **extra, **temporary}, width, layout.length + len(dropped)
    )


def _at(node: int, carried: list[Path]) -> _PlannedStream:
    at = {path: FIRST_ID + i for i, path in enumerate(carried)}
    return _PlannedStream(node, {TIMES[0]: 0, TIMES[1]: 1, **at})


def _in_order(tree: Node, paths: set[Path]) -> list[Path]:
    """Orders paths: times first, then leaves in the order of the tree."""
    return [path for path in (*TIMES, *tree.paths) if path in paths]


def _type(tree: Node, path: Path) -> Type:
    node = tree.at(path)
    return node.type if node is not None and node.type is not None else BOOLEAN


def _leaves_of(layout: StateLayout) -> tuple[n.Leaf, ...]:
    root = layout.root.tree
    inside = [
        (id, ".".join(path), _type(root, path))
        for (name, path), id in layout.slots.items()
        if name == root.label and id < layout.width
    ]
    return tuple((name, type) for _, name, type in sorted(inside))
