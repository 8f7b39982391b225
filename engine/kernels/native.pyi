"""Compiled loops over rows. All arrays are contiguous. `Ints` are 64-bit integers; `Flags` are
bytes that are 0 for a NULL value, or None if no value is NULL.

Stored rows are numbered in order of arrival, from 0, or from n if `drop(n)` comes first. `drop(n)`
forgets the rows before n. A search takes

    start, low, high, base, rest, who, row, formulas

Probe i meets the rows from low[i] up to but excluding high[i], and finds those for which every
comparison of `rest` and every formula is true. A comparison `(op, theirs, their_flags, ours, our_flags)` stands for
`theirs op ours`, with one value for each row from `base` on and one for each probe; `op` is the
number of a `Condition`. Pairs are written to `who` (the probe) and `row` (the row's number),
ordered by probe, then by row, from probe `start` on, for as many whole probes as fit. A search
returns the first probe whose pairs did not fit, and the number of pairs it found.

A formula `(steps, theirs, ours)` computes its value for a row and a probe (`seustream.engine.stream.formulas`).
`theirs` are columns of numbers and flags by row, `ours` by probe. A step is three integers: the
operation, and where its operands are, counted from the first of `theirs` over `ours` to the steps
before it. Where a formula has no value although its operands have one, a search raises
`ArithmeticError`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8] | None
Test = tuple[int, Ints, Flags, Ints, Flags]
Columns = tuple[tuple[Ints, Flags], ...]
PairFormula = tuple[Ints, Columns, Columns]
Made = tuple[object, int]
"""An Arrow array: the capsule that owns it, and its address."""
TimesOf = tuple[int, int, bool]
"""The first and the last time of rows, and whether the times never decrease."""
Found = tuple[tuple[int, ...], tuple[bytes | None, ...] | None]
"""The addresses of results, as Arrow's arrays that are there until the next call; 0 for those of parts
whose states are elsewhere. Then None, or for each result bytes that are 1 where it has no value
because of a fault, None if it is nowhere."""

class Chains:
    """Rows by key. A search takes time in proportion to its results."""

    def append(self, keys: Ints, flags: Flags, /) -> None: ...
    def drop(self, before: int, /) -> None: ...
    def latest(self, keys: Ints, flags: Flags, below: Ints, out: Ints, /) -> None:
        """Writes the newest row with each key before a number; -1 if there is none."""

    def previous(self, start: int, out: Ints, /) -> None:
        """Writes the previous row with the same key for each row from `start` on; -1 if there is none."""

    def probe(
        self,
        keys: Ints,
        flags: Flags,
        start: int,
        low: Ints,
        high: Ints,
        base: int,
        rest: tuple[Test, ...],
        who: Ints,
        row: Ints,
        formulas: tuple[PairFormula, ...] = (),
        /,
    ) -> tuple[int, int]:
        """Finds the rows with the key of the probe."""

class Runs:
    """Rows by value. A search takes time in proportion to its results, plus the squared logarithm
    of the window."""

    def append(self, values: Ints, flags: Flags, /) -> None: ...
    def drop(self, before: int, /) -> None: ...
    def probe(
        self,
        least: Ints,
        greatest: Ints,
        flags: Flags,
        start: int,
        low: Ints,
        high: Ints,
        base: int,
        rest: tuple[Test, ...],
        who: Ints,
        row: Ints,
        formulas: tuple[PairFormula, ...] = (),
        /,
    ) -> tuple[int, int]:
        """Finds the rows whose value lies between two of the probe, both included."""

class Sessions:
    """The rows of each key without a gap between them, numbered in the order of their first rows."""

    def configure(self, gap: int, /) -> None: ...
    def add(
        self, keys: Ints, times: Ints, whose: Ints | None, out: Ints, previous: Ints, /
    ) -> None:
        """Takes rows, with the numbers of their keys and of their queries. Those of a key come in the order of their
        times. Writes the sessions that they are in, and the time of the row before each in its session; of the first row,
        its own."""

    def over(self, until: int, some: Flags, /) -> int:
        """Finds the sessions whose last row is at a time or before, of the queries with a flag, or of
        all; returns how many they are."""

    def take(self, out: Ints, /) -> None:
        """Writes the sessions found last, in order."""

    def latest(self, some: Ints, out: Ints, /) -> None:
        """Writes the times of the last rows of some sessions."""

    def put_back(self) -> None:
        """Takes back the sessions found last."""

    def earliest(self) -> int | None:
        """Returns the earliest time at which an open session can have its last row."""

class Spells:
    """The rows of each key that have one mark, numbered in the order of their first rows. The marks of a key only
    rise."""

    def add(self, keys: Ints, marks: Ints, out: Ints, /) -> None:
        """Takes rows, with the numbers of their keys and their marks. Writes the spells that they are in."""

class LastOfKeys:
    """The last rows of each key, a fixed number of them."""

    def configure(self, size: int, /) -> None: ...
    def add(self, keys: Ints, numbers: Ints, out: Ints, /) -> None:
        """Takes the next rows, with their keys and numbers; writes for each the number of the row that it
        pushes out, or -1."""

    def count(self) -> int:
        """Returns the number of rows."""

    def held(self, keys: Ints, numbers: Ints, /) -> None:
        """Writes the key and the number of each row. Those of one key come in order, one key after the
        other."""

class Codes:
    """Assigns a number to each distinct string of bytes, from 0 on."""

    def among(self, column: object, /) -> bool:
        """Returns whether some text of a column, a capsule of Arrow's stream, already has a
        number."""

    def of_values(self, data: npt.NDArray[np.uint8], width: int, out: Ints, /) -> None: ...
    def texts(self, codes: Ints, offsets: Ints, /) -> bytes:
        """Returns the strings of some codes; writes where each begins to `offsets`, which has one
        more entry than there are codes."""

    def count(self) -> int: ...

class Intervals:
    """Intervals of numbers, both bounds included, and the rows whose value lies in each."""

    def configure(self, low: Ints, high: Ints, /) -> None: ...
    def find(self, values: Ints, flags: Flags, /) -> tuple[int, int]:
        """Returns the number of intervals with at least one row, and their total number of rows,
        not counting intervals that have every row."""

    def take(self, numbers: Ints, counts: Ints, rows: npt.NDArray[np.int32], /) -> None:
        """Writes the results of `find`: the numbers of the intervals, ascending, the number of rows
        of each, and these rows, in order, one interval after the other. Intervals that have every
        row are left out of `rows`."""

class Rows:
    """Row pattern matching. A pattern is a program of steps `(code, a, b)`:

        0 a row of variable a, left out of the result if b    4 fail if mark a is at this length
        1 go on at a, and if that fails at b                  5 fail unless before the partition's first row
        2 go on at a                                          6 fail unless after its last row
        3 set mark a to the length of the match so far        7 a match

    Rows of a key are appended in order and then judged in that order. A search starts at each row
    at which a match may begin. Matches are `(kind, key, number, first row, rows)`. The kinds are 0,
    a match; 1, a row of no match; and, after a match whose SKIP leads nowhere, 2 if there is no row
    to skip to, and 3 if it is the row at which the match began.
    """

    def configure(
        self,
        program: Ints,
        tests: Ints,
        asks: npt.NDArray[np.uint8],
        ask: Callable[[int, int, bytes, bytes], bool],
        width: int,
        marks: int,
        window: int,
        lookback: int,
        ahead: int,
        skip: int,
        target: int,
        unmatched: bool,
        recalls: bool,
        /,
    ) -> None:
        """`tests` has ten numbers per test: a variable, the condition, and two operands `(column,
        among, first, back)`; an operand with column -1 is the constant `back`. If a value's flag is
        2, and for the variables marked in `asks`, `ask` is called with the variable, the number of
        the match, its rows and their labels. `window` is -1 if unbounded. `lookback` rows before a
        start are kept, and a match is returned once the `ahead` rows after it have come. Set
        `recalls` if no condition refers to another row of the match."""

    def append(self, keys: Ints, times: Ints, numbers: Ints, before: Ints, /) -> None:
        """Appends rows; writes the number of its key's previous row for each, or -1, to
        `before`."""

    def judge(self, keys: Ints, may: Ints, values: Ints, flags: npt.NDArray[np.uint8], /) -> None:
        """Sets, for the next row of each key, the variables it may be, as bits, and the values that
        tests compare. A flag is 0 for NULL and 2 for a value that only `ask` can compare."""

    def run(self, watermark: int, finished: bool, part: int, /) -> tuple[int, int, bool]:
        """Continues as far as results are certain, or until matches have `part` rows; returns the
        number of matches to take, of rows in them, and whether it is through. Otherwise it is to be
        called again, once they have been taken."""

    def take(self, heads: Ints, numbers: Ints, labels: Ints, /) -> None:
        """Takes the matches, five numbers each, with their rows and the variable of each row, plus
        64 if the row is left out."""

    def forget(self) -> tuple[int, int | None]:
        """Forgets rows no longer needed; returns the number of rows kept, and the time of the
        oldest row at which a match may still begin."""

    def retain(self, counted: bool, out: Ints, /) -> int:
        """Between runs, forgets the keys without rows, or those that have no matches either if
        `counted`. Numbers the others anew, in their order; writes their old numbers to `out`, which
        has room for all, and returns how many they are."""

    def kept(self, out: Ints, /) -> int: ...
    def places(self, out: Ints, /) -> int:
        """Writes for each key where its kept rows begin, where the next match may begin, the number
        of its matches, and where they end."""

    def resume(self, places: Ints, /) -> None: ...
    def count(self) -> int:
        """Returns the number of keys."""

class Automaton:
    """Runs over events in order. Each run stands on the events it chose, and every later event of
    its key may advance it. Events are numbered in order of arrival, from 0."""

    def configure(
        self,
        stages: Ints,
        tests: Ints,
        ask: Callable[[int, bytes, bytes], bool],
        width: int,
        window: int,
        strategy: int,
        waits: bool,
        most_runs: int,
        most_matches: int,
        /,
    ) -> None:
        """`stages` has four numbers per stage: the bit of `fits`, the least and the most events,
        and whether more than one may come. `tests` has thirteen numbers per test: the stage; when
        it applies (0 when the stage begins, 1 when it takes another event, 2 when the match ends);
        the test's number; its range (0 once, 1 the newest event, 2 all events of stage `through`);
        `through`, or -1 for none; whether the range begins at the second event; the condition, or
        -1 to call `ask` with the number, the events and the stage of each; and two sides `(column,
        stage, pick)`. A pick is 0 the event, 1 each, 2 the first, 3 the last, 4 the previous one, 5
        the count, 6 the constant `column`. Strategies are 0 any, 1 next, 2 strict. With `waits`, a
        match is certain one window after its first event. A limit of -1 means no limit."""

    def advance(
        self,
        keys: Ints,
        times: Ints,
        fits: Ints,
        values: Ints,
        flags: npt.NDArray[np.uint8],
        first: int,
        part: int,
        /,
    ) -> int:
        """Takes events with the stages they fit, as bits, and `width` values each. A value's flag
        is 0 for NULL and 2 if only `ask` can compare it. It begins with event `first`, and stops
        before a later time once its matches have `part` events. Returns the event to go on with,
        when the matches that are certain have been taken; -1 once all events are taken, -2 if a key
        has too many runs, -3 if there are too many matches."""

    def certain(self, to: int, /) -> int:
        """Returns the number of matches that are certain at a time."""

    def until(self, to: int, most: int, /) -> int:
        """Returns a time, `to` at the latest, at which no more than `most` matches are certain, or
        only those of one time."""

    def take(
        self, to: int, numbers: Ints, gone: int, ordered: bool, /
    ) -> tuple[bytes, tuple[tuple[bytes, bytes], ...]]:
        """Takes the matches that are certain at a time: when each is certain, and for each stage
        how many events it has and which, one match after the other. They are put in the order
        of `native.ordered`, unless they are `ordered` as they are. `numbers` are those of the events from event `gone` on, which is event 0 of the
        result."""

    def forget(self, now: int, over: bool, /) -> int:
        """Drops runs that no event can advance; returns the number of runs left and of matches not
        yet taken."""

    def retain(self, out: Ints, /) -> int:
        """Forgets the keys without runs, and numbers the others anew, in their order. Writes their
        old numbers to `out`, which has room for all, and returns how many they are."""

class Subsets:
    """Every sequence of events that fit one after the other. See `Automaton`. Matches are found in
    order, and may go on in the next part within one time."""

    def configure(self, states: Ints, stages: int, window: int, /) -> None:
        """`states` has five numbers per state: the bit of its element, its stage, the bits of the
        elements that may not come before it, whether it is the first state of its stage, and
        whether it takes more events."""

    def advance(self, keys: Ints, times: Ints, fits: Ints, first: int, part: int, /) -> int: ...
    def certain(self, to: int, /) -> int: ...
    def until(self, to: int, most: int, /) -> int: ...
    def take(
        self, to: int, numbers: Ints, gone: int, ordered: bool, /
    ) -> tuple[bytes, tuple[tuple[bytes, bytes], ...]]: ...
    def forget(self, now: int, over: bool, /) -> int: ...
    def retain(self, out: Ints, /) -> int: ...

class Keys:
    """Numbers the distinct combinations of values of some columns, and gives the values back. NULL is
    a value like any other. A column is the two capsules of an Arrow array."""

    def configure(self, types: tuple[object, ...], /) -> None:
        """`types` are the capsules of the columns' types."""

    def numbers(self, columns: tuple[tuple[object, object], ...], out: Ints, /) -> None:
        """Writes the number of the combination in each row."""

    def take(self, column: int, numbers: Ints, /) -> Made:
        """Returns a column's values in some combinations."""

    def count(self) -> int: ...

