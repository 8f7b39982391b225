"""All aggregates, one entry each.

States are plain lists, so that they can be serialised. Sums are exact, even of reals: a state keeps
the sum in units of the smallest double, and only the result is rounded. Removing what was inserted
therefore leaves no trace, and the order of rows and of merges does not matter.
"""

from __future__ import annotations

import datetime
import math
import operator
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from seustream.compiler.language.exact import (
    UNIT,
    WIDE,
    bounded,
    fitted,
    interval,
    milliseconds,
    ratio,
    units,
)
from seustream.compiler.language.registry import (
    ANY,
    ANYTHING,
    CONDITION,
    FAULT,
    INTEGER,
    TEXT,
    AggregateFunction,
    ArgumentKind,
    Fault,
)
from seustream.compiler.language.spreads import SPREADS, parts_added
from seustream.compiler.language.tallies import Frequencies, Sketch, Tally, hashed
from seustream.compiler.language.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTERVAL,
    MAX_PRECISION,
    VARCHAR,
    Kind,
    Type,
    decimal,
    list_of,
)

SUMMED = ArgumentKind("a number", lambda of: of.is_numeric or of.kind is Kind.INTERVAL, None)

State = list[Any]
Result = Any

_BITS = 64

# --- result types -------------------------------------------------------------


def _sum_type(types: Sequence[Type]) -> Type:
    of = types[0]
    if of.is_decimal:
        assert of.length is not None
        return decimal(min(of.length + 10, MAX_PRECISION), of.scale or 0)
    if of.kind is Kind.INTERVAL:
        return INTERVAL
    return BIGINT if of.is_integer or of.is_unknown else DOUBLE


def _mean_type(types: Sequence[Type]) -> Type:
    of = types[0]
    if of.is_decimal:
        assert of.length is not None
        scale = min((of.scale or 0) + 4, MAX_PRECISION)
        return decimal(min(of.length + 4, MAX_PRECISION), scale)
    return INTERVAL if of.kind is Kind.INTERVAL else DOUBLE


def _first_type(types: Sequence[Type]) -> Type:
    return types[0]


def _list_type(types: Sequence[Type]) -> Type:
    return list_of(types[0])


# --- exact sums ---------------------------------------------------------------

_COUNT, _EXACT, _UNITS, _ABOVE, _BELOW = range(5)
"""Parts of a sum: the number of rows; the sum of integers, decimals and milliseconds; the sum of
reals in units; the numbers of infinite and of negative infinite rows."""


def _empty_sum() -> State:
    return [0, 0, 0, 0, 0]


def _added(sign: int) -> Callable[[State, Any], State]:
    def step(state: State, value: Any) -> State:
        state[_COUNT] += sign
        if isinstance(value, float):
            if math.isfinite(value):
                state[_UNITS] += sign * units(value)
            else:
                state[_ABOVE if value > 0 else _BELOW] += sign
        elif isinstance(value, Decimal):
            state[_EXACT] = WIDE.add(Decimal(state[_EXACT]), value * sign)
        else:
            size = milliseconds(value) if isinstance(value, datetime.timedelta) else value
            state[_EXACT] += sign * size
        return state

    return step


def _sums_merged(a: State, b: State) -> State:
    count, exact, units_, above, below = a
    more, exactly = b[_COUNT], b[_EXACT]
    if isinstance(exact, Decimal) or isinstance(exactly, Decimal):
        total: Any = WIDE.add(Decimal(exact), Decimal(exactly))
    else:
        total = exact + exactly
    return [count + more, total, units_ + b[_UNITS], above + b[_ABOVE], below + b[_BELOW]]


def _infinite(state: State) -> float | Fault | None:
    """Returns the sum if some row is infinite, None if none is; infinities of both signs have no
    sum."""
    if state[_ABOVE] and state[_BELOW]:
        return FAULT
    if state[_ABOVE] or state[_BELOW]:
        return math.inf if state[_ABOVE] else -math.inf
    return None


def _or_fault(value: Any) -> Any:
    return FAULT if value is None else value


def _sum(to: Type, state: State) -> Result:
    if not state[_COUNT]:
        return None
    match to.kind:
        case Kind.DECIMAL:
            return _or_fault(fitted(state[_EXACT], to))
        case Kind.BIGINT:
            return _or_fault(bounded(state[_EXACT]))
        case Kind.INTERVAL:
            return _or_fault(interval(state[_EXACT]))
    infinite = _infinite(state)
    return ratio(state[_UNITS], 1 << UNIT) if infinite is None else infinite


