"""Outer, semi and anti joins: a SELECT over a tree of joins.

One operator knows the whole tree and the windows of its sources, so that *within* can be decided
for combinations of any depth. It keeps the tuples that some combination still needs and, at each
join, the combinations that may still match.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from seustream.compiler.catalogue import Stream
from seustream.compiler.language import expressions as x
from seustream.compiler.logical.joins import JoinTree
from seustream.compiler.logical.windows import LandmarkWindow, PartitionWindow, has_end
from seustream.engine.host.answers import Blaming
from seustream.engine.host.complete import selected
from seustream.engine.host.grouping import Arrivals, Grouping, Members, end_of
from seustream.engine.host.stores import Stores
from seustream.engine.relational.combinations import (
    END,
    NEVER,
    NOTHING,
    Bools,
    Combinations,
    Frontier,
    Ints,
    TreeSources,
    until_landmark,
)
from seustream.engine.relational.inputs import SLICE_ROWS, Inputs
from seustream.engine.relational.matching import Arrived, part
from seustream.engine.relational.pool import Pool, Pooled
from seustream.engine.stream.answers import as_rows
from seustream.engine.stream.faults import QueryFaults, fault_report, restore
from seustream.engine.stream.merge import END_OF_STREAM, Slice, timestamps
from seustream.engine.stream.operator import EARLIEST, Answer
from seustream.engine.stream.schema import stream_schema
from seustream.engine.stream.snapshot import Snapshot, unpack
from seustream.engine.stream.sorting import lexsort
from seustream.hdl.device import WindowKind


class TreeOperator:
    """Answers one SELECT over a tree of joins. Results of a query come as soon as they are certain;
    rows of a stream, and members of groups, come in the order of their latest tuples."""

    def __init__(self, node: JoinTree, faults: QueryFaults) -> None:
        self.node, self.faults = node, {node.name: faults}
        self.query, self.own_faults = node.query, faults
        self.rows = Inputs(node.inputs)
        self.inputs = self.rows.names
        self.push, self.advance = self.rows.push, self.rows.advance
        self.stores = Stores(node.inputs, dict.fromkeys(self.inputs, 1), {})
        self.frame = TreeSources(node.sources, self.stores)
        self.root = part(node.tree, self.frame, faults)
        self.grouping = Grouping(self.query) if node.aggregated else None
        self.held = Pool(self.frame, (), True)
        """The combinations that wait for their turn in the order of their latest tuples."""
        # The rows that have left windows of partitions since members were added, and when they
        # left.
        self.pushed: dict[int, list[tuple[Ints, Ints]]] = {n: [] for n in self.frame.partitions}
        self.frontier = Frontier(0, EARLIEST)
        self.at_once = _ROWS_AT_FIRST
        self.trim_at = dict.fromkeys(self.inputs, 0)
        """The number of rows in a store from which on it is looked through."""

    @property
    def watermark(self) -> int:
        return END_OF_STREAM if self.frontier == END else self.frontier.time - 1

    def outputs(self) -> Iterator[Answer]:
        for rows in self.rows.release():
            start = 0
            while start < len(rows):
                stop = min(start + self.at_once, len(rows))
                part = rows if stop - start == len(rows) else rows.part(start, stop)
                yield from self._step(part)
                self._adapt(stop - start)
                start = stop
        reached = self.rows.watermark
        if reached == END_OF_STREAM:
            coming = END
        else:
            coming = Frontier(self.stores.position, max(reached + 1, EARLIEST))
        yield from self._advance(Arrived(dict.fromkeys(self.inputs, _none()), coming))

    def _adapt(self, taken: int) -> None:
        """Takes fewer rows at a time where they make many pairs, so that results come in parts."""
        found = sum(node.found for node in self.root.nodes())
        if found > _PAIRS_AT_ONCE:
            self.at_once = max(1, taken // 2)
        elif 4 * found < _PAIRS_AT_ONCE and taken == self.at_once:
            self.at_once = min(2 * taken, SLICE_ROWS)

    def _step(self, part: Slice) -> Iterator[Answer]:
        places = self.stores.add(part)
        for number, pushed in self.frame.partitions.items():
            came, gone = pushed.add(places[pushed.stream])
            if self.grouping is not None:
                self.pushed[number].append((came, gone))
        new = {name: self.stores[name].first + at for name, at in places.items()}
        latest = max(int(timestamps(rows)[-1]) for rows in part.rows if rows.num_rows)
        yield from self._advance(Arrived(new, Frontier(self.stores.position, latest)))

    def _advance(self, arrived: Arrived) -> Iterator[Answer]:
        with Blaming(self.query, self.own_faults):
            certain, frontier = self.root.step(arrived)
            certain = self._filtered(certain)
            # A watermark never retreats, but a slice may end within one time.
            self.frontier = Frontier(frontier.place, max(frontier.time, self.frontier.time))
            if self.node.defines is None and self.grouping is None:
                answer = self._selected(certain, self._by_moment(certain))
            else:
                self.held.add(certain)
                ready = self.held.before(self.frontier.place)
                now = self.held.view.pick(ready)
                self.held.leave(ready)
                if self.held.is_sparse:
                    self.held.compact()
                answer = self._in_order(now)
        if answer is not None and answer.num_rows:
            yield self.node.name, as_rows(self.query, answer)
        self._trim()

    def _filtered(self, found: Combinations) -> Combinations:
        """Returns the combinations for which WHERE holds."""
        if self.node.where == x.TRUE:
            return found
        return found.pick(self.frame.where(self.node.where, found.rows, self.own_faults))

    # --- order ----------------------------------------------------------------

    def _by_moment(self, found: Combinations) -> Ints:
        places = self.frame.places(found.rows)
        return lexsort((*reversed(places), found.place, found.time))

    def _by_latest(self, found: Combinations) -> Ints:
        places = self.frame.places(found.rows)
        return lexsort((*reversed(places), np.max(places, axis=0)))

    def _selected(self, found: Combinations, order: Ints) -> pa.Table | None:
        if not len(found):
            return None
        rows = found.rows[order]
        columns = self.frame.columns([item.expression for item in self.node.items], rows)
        oldest, newest = self.frame.oldest(rows), self.frame.arrivals(rows)[1]
        with self.own_faults.naming(lambda row: self.frame.named(rows[row])):
            return selected(self.query, columns, oldest, newest, self.own_faults)

    def _in_order(self, found: Combinations) -> pa.Table | None:
        order = self._by_latest(found)
        if self.grouping is None or not len(found):
            return self._selected(found, order)
        rows = found.rows[order]
        lives = self.frame.lives(rows)
        when, first, arrival = np.unique(lives.place, return_index=True, return_inverse=True)
        time = lives.time[first]
        clocks: list[Ints] = []
        ends: list[Ints] = []
        for number, source in enumerate(self.node.sources):
            if not has_end(source.window):
                continue
            store, mine = self.frame.store(number), rows[:, number]
            here = mine != NOTHING
            if isinstance(source.window, PartitionWindow):
                clocks.append(when)
                ends.append(self._pushed_out(number, len(ends), mine))
                continue
            if source.window.kind is WindowKind.ROWS:
                arrived = store.position[0].search(when, after=True)
                clocks.append(store.first + arrived - 1)
            else:
                clocks.append(time)
            end = np.full(len(rows), NEVER)
            times = store.timestamp[store.index(mine[here])]
            if isinstance(source.window, LandmarkWindow):
                end[here] = until_landmark(source.window, times)
            else:
                end[here] = end_of(source.window, times, mine[here])
            ends.append(end)
        read = [item.expression for item in self.node.items] + list(self.node.group_by)
        read += [self.node.having] if self.node.having is not None else []
        columns = self.frame.columns(read, rows)
        new = Members(arrival, tuple(ends), self.frame.oldest(rows), columns)
        with self.own_faults.naming(lambda row: self.frame.named(rows[row])):
            return self.grouping.add(Arrivals(time, tuple(clocks)), new, self.own_faults)

    def _pushed_out(self, number: int, clock: int, mine: Ints) -> Ints:
        """Returns the last places at which new members are in a window of partitions; for those not
        pushed out yet, `OPEN` plus their own place. Updates earlier members that have been pushed
        out since."""
        assert self.grouping is not None
        pushed, store = self.frame.partitions[number], self.frame.store(number)
        came, gone = (
            np.concatenate(part) for part in zip(_NO_PUSH, *self.pushed[number], strict=True)
        )
        self.pushed[number] = []
        if self.grouping.live and len(came):
            held = self.grouping.sliding.ends(clock)
            order = np.argsort(came)
            at = np.minimum(np.searchsorted(came[order], held - OPEN), len(came) - 1)
            found = (held >= OPEN) & (came[order][at] == held - OPEN)
            places = np.flatnonzero(found)
            self.grouping.sliding.move(clock, places, gone[order][at[places]] - 1)
        end = np.full(len(mine), NEVER)
        here = mine != NOTHING
        at = store.index(mine[here])
        known = pushed.gone[at]
        end[here] = np.where(known < NEVER, known - 1, OPEN + store.position[0][at])
        return end

    # --- memory and state -----------------------------------------------------

    def _kept(self) -> list[Pooled]:
        self.held.compact()
        return [self.held.view, *(kept for node in self.root.nodes() for kept in node.kept())]

    def _trim(self) -> None:
        """Frees the rows that are no longer needed, once they are the larger part of a store.
        Windows of rows also count the rows in between."""
        grown = [name for name in self.inputs if len(self.stores[name]) >= self.trim_at[name]]
        if not grown:
            return
        pools = [self.held, *(pool for node in self.root.nodes() for pool in node.pools)]
        kept = [(pool.view.rows, pool.here) for pool in pools]
        for name in grown:
            store = self.stores[name]
            own = [n for n, of in enumerate(self.node.sources) if of.stream.name == name]
            needed = np.zeros(len(store), np.bool_)
            needed[store.position[0].find(self.frontier.place) :] = True
            for rows, here in kept:
                for n in own:
                    mine = rows[here, n]
                    needed[store.index(mine[mine != NOTHING])] = True
            places = np.flatnonzero(needed)
            first = int(places[0]) if len(places) else len(store)
            whole = any(self.node.sources[n].window.kind is WindowKind.ROWS for n in own)
            of_use = len(store) - first if whole else len(places)
            # As many rows come as pays for looking through what is kept.
            self.trim_at[name] = max(_FEW, of_use + of_use // 4, sum(map(len, pools)) // 8)
            if 8 * first > len(store):
                self._drop(name, own, first)
                places -= first
            if not whole and 2 * len(places) < len(store):
                self._keep(name, own, places, kept)

    def _drop(self, name: str, own: list[int], first: int) -> None:
        """Frees the rows of a stream, which is that of some sources, before a place."""
        store = self.stores[name]
        store.drop_before(first)
        for n in self.frame.partitions.keys() & {*own}:
            self.frame.partitions[n].keep(np.arange(first, first + len(store)))

    def _keep(
        self, name: str, own: list[int], places: Ints, kept: list[tuple[Ints, Bools]]
    ) -> None:
        """Frees all rows of a stream, which is that of some sources, but these, and gives the combinations that
        are here the numbers that these rows have then."""
        store = self.stores[name]
        store.keep(places)
        for n in self.frame.partitions.keys() & {*own}:
            self.frame.partitions[n].keep(places)
        for rows, here in kept:
            for n in own:
                which = np.flatnonzero(here & (rows[:, n] != NOTHING))
                found = np.searchsorted(places, store.index(rows[which, n]))
                rows[which, n] = store.first + found

    def snapshot(self) -> bytes:
        plain = {
            "inputs": self.rows.plain(),
            "text": self.node.text,
            "position": self.stores.position,
            "frontier": [self.frontier.place, self.frontier.time],
            "faults": fault_report(self.faults),
        }
        tables = self.rows.tables()
        for name in self.inputs:
            store = self.stores[name]
            tables[f"kept {name}"] = store.table
            tables[f"place {name}"] = pa.table({"place": store.position[0][:]})
        for number, found in enumerate(self._kept()):
            columns = {
                f"s{source}": np.where(
                    found.rows[:, source] == NOTHING,
                    NOTHING,
                    self.frame.store(source).index(found.rows[:, source]),
                )
                for source in range(len(self.node.sources))
            }
            columns |= {"time": found.time[:], "at": found.place[:]}
            tables[f"combinations {number}"] = pa.table(columns | {"matched": found.matched})
        for number, pushed in self.frame.partitions.items():
            tables |= pushed.tables(f"partition {number}")
            since = [np.concatenate(p) for p in zip(_NO_PUSH, *self.pushed[number], strict=True)]
            tables[f"pushed {number}"] = pa.table({"came": since[0], "gone": since[1]})
        if self.grouping is not None:
            tables["group"] = self.grouping.members(self.stores)[self.query.name]
        return Snapshot("joins", plain, tables).pack()

    def restore(self, snapshot: bytes) -> None:
        """Restores the waiting rows; for the same SELECT over streams of the same columns,
        everything."""
        state = unpack(snapshot, "joins")
        self.rows.restore(state.plain["inputs"], state.tables)
        restore(self.faults, state.plain["faults"])
        if state.plain["text"] != self.node.text or not all(
            _same(stream, state.tables.get(f"kept {stream.name}")) for stream in self.node.inputs
        ):
            return
        self.stores.position = state.plain["position"]
        self.frontier = Frontier(*state.plain["frontier"])
        for name in self.inputs:
            rows = state.tables[f"kept {name}"]
            place = _ints(state.tables[f"place {name}"], "place")
            self.stores[name].append(rows, timestamps(rows), [place])
        for number, pushed in self.frame.partitions.items():
            pushed.restore(state.tables, f"partition {number}")
            since = state.tables[f"pushed {number}"]
            self.pushed[number] = [(_ints(since, "came"), _ints(since, "gone"))]
        parts = []
        for number, _ in enumerate(self._kept()):
            table = state.tables[f"combinations {number}"]
            every = [_ints(table, f"s{source}") for source in range(len(self.node.sources))]
            matched = np.asarray(table.column("matched").combine_chunks(), dtype=np.bool_)
            found = np.stack(every, axis=1)
            parts.append(Combinations(found, _ints(table, "time"), _ints(table, "at"), matched))
        held, *rest = parts
        self.held.add(held)
        for node in self.root.nodes():
            node.restore(rest[:2])
            rest = rest[2:]
        if self.grouping is not None:
            self.grouping.restore({self.query.name: state.tables["group"]})


def _none() -> Ints:
    return np.empty(0, np.int64)


_NO_PUSH = (_none(), _none())
_ROWS_AT_FIRST, _PAIRS_AT_ONCE = 4096, 1 << 19
_FEW = 32
"""A store with fewer rows is not looked through."""
OPEN = 1 << 62
"""Beyond all places: the end of a member that is in its window until something pushes it out."""


def _same(stream: Stream, rows: pa.Table | None) -> bool:
    return rows is not None and bool(rows.schema.equals(stream_schema(stream)))


def _ints(table: pa.Table, column: str) -> Ints:
    return np.asarray(table.column(column).combine_chunks(), dtype=np.int64)
