"""Loops over rows, compiled. All arrays are contiguous; `Ints` are 64-bit integers, `Flags` bytes that
are 0 where a value is NULL, and None where none is.

Stored rows are numbered as they came, from 0, or from n on where `drop(n)` comes first; `drop(n)` lets go
of the rows before n. A search takes

    start, low, high, base, rest, who, row

Probe i meets the rows from low[i] up to, but without, high[i], and among them those for which every
comparison of `rest` is true: `(op, theirs, their_flags, ours, our_flags)` stands for `theirs op ours`,
with one value for each row from `base` on and one for each probe; `op` is the number of a `Condition`.
Pairs go into `who` (the probe) and `row` (the row's number), in the order of the probes and for each in
the order of the rows, from probe `start` on for as many whole probes as there is room for. A search
gives the first probe there was no room for, and how many pairs it found.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8] | None
Test = tuple[int, Ints, Flags, Ints, Flags]

class Chains:
    """Rows by key. A search costs what it finds."""

    def append(self, keys: Ints, flags: Flags, /) -> None: ...
    def drop(self, before: int, /) -> None: ...
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
        /,
    ) -> tuple[int, int]:
        """Rows whose key is that of the probe."""

class Runs:
    """Rows by value. A search costs what it finds, and the logarithm of the window squared."""

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
        /,
    ) -> tuple[int, int]:
        """Rows whose value is between two of the probe, both included."""

class Codes:
    """A number for each distinct string of bytes, from 0 on."""

    def among(self, column: object, /) -> bool:
        """Returns whether some text of a column, a capsule of Arrow's stream, has a number already."""

    def of_values(self, data: npt.NDArray[np.uint8], width: int, out: Ints, /) -> None: ...
    def texts(self, codes: Ints, offsets: Ints, /) -> bytes:
        """The strings of some codes, and into `offsets`, one more than codes, where each begins."""

    def count(self) -> int: ...

class Intervals:
    """Intervals of numbers, both bounds included, and the rows whose value is in each."""

    def configure(self, low: Ints, high: Ints, /) -> None: ...
    def find(self, values: Ints, flags: Flags, /) -> tuple[int, int]:
        """Returns how many intervals have some row, and how many rows they have together; those that have every row do
        not count here."""

    def take(self, numbers: Ints, counts: Ints, rows: npt.NDArray[np.int32], /) -> None:
        """What `find` has found: the numbers of the intervals, rising, how many rows each has, and these, in order, one
        interval after the other, but for those that have every row."""

class Rows:
    """Row pattern matching. A pattern is a program of steps `(code, a, b)`:

    0 a row of variable a, left out of the result if b    4 fail if mark a is at this length
    1 go on at a, and if that is in vain at b             5 fail unless before the partition's first row
    2 go on at a                                          6 fail unless after its last row
    3 set mark a to the length of the match so far        7 a match

    Rows of a key come in order, are then judged in that order, and are searched from each row on
    that a match may begin at. Matches are `(kind, key, number, first row, rows)`; the kinds are
    0 a match, 1 a row of no match, and after a match whose SKIP leads nowhere: 2 no row to skip
    to, 3 the row it began at.
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
        """`tests` are ten numbers each: a variable, the condition, and two operands `(column, among,
        first, back)`, of column -1 the constant `back`. Where a value's flag is 2, and for the
        variables of which `asks` says so, `ask` is called with the variable, the number of the
        match, its rows and their labels. `window` is -1 without bound; `lookback` rows before a
        start are kept, and a match is given once `ahead` rows after it are there; `recalls`
        where conditions speak of no other row of the match."""

    def append(self, keys: Ints, times: Ints, numbers: Ints, before: Ints, /) -> None:
        """Rows; into `before` goes the number of the key's row before each, or -1."""

    def judge(self, keys: Ints, may: Ints, values: Ints, flags: npt.NDArray[np.uint8], /) -> None:
        """For the next row of each key the variables it may be, as bits, and the values that tests
        compare, with 0 for NULL and 2 for one that must be asked for."""

    def run(self, watermark: int, finished: bool, /) -> tuple[int, int]:
        """Goes on as far as is certain; how many matches there are to take, and rows in them."""

    def take(self, heads: Ints, numbers: Ints, labels: Ints, /) -> None:
        """The matches, five numbers each; their rows, and the variable of each, with 64 added
        where it is left out."""

    def forget(self) -> tuple[int, int | None]:
        """Lets go of what is done; how many rows are kept, and the time of the oldest at which a
        match may still begin."""

    def kept(self, out: Ints, /) -> int: ...
    def places(self, out: Ints, /) -> int:
        """Of each key where its kept rows begin and the next match may, how many matches there were,
        and where they end."""

    def resume(self, places: Ints, /) -> None: ...
    def count(self) -> int:
        """The keys."""