class Aggregates:
    """Aggregates of groups. Members are numbered in order of arrival; those that have left are dropped
    from the front. Places count the members that are kept."""

    def configure(
        self,
        types: tuple[object, ...],
        parts: tuple[tuple[int, tuple[int, ...], bool, int], ...],
        results: tuple[tuple[int, int], ...],
        result_types: tuple[object, ...],
        whole: tuple[int, ...],
        ordered: bool,
        /,
    ) -> None:
        """Parts hold the states that results share: `Kind`, the arguments by number, whether equal
        members of a group count once, and `Wanted`. A result is a part and an `Asked`. In the
        arguments `whole`, NULL is a value like any other. Set `ordered` if the members of a group
        leave in the order in which they came."""

    def add(self, values: tuple[tuple[object, object], ...], group: Ints, /) -> None: ...
    def enter(
        self,
        values: tuple[tuple[object, object], ...],
        group: Ints,
        until: Ints,
        at: Ints,
        /,
    ) -> Found:
        """Adds members that come one after the other. Returns the results at points, each after the first `until[p]` of
        them and of group `at[p]`."""

    def found(self, events: Ints, until: Ints, at: Ints, /) -> Found:
        """Returns the results at points. In `events`, m stands for the arrival of member m, and ~m
        for its departure. The events up to `until[p]` precede point p, which asks for group
        `at[p]`."""

    def turns(self, part: int, /) -> tuple[bytes, bytes, bytes, bytes]:
        """Returns the latest events, `until` and `at` of a part whose states are not here, without those
        that a group does not need as all its members leave before it is asked again. With the last to
        leave the group starts over; the fourth is 1 at that event."""

    def moments(self, part: int, /) -> tuple[bytes, bytes, bytes, bytes]:
        """Returns the moments of a part at the latest points: the numbers of rows and of infinite ones;
        then, by sum (of x and its squares; with y also of y, its squares and the products), the first of
        its limbs of 32 bits, the end of its bytes, and the bytes, least first. Limb i counts multiples of
        2^(32 i - 1088), of products 2^(32 i - 2176)."""

    def take(self, argument: int, places: Ints, /) -> Made:
        """Returns an argument of some members."""

    def fold(self) -> int:
        """Where no member leaves: forgets those of which only the states of groups are needed. Returns how
        many are left."""

    def states(self, groups: Ints, /) -> tuple[bytes, bytes]:
        """Returns the states of the sums of some groups as words, and where those of each group end."""

    def resume(self, groups: Ints, words: Ints, ends: Ints, /) -> None:
        """Takes the states of the sums of some groups in place of what they had."""

    def pour(self, others: Aggregates, of: Ints, to: Ints, /) -> None:
        """Adds to groups `to` the states of the sums of groups `of` of others, in place of what they had. Sums of members
        that count once stay as they are."""

    def groups(self, places: Ints, out: Ints, /) -> None:
        """Writes the groups of some members."""

    def count(self) -> int:
        """Returns the number of members that are kept."""

    def base(self) -> int:
        """Returns the number of the first member that is kept."""