def _mean(to: Type, state: State) -> Result:
    count = state[_COUNT]
    if not count:
        return None
    match to.kind:
        case Kind.DECIMAL:
            total = Decimal(state[_EXACT])
            if total.adjusted() >= MAX_PRECISION + (to.scale or 0):
                return FAULT
            return _or_fault(fitted(WIDE.divide(total, Decimal(count)), to))
        case Kind.INTERVAL:
            return _or_fault(interval(int(Fraction(state[_EXACT], count))))
    if bounded(int(state[_EXACT])) is None:
        return FAULT
    infinite = _infinite(state)
    if infinite is not None:
        return infinite
    if not state[_UNITS]:
        return ratio(int(state[_EXACT]), count)
    return ratio((int(state[_EXACT]) << UNIT) + state[_UNITS], count << UNIT)


# --- counts -------------------------------------------------------------------


def _counted(sign: int) -> Callable[..., State]:
    def step(state: State, *values: Any) -> State:
        state[0] += sign
        return state

    return step


def _judged(sign: int) -> Callable[[State, bool], State]:
    """Counts the rows that are false and those that are true."""

    def step(state: State, value: bool) -> State:
        state[value] += sign
        return state

    return step


def _all(state: State) -> bool | None:
    return None if not any(state) else not state[False]


def _any(state: State) -> bool | None:
    return None if not any(state) else bool(state[True])


def _bits_counted(sign: int) -> Callable[[State, int], State]:
    """Counts the rows, and for each bit those in which it is set."""

    def step(state: State, value: int) -> State:
        state[-1] += sign
        for bit in range(_BITS):
            state[bit] += sign * (value >> bit & 1)
        return state

    return step


def _bits(wanted: Callable[[int, int], bool]) -> Callable[[State], int | None]:
    """Builds an integer from the bits for which `wanted` holds, given the bit's count and the
    number of rows."""

    def result(state: State) -> int | None:
        *counts, rows = state
        if not rows:
            return None
        found = sum(1 << bit for bit, count in enumerate(counts) if wanted(count, rows))
        return found - (found >> _BITS - 1 << _BITS)

    return result


def _bits_entry(name: str, wanted: Callable[[int, int], bool], doc: str) -> AggregateFunction:
    return AggregateFunction(
        name, (INTEGER,), BIGINT, lambda: [0] * (_BITS + 1), _bits_counted(1), _bits(wanted),
        doc, f"{name}(y)", merge=parts_added, remove=_bits_counted(-1),
    )  # fmt: skip


# --- one of the rows ----------------------------------------------------------


def _kept(better: Callable[[Any, Any], bool]) -> Callable[..., State]:
    """Keeps the first of the best rows as `[value, key]`; only the key is compared."""

    def step(state: State, *values: Any) -> State:
        return list(values) if not state or better(values[-1], state[-1]) else state

    return step


def _best_merged(better: Callable[[Any, Any], bool]) -> Callable[[State, State], State]:
    def merge(a: State, b: State) -> State:
        return b if not a or (b and better(b[-1], a[-1])) else a

    return merge


def _value(state: State) -> Any:
    return state[0] if state else None


def _less(a: Any, b: Any) -> bool:
    return bool(a < b)


def _greater(a: Any, b: Any) -> bool:
    return bool(a > b)


def _never(a: Any, b: Any) -> bool:
    return False


def _always(a: Any, b: Any) -> bool:
    return True


def _best_entry(
    name: str, better: Callable[[Any, Any], bool], doc: str, keyed: bool = False,
    ordered: bool = False, aliases: tuple[str, ...] = (),
) -> AggregateFunction:  # fmt: skip
    return AggregateFunction(
        name, (ANYTHING, ANY) if keyed else (ANY,), _first_type, list, _kept(better), _value, doc,
        f"{name}(x, y)" if keyed else f"{name}(x)", merge=_best_merged(better),
        ordered=ordered or keyed, aliases=aliases,
    )  # fmt: skip


# --- all of the rows ----------------------------------------------------------


def _appended(state: State, *values: Any) -> State:
    state.append(list(values))
    return state


def _texts_joined(state: State) -> str | None:
    """Joins the texts; each one except the first follows the separator of its row."""
    if not state:
        return None
    parts = [state[0][0]]
    for text, *separator in state[1:]:
        parts += [*separator, text]
    return "".join(parts)


def _listed(state: State) -> list[Any] | None:
    return [value for (value,) in state] or None


# --- how often each value is there -----------------------------------------------


def _itself(value: Any) -> Any:
    return value + 0.0 if isinstance(value, float) else value  # there is one zero


