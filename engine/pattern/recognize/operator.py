"""MATCH_RECOGNIZE on a stream: rows go in as columns, the search runs, matches come out as columns.

A row is judged, once and in columns, as soon as the rows that NEXT refers to have arrived: judging
finds the variables it may be. The search of its key then continues from where it stood, and rows
that no match can need any more are forgotten.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seustream.compiler.language import expressions as x
from seustream.compiler.language.faults import Faults
from seustream.compiler.pattern import ir, rows
from seustream.compiler.pattern.ir import Skip
from seustream.compiler.pattern.rows import Give
from seustream.engine.kernels import native
from seustream.engine.pattern import output, state
from seustream.engine.pattern.arrivals import Stats, WaitingRows
from seustream.engine.pattern.batch import EventBatch
from seustream.engine.pattern.columns import Ints
from seustream.engine.pattern.errors import SkipStuck
from seustream.engine.pattern.event import BEGIN_OF_TIME, END_OF_STREAM
from seustream.engine.pattern.keys import PartitionKeys
from seustream.engine.pattern.output import Rows
from seustream.engine.pattern.recognize.conditions import Conditions, navigations
from seustream.engine.pattern.recognize.log import RowLog
from seustream.engine.pattern.recognize.measures import GivenRows, Matches, MeasureColumns, given
from seustream.engine.pattern.recognize.program import RowProgram
from seustream.engine.stream.schema import arrow_type
from seustream.engine.stream.sorting import lexsort

_SKIPS = (Skip.PAST_LAST, Skip.NEXT, Skip.TO_FIRST, Skip.TO_LAST)  # numbered as in the search
_STUCK = 2  # kinds from here on are matches whose SKIP leads nowhere
_ALL = 1 << 62
_SLACK = 1024
"""Rows that may be kept beyond twice the number needed."""


class RowOperator:
    """A MATCH_RECOGNIZE query on a stream. `late` is drop or error. Faults are counted in `faults`,
    or raised there."""

    engine = "rows"

    def __init__(
        self,
        query: rows.RowQuery,
        late: str = "drop",
        faults: Faults | None = None,
    ) -> None:
        self.query = query
        self.watermark = BEGIN_OF_TIME
        self.faults = Faults() if faults is None else faults
        columns = {cell.attribute for cell in query.cells()}
        columns |= {
            o.expression.attribute for o in query.outputs if isinstance(o.expression, rows.Cell)
        }
        self._arrivals = WaitingRows(query, (columns | {*query.partition}) - {ir.TIME}, late)
        self._log = RowLog()
        self._conditions = Conditions(self._log, query, self.faults)
        self._measures = MeasureColumns(query, self._log, self.faults)
        self._nothing = output.schema(query).empty_table()
        self.places: Ints = np.zeros(0, np.int64)
        """By arrival, the numbers of the rows that the rows returned last are about."""
        self._keys = PartitionKeys(query.partition)
        self._numbered = 0
        self._oldest: int | None = None
        offsets = [at.offset for at in _navigated(query, False)]
        self._ahead = max([0, *offsets])
        self._search = native.Rows()
        self._configure()

    def _configure(self) -> None:
        query, conditions = self.query, self._conditions
        measured = [at.offset for at in _navigated(query, True)]
        program = RowProgram(query.pattern)
        tests = np.array(conditions.tests, np.int64).reshape(-1)
        self._search.configure(
            program.numbers,
            tests,
            conditions.asks,
            conditions.ask,
            len(conditions.sides),
            program.marks,
            -1 if query.window is None else query.window,
            lookback(query),
            max([0, *measured]),
            _SKIPS.index(query.skip),
            query.skip_to,
            query.give is Give.UNMATCHED,
            conditions.recalls,
        )

    @property
    def stats(self) -> Stats:
        return self._arrivals.stats

    # --- rows in, matches out -------------------------------------------------

    def push_table(self, rows: pa.Table) -> None:
        """Takes rows of the stream, with a column ts (int64)."""
        self._arrivals.push(rows, self.watermark)

    @property
    def output_watermark(self) -> int:
        """The output watermark: every later result has a time above it."""
        if self._oldest is None or self.watermark == END_OF_STREAM:
            return self.watermark
        return min(self.watermark, self._oldest - 1)

    def mark(self, watermark: int, events: int) -> int:
        """Returns the watermark to move to: see `PatternOperator.mark`."""
        return self._arrivals.mark(watermark, events)

    def advance_table(self, watermark: int) -> Rows:
        """Moves the watermark. Returns the rows of the matches that are certain by now, in the
        order of their times, and these times."""
        nothing = self._nothing, np.zeros(0, np.int64)
        return output.together([*self.parts(watermark)] or [nothing])

    def parts(self, watermark: int) -> Iterator[Rows]:
        """Acts like `advance_table`; yields the rows in parts. Must be iterated to its end."""
        if watermark < self.watermark:
            raise ValueError(f"the watermark goes back from {self.watermark} to {watermark}")
        self.watermark = watermark
        batch = self._arrivals.released(watermark)
        if batch is not None:
            self._append(batch, self._keys.of(batch))
        if watermark == END_OF_STREAM:
            self._judge_rest()
        yield from self._all_rows() if self.query.give is not Give.ONE else self._one_row()
        self._forget()

    def _one_row(self) -> Iterator[Rows]:
        """Yields the rows of matches that have one each. The rows of one step are no more than those
        of the stream that are kept, but matches with all their rows may be far larger."""
        tables, rows, starts = [], [], []
        for found in self._found(output.PART):
            results = given(found, self.query.give, self._log)
            tables.append(self._table(found, results))
            rows.append(results.row)
            starts.append(found.start[results.owner])
        if not tables:
            return
        table, at = pa.concat_tables(tables), np.concatenate(rows)
        if len(tables) > 1:
            order = lexsort((np.concatenate(starts), at))
            table, at = table.take(pa.array(order)), at[order]
        for begin in range(0, len(at), output.PART):
            some = at[begin : begin + output.PART]
            self.places = self._log.number[some]
            yield table.slice(begin, output.PART), self._log.ts[some]

    def _all_rows(self) -> Iterator[Rows]:
        """Yields all rows of matches. They come row by row, so that all matches of a step are held
        together, though not their columns."""
        for found in self._found(_ALL):
            results = given(found, self.query.give, self._log)
            for begin in range(0, len(results.row), output.PART):
                some = results.part(begin, begin + output.PART)
                self.places = self._log.number[some.row]
                yield self._table(found, some), self._log.ts[some.row]

    def _table(self, found: Matches, results: GivenRows) -> pa.Table:
        columns = list(self._measures.columns(found, results))
        return pa.Table.from_arrays(columns, schema=self._nothing.schema)

    def _append(self, batch: EventBatch, keys: Ints) -> None:
        number = np.arange(self._numbered, self._numbered + len(batch))
        self._numbered += len(batch)
        self._entered(batch, number, keys)

    def _entered(self, batch: EventBatch, number: Ints, keys: Ints) -> None:
        before = np.empty(len(number), np.int64)
        self._search.append(keys, np.ascontiguousarray(batch.ts), number, before)
        at = self._log.append(batch, number, keys, before)
        if self._ahead:
            at = self._log.step(at, -self._ahead)
            at = at[at >= 0]
        self._judge(np.sort(at))

    def _judge_rest(self) -> None:
        """Judges the rows whose NEXT rows will not come."""
        if self._ahead:
            rows = np.arange(len(self._log))
            self._judge(rows[self._log.step(rows, self._ahead) < 0])

    def _judge(self, at: Ints) -> None:
        """Passes the search the variables that some rows may be."""
        if len(at):
            values, flags = self._conditions.values(at)
            self._search.judge(self._log.key[at], self._conditions.may(at), values, flags)

    def _found(self, part: int) -> Iterator[Matches]:
        """Yields the matches that are certain by now; those of a part have about so many rows."""
        through = False
        while not through:
            over = self.watermark == END_OF_STREAM
            count, members, through = self._search.run(self.watermark, over, part)
            if not count:
                continue
            heads = np.empty((count, 5), np.int64)
            numbers, labels = np.empty(members, np.int64), np.empty(members, np.int64)
            self._search.take(heads, numbers, labels)
            kind, _, number, start, counts = (np.ascontiguousarray(one) for one in heads.T)
            stuck = np.flatnonzero(kind >= _STUCK)
            if len(stuck):
                self._stuck(int(kind[stuck[0]]), int(start[stuck[0]]))
            self.stats.matches += int((kind == 0).sum())
            at = self._log.at
            yield Matches(kind, number, at(start), counts, at(numbers), labels)

    def _stuck(self, kind: int, start: int) -> None:
        query = self.query
        skip = f"AFTER MATCH SKIP {query.skip.value.upper()} {query.skip_name}"
        ts = int(self._log.cell(ir.TIME, int(self._log.at(np.array([start]))[0])))
        why = f"the match at {ts} has no row of it"
        if kind > _STUCK:
            why = f"it leads back to the row the match starts at, at {ts}"
        raise SkipStuck(
            f"query {query.name}: {skip}: {why}", "skip to another variable, or to the next row"
        )

    def _forget(self) -> None:
        kept = self._needed()
        if len(self._log) > 2 * kept + _SLACK or (not kept and len(self._log)):
            self._keep(kept)
        if self._keys.many:
            self._forget_keys()

    def _needed(self) -> int:
        """Returns the number of rows still needed. At the end it is none, although the search keeps
        those that PREV of a next row would refer to."""
        kept, self._oldest = self._search.forget()
        return 0 if self.watermark == END_OF_STREAM else kept

    def _keep(self, count: int) -> None:
        """Keeps in the log the `count` rows that the search keeps, or none."""
        numbers = np.empty(count, np.int64)
        if count:
            self._search.kept(numbers)
        self._log.keep(numbers)

    def _forget_keys(self) -> None:
        """Forgets the keys without rows, and numbers the others anew. After `^` no later row of a key
        may match, and MATCH_NUMBER goes on: both need keys for ever."""
        if rows.anchored(self.query.pattern) or self.watermark == END_OF_STREAM:
            return
        self._keep(self._needed())
        numbers = np.empty(len(self._keys), np.int64)
        kept = numbers[: self._search.retain(self.query.counts, numbers)]
        self._keys.keep(kept)
        self._log.renumber(kept)

    # --- memory and state -----------------------------------------------------

    @property
    def held(self) -> int:
        """The number of rows kept and rows waiting."""
        return len(self._log) + self._arrivals.held

    @property
    def next_due(self) -> int | None:
        """The next watermark at which there may be something to give out or to forget; None if
        nothing is held."""
        times = [self._arrivals.earliest] if self._arrivals.held else []
        if self._oldest is not None and self.query.window is not None:
            times.append(self._oldest + self.query.window)
        later = [ts for ts in times if ts > self.watermark]
        if later:
            return min(later)
        return self.watermark + 1 if self.held else None

    def snapshot(self) -> dict[str, Any]:
        """Returns the state as plain values, for JSON: the kept rows, and the progress of each
        key."""
        self._keep(self._needed())
        self._forget_keys()
        places = np.empty((self._search.count(), 4), np.int64)
        self._search.places(places)
        return {
            "watermark": self.watermark,
            "arrived": self._arrivals.arrived,
            "stats": dataclasses.asdict(self.stats),
            "numbered": self._numbered,
            "keys": [[state.value(of) for of in key] for key in self._keys.known],
            "places": places.tolist(),
            "kept": _written(self._log.batch, self._log.number, self._log.key),
            "waiting": _written(self._arrivals.tables),
        }

    def restore(self, stored: dict[str, Any]) -> None:
        """Continues from a snapshot, in a fresh operator of the same query. A match that was being
        searched is searched again."""
        if self._arrivals.arrived:
            raise ValueError("an operator is restored before it is used")
        self.watermark = stored["watermark"]
        self._arrivals.arrived = stored["arrived"]
        self._arrivals.stats = Stats(**stored["stats"])
        self._arrivals.resume(_read(stored["waiting"])[0])
        self._numbered = stored["numbered"]
        keys = [tuple(state.value_of(of) for of in key) for key in stored["keys"]]
        own = {column.name.lower(): arrow_type(column.type) for column in self.query.stream.columns}
        self._keys.resume(keys, [own.get(name, pa.int64()) for name in self.query.partition])
        self._search.resume(np.array(stored["places"], np.int64).reshape(-1))
        batch, numbers = _read(stored["kept"])
        if batch is not None and len(batch):
            self._conditions.faults, faults = None, self._conditions.faults
            self._entered(batch, numbers["number"], numbers["key"])
            self._search.run(self.watermark, False, _ALL)
            self._conditions.faults = faults
        self._forget()


def lookback(query: rows.RowQuery) -> int:
    """Returns how many rows before the first one of a match are needed."""
    before = rows.preceding(query.pattern)
    least = [0]
    for definition in query.definitions:
        own, condition = definition.variable, definition.condition
        for at in navigations(condition):
            # A fault counts in every row, so what a row refers to must not depend on what is kept.
            counts = 0 if _may_fault(condition) else _preceding(before, at, own)
            least.append(at.offset + counts)
    least += [at.offset + _preceding(before, at) for at in _navigated(query, True)]
    return -min(least)


def _preceding(before: dict[int, int], at: rows.At, own: int = -1) -> int:
    """Returns the fewest rows of a match that precede the row from which a navigation steps to
    others; `own` is the variable of the present row."""
    if own in before and at.among >> own & 1 and not at.first and not at.back:
        return before[own]
    among = [count for variable, count in before.items() if at.among >> variable & 1]
    return min(among, default=0)


def _may_fault(e: x.Expression) -> bool:
    parts = [*x.walk(e), *(part for at in navigations(e) for part in x.walk(at.part))]
    return any(isinstance(part, (x.Call, x.Cast, x.Case)) for part in parts)


def _navigated(query: rows.RowQuery, measures: bool) -> list[rows.At]:
    """Returns the rows that DEFINE, or the measures, navigate to."""
    expressions = (
        [output.expression for output in query.outputs]
        if measures
        else [definition.condition for definition in query.definitions]
    )
    return [at for e in expressions if not isinstance(e, ir.Whole) for at in navigations(e)]


def _written(batch: EventBatch | None, *own: Ints) -> str:
    """Writes rows as text."""
    if batch is None:
        return ""
    names = ["ts", "seq", *("number", "key")[: len(own)]]
    arrays = [pa.array(batch.ts), pa.array(batch.seq), *map(pa.array, own)]
    table = pa.table(
        arrays + list(batch.columns.values()), names=names + [f".{name}" for name in batch.columns]
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as file:
        file.write_table(table)
    return base64.b64encode(sink.getvalue()).decode()


def _read(text: str) -> tuple[EventBatch | None, dict[str, npt.NDArray[np.int64]]]:
    if not text:
        return None, {}
    table = pa.ipc.open_stream(base64.b64decode(text)).read_all().combine_chunks()
    whole = {name: table[name].to_numpy() for name in table.column_names if name[0] != "."}
    columns = {
        name[1:]: column.chunk(0) if column.num_chunks else pa.array([], column.type)
        for name, column in zip(table.column_names, table.columns, strict=True)
        if name[0] == "."
    }
    kinds: Ints = np.full(table.num_rows, -1, np.int64)
    return EventBatch(whole["ts"], whole["seq"], kinds, [], columns), whole