class Leaving:
    """Determines when members leave. A point is a group to which an arrival adds members."""

    def found(self, members: Aggregates, /) -> Found:
        """Returns the results at the points of the latest new members."""

    def settle(self, keys: Keys, members: Aggregates, /) -> int:
        """Drops members that have left, if they are the larger part. Returns by how much the members,
        texts and keys that are still kept exceed twice the number of members needed."""

    def count(self) -> int:
        """Returns the number of members that have not left."""

    def held(self, members: Aggregates, /) -> bytes:
        """Returns the places of the members that have not left."""

class Windows(Leaving):
    """Members that leave when one of several clocks has passed their end."""

    def enter(
        self,
        keys: Keys,
        columns: tuple[tuple[object, object], ...],
        members: Aggregates,
        values: tuple[tuple[object, object], ...],
        count: int,
        arrival: Ints | None,
        clocks: tuple[Ints, ...] | None,
        ends: tuple[Ints | int, ...],
        /,
    ) -> tuple[bytes, bytes] | None:
        """Takes `count` members with the columns of their key and their arguments. `arrival` has the
        arrival that each comes with, None if each has one of its own. `clocks` are by arrival; without
        them there are no points, and no clock moves. `ends` are by member, or a number of readings
        after its arrival. Returns the first new member of each point, and the point of each new
        member; None if each new member is a point."""

    def ends(self, clock: int, /) -> bytes:
        """Returns the ends on a clock, by member that is kept."""

    def move(self, clock: int, places: Ints, ends: Ints, /) -> None:
        """Moves the ends of members on a clock to earlier readings."""