def _tally_entry(
    name: str, kind: type[Tally], key: Callable[[Any], Any], result: Callable[[Any], Any],
    of: Type | Callable[[Sequence[Type]], Type], doc: str,
) -> AggregateFunction:  # fmt: skip
    """An aggregate of how often each value, by its key, is there."""

    def tally(state: dict[Any, int]) -> Tally:
        return state if isinstance(state, kind) else kind(state)  # a snapshot has the counts alone

    def changed(by: int) -> Callable[[dict[Any, int], Any], Tally]:
        def step(state: dict[Any, int], value: Any) -> Tally:
            found = tally(state)
            found.change(key(value), by)
            return found

        return step

    return AggregateFunction(
        name, (ANY,), of, kind, changed(1), lambda state: result(tally(state)), doc, f"{name}(x)",
        merge=lambda a, b: tally(a).with_all(b), remove=changed(-1),
    )  # fmt: skip


# --- entries ------------------------------------------------------------------

_SUM_STATE: dict[str, Any] = {
    "init": _empty_sum, "insert": _added(1), "remove": _added(-1), "merge": _sums_merged,
    "typed": True, "fault": "sum overflow",
}  # fmt: skip

_ENTRIES: tuple[AggregateFunction, ...] = (
    AggregateFunction(
        "count", (ANYTHING,), BIGINT, lambda: [0], _counted(1), _value,
        "The number of rows, or of those in which a value is not NULL.", "count(x)",
        merge=parts_added, remove=_counted(-1), optional=1,
    ),
    AggregateFunction(
        "sum", (SUMMED,), _sum_type, result=_sum,
        doc="The sum: of integers a bigint, of reals the exact sum rounded once.",
        example="sum(x)", **_SUM_STATE,
    ),
    AggregateFunction(
        "avg", (SUMMED,), _mean_type, result=_mean,
        doc="The mean: of decimals with four more digits after the point, else a double.",
        example="avg(x)", aliases=("mean",), **_SUM_STATE,
    ),
    _best_entry("min", _less, "The least value."),
    _best_entry("max", _greater, "The greatest value."),
    *SPREADS,
    AggregateFunction(
        "bool_and", (CONDITION,), BOOLEAN, lambda: [0, 0], _judged(1), _all,
        "Whether a condition holds in every row.", "bool_and(x > 0)",
        merge=parts_added, remove=_judged(-1), aliases=("every",),
    ),
    AggregateFunction(
        "bool_or", (CONDITION,), BOOLEAN, lambda: [0, 0], _judged(1), _any,
        "Whether a condition holds in some row.", "bool_or(x > 0)",
        merge=parts_added, remove=_judged(-1),
    ),
    _bits_entry("bit_and", operator.eq, "The bits that are set in the integers of all rows."),
    _bits_entry("bit_or", lambda count, _: count > 0, "The bits that are set in the integer of some row."),
    _best_entry("first", _never, "The value of the row that came first.", ordered=True,
                aliases=("first_value", "any_value", "arbitrary")),
    _best_entry("last", _always, "The value of the row that came last.", ordered=True,
                aliases=("last_value",)),
    _best_entry("min_by", _less, "The value of the first row whose second value is the least.",
                keyed=True, aliases=("arg_min",)),
    _best_entry("max_by", _greater, "The value of the first row whose second value is the "
                "greatest.", keyed=True, aliases=("arg_max",)),
    AggregateFunction(
        "string_agg", (TEXT, TEXT), VARCHAR, list, _appended, _texts_joined,
        "The texts in the order of the rows, with the second argument between them.",
        "string_agg(name, ',')", merge=lambda a, b: a + b, ordered=True, collects=True, optional=1,
        aliases=("listagg",),
    ),
    AggregateFunction(
        "array_agg", (ANY,), _list_type, list, _appended, _listed,
        "The values that are not NULL as a list, in the order of the rows.", "array_agg(x)",
        merge=lambda a, b: a + b, ordered=True, collects=True, aliases=("collect_list",),
    ),
    _tally_entry(
        "mode", Frequencies, _itself, Frequencies.most, _first_type,
        "The most frequent value; of several, the least.",
    ),
    _tally_entry(
        "approx_count_distinct", Sketch, hashed, Sketch.estimate, BIGINT,
        "About how many different values there are, usually within two per cent.",
    ),
)  # fmt: skip

KEPT_AS_STATE = frozenset(
    ("count", "sum", "avg", "min", "max", "first", "last", "min_by", "max_by")
)
"""Aggregates of which a state, or one row, is enough for a group that no row leaves. The others need
all its rows."""

AGGREGATES: dict[str, AggregateFunction] = {entry.name: entry for entry in _ENTRIES}