class Automaton:
    """Runs over events in order: each stands on the events it chose, and every later event of its key may
    move it on. Events are numbered as they come, from 0."""

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
        """`stages` are four numbers each: the bit of `fits`, the least and the most events, whether more
        than one may come. `tests` are thirteen: the stage; when (0 it begins, 1 it takes another event,
        2 the match ends); the test's number; over what (0 once, 1 the newest event, 2 all events of stage
        `through`); `through`, -1 for none; whether from its second event on; the condition, or -1 to
        call `ask` with the number, the events and the stage of each; and two sides `(column, stage,
        pick)`. A pick is 0 the event, 1 each, 2 the first, 3 the last, 4 the one before, 5 how many, 6
        the constant `column`. Strategies are 0 any, 1 next, 2 strict; a match that `waits` is certain a
        window after its first event. Of what is -1 there is no limit."""

    def advance(
        self, keys: Ints, times: Ints, fits: Ints, values: Ints, flags: npt.NDArray[np.uint8], /
    ) -> int:
        """Events with the stages they fit, as bits, and `width` values each, whose flag is 0 for NULL and 2
        for one that must be asked for. 1 where a key has too many runs, 2 where there are too many
        matches, else 0."""

    def take(self, to: int, /) -> tuple[bytes, bytes, bytes]:
        """The matches that are certain at a time: when they are, how many events each has in each stage,
        and these, one match after the other."""

    def forget(self, now: int, over: bool, /) -> int:
        """Lets go of runs that no event can move on; how many are left, and matches not taken."""

class Subsets:
    """Every sequence of events that fit one after the other. See `Automaton`."""

    def configure(self, states: Ints, stages: int, window: int, most_matches: int, /) -> None:
        """`states` are five numbers each: the bit of its element, its stage, the bits of the elements that
        may not come before it, whether it is the first state of its stage, whether it takes more events."""

    def advance(self, keys: Ints, times: Ints, fits: Ints, /) -> int: ...
    def take(self, to: int, /) -> tuple[bytes, bytes, bytes]: ...
    def forget(self, now: int, over: bool, /) -> int: ...

class Leaving:
    """Members of groups, numbered as they came, and which of them have left. `base` is the number of
    the member that arrays by member begin with; it may grow up to `oldest`. New members stand last
    in `group`, which has the group of each."""

    def oldest(self) -> int:
        """The first member that has not left."""

    def live(self, base: int, out: npt.NDArray[np.uint8], /) -> None:
        """1 for each member from `base` on that has not left."""

class Windows(Leaving):
    """Members that leave when one of several clocks has passed where they end."""

    def run(
        self,
        arrival: Ints,
        clocks: tuple[Ints, ...],
        ends: tuple[Ints, ...],
        base: int,
        group: Ints,
        silent: bool,
        /,
    ) -> tuple[bytes, bytes, bytes, bytes, bytes]:
        """Takes new members by the arrival they come with; `clocks` by arrival, `ends` by member. A
        point is a group that an arrival adds to. Gives events, `until` and `at` (see `Totals`), the
        first new member of each point, and the point of each new member. Where it is `silent` the
        members just come."""

    def moved(self, clock: int, members: Ints, ends: Ints, /) -> None:
        """Members end sooner on a clock than they did."""

class LastRows(Leaving):
    """Members that leave when so many later ones of their group have come."""

    def run(self, size: int, fresh: int, base: int, group: Ints, /) -> tuple[bytes, bytes]:
        """Takes `fresh` new members. Gives events and `until`; each new member is a point."""