class LastRows(Leaving):
    """Members that leave after `size` later ones of their group have come."""

    def enter(
        self,
        keys: Keys,
        columns: tuple[tuple[object, object], ...],
        members: Aggregates,
        values: tuple[tuple[object, object], ...],
        count: int,
        size: int,
        silent: bool,
        /,
    ) -> None:
        """Takes `count` members, each of which is a point if not `silent`."""

class Totals:
    """Counts, sums and means of groups, without rounding before the result. In `events`, m stands
    for the arrival of member m, and ~m for its departure. The events up to `until[p]` precede point
    p, which asks for group `at[p]`. Members whose flag is 0 do not count."""

    def run(
        self,
        events: Ints,
        until: Ints,
        at: Ints,
        base: int,
        group: npt.NDArray[np.uint32],
        words: Ints | None,
        flags: Flags,
        kind: int,
        scale: int,
        counts: Ints | None,
        sums: Ints | None,
        means: Ints | None,
        known: npt.NDArray[np.uint8] | None,
        /,
    ) -> None:
        """`kind` is a `Summed`. `known` has 1 if there is a sum, plus 2 if there is a mean.
        Decimals have two words; their mean is that of `scale` times the sum."""

class Sequence:
    """Sequences of single events, each later than the one before, within a window. Memory is
    proportional to the events not yet forgotten, and the time of a search to the new events and
    the matches, both times logarithms, if lookups decide all links."""

    def configure(self, parents: Ints, links: Ints, width: int, window: int, /) -> bool:
        """`parents` has for each element the one on which it hangs, in a tree below the last element
        whose edges do not cross. A link `(op, element, column, other, column)` means `element op
        other`; if the element hangs on the other one it is looked up by it. A later element that hangs
        on an earlier one needs the link in both directions. `width` is the number of columns of an
        event. Returns whether lookups decide all links."""

    def append(
        self,
        first: int,
        times: Ints,
        columns: tuple[tuple[Ints, Flags], ...],
        fits: tuple[Ints, ...],
        /,
    ) -> None:
        """Appends events, in order, numbered from `first`, the number after the last one. `fits` has for each
        element the places among them of those that fit it."""

    def search(self, first: int, most_work: int, most: int, /) -> int | None:
        """Finds the matches that end with one of the newest events, those appended last, whose number
        is `first` or higher. Returns how many, or None if that takes more work than `most_work`, or
        there are more than `most` matches."""

    def take(self, rows: Ints, gone: int, /) -> None:
        """Writes the numbers of the events of all matches found, one element after the other, less
        `gone`."""

    def looked_at(self) -> int:
        """Returns how many events were looked at so far, roughly: those in a row count less."""

    def forget(self, earliest: int, /) -> None:
        """Forgets events before a time; no later match has one of them."""

class Objects:
    """JSON objects, one in each of some texts, as columns of text."""

    def configure(self, texts_only: npt.NDArray[np.uint8], /) -> None:
        """Takes a flag for each column: 1 if only a text is a value of it."""

    def read(
        self,
        data: object,
        ends: Ints,
        places: Ints,
        slot_of: Callable[[str], int | None],
        /,
    ) -> tuple[Made, ...] | None:
        """Returns the columns of the objects; text i is data[ends[i]:ends[i + 1]], and blank ones are
        skipped. Writes the number of each object's text. A number is a cell as it is written, a boolean
        is `true` or `false`, what is null or absent is NULL. `slot_of` returns the column of a key, and
        is called once for each key. Returns None if a text is no object of Unicode, or holds anything
        uncommon: a column twice or with a list or an object as its value, one that wants a text and has
        another value, half of a surrogate pair, a very long number."""

def scan(
    start: int,
    low: Ints,
    high: Ints,
    base: int,
    rest: tuple[Test, ...],
    who: Ints,
    row: Ints,
    formulas: tuple[PairFormula, ...] = (),
    /,
) -> tuple[int, int]:
    """Searches by scanning every row of every window, a block at a time."""

def ordered(
    determined: Ints, counts: tuple[Ints, ...], numbers: tuple[Ints, ...], out: Ints, /
) -> None:
    """Orders matches by `determined`, then by the numbers of their events, stage by stage. Each
    stage has the counts by match, and the numbers of one match after the other."""