class Totals:
    """Counts, sums and means of groups, without rounding before the result. In `events` stands m where
    member m comes, ~m where it leaves; before point p is asked, which is of group `at[p]`, come those
    up to `until[p]`. Members whose flag is 0 do not count."""

    def run(
        self,
        events: Ints,
        until: Ints,
        at: Ints,
        base: int,
        group: Ints,
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
        """`kind` is a `Summed`. `known` has 1 where there is a sum, and 2 where there is a mean; decimals
        have two words, their mean is that of `scale` times the sum."""

class Repeats:
    """Which members count of those that have one code."""

    def run(
        self,
        events: Ints,
        base: int,
        codes: Ints,
        flags: Flags,
        kept: npt.NDArray[np.uint8],
        /,
    ) -> None:
        """1 for each event by which a code comes to a group, or is no more there."""

class Best:
    """The best member at each point, of equal ones the first; -1 where there is none."""

    def run(
        self,
        events: Ints,
        until: Ints,
        at: Ints,
        base: int,
        group: Ints,
        words: Ints | None,
        flags: Flags,
        kind: int,
        codes: Codes | None,
        wanted: int,
        ordered: bool,
        found: Ints,
        /,
    ) -> None:
        """`kind` is a `Compared`, `wanted` a `Wanted`. `ordered` says that the members of a group leave in
        the order in which they came."""

class Sequence:
    """Sequences of single events, each later than the one before, within a window. Memory is that of the events
    that are not forgotten, and the time of a search that of the events it looks at."""

    def configure(self, order: Ints, links: Ints, widths: Ints, window: int, /) -> None:
        """`order` has the elements in the order in which they are bound, the last first. A link is
        `(op, element, column, other, column)`: `element op other`, where the other is bound before. `widths` says how many
        columns each element has."""

    def append(
        self, element: int, times: Ints, rows: Ints, columns: tuple[tuple[Ints, Flags], ...], /
    ) -> None:
        """Events of an element, in order, with their numbers."""

    def search(self, ends: int, most_work: int, most: int, /) -> bytes | None:
        """The numbers of the events of each match, 64 bits each, that ends with one of the newest `ends` events of the
        last element; None where that takes more work, or there are more than `most`."""

    def forget(self, earliest: int, /) -> None:
        """No match has an event before this time any more."""

def scan(
    start: int,
    low: Ints,
    high: Ints,
    base: int,
    rest: tuple[Test, ...],
    who: Ints,
    row: Ints,
    /,
) -> tuple[int, int]:
    """A search that looks at every row of every window, a block at a time."""

def ordered(
    determined: Ints, counts: tuple[Ints, ...], numbers: tuple[Ints, ...], out: Ints, /
) -> None:
    """The order of matches: by `determined`, then by the numbers of their events, stage by stage. Of each stage
    there are the counts by match, and the numbers of one match after the other."""

def places(sorted: Ints, numbers: Ints, after: bool, out: Ints, /) -> None:
    """Like `numpy.searchsorted`, in linear time where the numbers do not fall."""

def real(data: pa.Buffer | None, offset: int, count: int, width: int, /) -> bool:
    """Returns whether no value of a column of reals, of 4 or 8 bytes each, is NaN."""

def inside(values: Ints, flags: Flags, low: int, high: int, rows: npt.NDArray[np.int32], /) -> int:
    """The rows whose value is between two bounds, both included, in order, and how many these are."""

def taken(
    pieces: tuple[tuple[object, object], ...], places: Ints | npt.NDArray[np.int32], /
) -> object:
    """Some rows of a column, whose pieces are the two capsules of Arrow's array each; the second one of these rows. None
    where there is no way to take such values here."""

def sound(rows: object, wants: Ints, /) -> tuple[object, int] | None:
    """Rows, given as a capsule of Arrow's stream, as one array, if they are one piece in which no column has a NaN, a NULL
    where none may be, or too long a text: its capsule, and where it lies; else None. `wants` are four numbers each: the
    column, the bytes of a real or 0, whether NULL is refused, the most characters or -1."""

def contents(rows: object, /) -> tuple[int, int, int]:
    """How many rows there are, given as a capsule of Arrow's stream, and two sums of a hash of each: the same for the
    same rows in any order and any cut."""

def times(column: object, /) -> tuple[int, int, bool]:
    """The first and the last time of a column of 64-bit integers, as such a capsule, and whether none is less than
    the one before it."""

def keys(columns: tuple[tuple[object, object], ...], codes: Codes, out: Ints, /) -> None:
    """The number of each row's values together, NULL being a value like others, and NaN being NULL. A column is the two
    capsules of Arrow's array."""

def numbers(
    schema: object, column: object, codes: Codes, out: Ints, flags: npt.NDArray[np.uint8] | None, /
) -> None:
    """The number of each value of a column, as the two capsules of Arrow's array: the value itself, of reals an integer in
    their order, of texts and wide decimals its code. With `flags`, of NULL both are 0."""