def places(
    sorted: Ints | npt.NDArray[np.uint32],
    base: int | None,
    numbers: Ints,
    after: bool,
    out: Ints,
    /,
) -> None:
    """Like `numpy.searchsorted`, in linear time as long as the numbers do not decrease. With a base, what is sorted
    has 32 bits, and is that far above it."""

def real(data: pa.Buffer | None, offset: int, count: int, width: int, /) -> bool:
    """Returns whether no value of a column of reals, of 4 or 8 bytes each, is NaN."""

def inside(values: Ints, flags: Flags, low: int, high: int, rows: npt.NDArray[np.int32], /) -> int:
    """Writes the rows whose value lies between two bounds, both included, in order; returns their
    number."""

def taken(
    pieces: tuple[tuple[object, object], ...], places: Ints | npt.NDArray[np.int32], /
) -> Made | None:
    """Takes some rows of a column, each of whose pieces is the two capsules of an Arrow array.
    Returns None if such values cannot be taken here."""

def sound(rows: object, wants: Ints, /) -> tuple[object, int, TimesOf | None] | None:
    """Returns rows, given as a capsule of Arrow's stream, as one array, if they are one piece in
    which no column has a NaN, a NULL where none is allowed, too long a text or a time out of range:
    the array's capsule, its address, and the times in its first column, None without rows. Otherwise
    returns None. `wants` has six numbers per check: the column, the bytes of a number that is checked
    or 0, whether NULL is refused, the maximum number of characters or -1, and the range of the
    numbers, which is empty for reals."""

def contents(rows: object, /) -> tuple[int, int, int]:
    """Returns the number of rows, given as a capsule of Arrow's stream, and two sums of a hash of
    each row, which are the same for the same rows in any order and any split."""

def lexsort(keys: tuple[Ints, ...], out: Ints, /) -> None:
    """Writes the rows in the order of some keys, the last of which counts most, like `numpy.lexsort`, in
    linear time."""

def apart(
    keys: Ints, clock: Ints, reach: int, last: Ints, known: int, flags: npt.NDArray[np.uint8], /
) -> int:
    """Sets the flags of rows that come more than `reach` after the last row with their key whose flag was
    set; returns how many. `last` has the clock of this row by key, and is updated. Keys from `known` on
    are new, numbered as they come."""

def late(
    column: object, highest: int, slack: int, least: int, flags: npt.NDArray[np.uint8], /
) -> tuple[int, int]:
    """Sets the flags of late times of a column, given as a capsule of Arrow's stream: those more than `slack`
    behind the highest before them, at first `highest`, and those before `least`. Returns the highest then,
    and how many are late."""

def times(column: object, /) -> TimesOf:
    """Returns the times of a column of 64-bit integers, given as a capsule of Arrow's stream."""

def keys(columns: tuple[tuple[object, object], ...], codes: Codes, out: Ints, /) -> None:
    """Numbers the combination of values in each row. NULL counts as a value like any other, and NaN
    counts as NULL. A column is the two capsules of an Arrow array."""

def numbers(
    schema: object, column: object, codes: Codes, out: Ints, flags: npt.NDArray[np.uint8] | None, /
) -> None:
    """Writes the number of each value of a column, given as the two capsules of an Arrow array: the
    value itself, for reals an integer in the same order, for texts and wide decimals a code. With
    `flags`, a NULL has number 0 and flag 0."""
