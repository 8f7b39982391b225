"""Aggregates over the spread of values: variances, covariances and quantiles, exact until the last
step."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from seustream.compiler.language.exact import UNIT, ratio, units
from seustream.compiler.language.registry import (
    ANY,
    FAULT,
    REAL_NUMBER,
    AggregateFunction,
)
from seustream.compiler.language.types import DOUBLE

State = list[Any]

_ROOT_BITS = 64
"""Bits of a root, more than a real has."""

# --- moments --------------------------------------------------------------------

_COUNT, _INFINITE, _X, _Y, _XX, _YY, _XY = range(7)
"""Parts of a state: rows, infinite rows, and sums of values and products, in units of the smallest
double and of its square. With one argument, those with y are not used."""

MOMENTS = frozenset(
    ("var_samp", "var_pop", "stddev_samp", "stddev_pop", "covar_samp", "covar_pop", "corr")
)
"""The aggregates that have such states."""


def moments(
    count: int, infinite: int, x: int, xx: int, y: int = 0, yy: int = 0, xy: int = 0
) -> State:
    """Returns the state of these sums, in the units of its parts."""
    return [count, infinite, x, y, xx, yy, xy]


def parts_added(a: State, b: State) -> State:
    """Merges two states whose parts are all sums."""
    return [x + y for x, y in zip(a, b, strict=True)]


def _moments(sign: int) -> Callable[..., State]:
    def step(state: State, *values: float) -> State:
        state[_COUNT] += sign
        if not all(map(math.isfinite, values)):
            state[_INFINITE] += sign
            return state
        x, *others = map(units, values)
        state[_X] += sign * x
        state[_XX] += sign * x * x
        for y in others:
            state[_Y] += sign * y
            state[_YY] += sign * y * y
            state[_XY] += sign * x * y
        return state

    return step


def _spread(state: State, product: int, one: int, other: int) -> int:
    """Returns the mean of products minus the product of means, times the square of the count."""
    return int(state[_COUNT] * state[product] - state[one] * state[other])


def _quotient(
    sample: int, parts: tuple[int, int, int], root: bool = False
) -> Callable[[State], Any]:
    """Divides the spread of `parts` by n - `sample` for n rows; with `root` returns the root."""

    def result(state: State) -> Any:
        count = state[_COUNT]
        if count <= sample:
            return None
        if state[_INFINITE]:
            return FAULT
        top, bottom = _spread(state, *parts), count * (count - sample)
        return _root(top, bottom) if root else ratio(top, bottom << 2 * UNIT)

    return result


def _variance(sample: int, root: bool = False) -> Callable[[State], Any]:
    return _quotient(sample, (_XX, _X, _X), root)


def _covariance(sample: int) -> Callable[[State], Any]:
    return _quotient(sample, (_XY, _X, _Y))


def _root(top: int, bottom: int) -> float:
    """Returns the real nearest to the root of a ratio in squares of units. The ratio itself may be too
    large or too small for a real."""
    shift = max(_ROOT_BITS - (top.bit_length() - bottom.bit_length()) // 2, 0)
    square, rest = divmod(top << 2 * shift, bottom)
    root = math.isqrt(square)
    is_more = bool(rest or root * root < square)  # a bit below all others decides how it is rounded
    return ratio(2 * root + is_more, 2 << shift + UNIT)


def _correlation(state: State) -> Any:
    if state[_INFINITE]:
        return FAULT
    both = _spread(state, _XX, _X, _X) * _spread(state, _YY, _Y, _Y)
    if not both:  # a variable without variance
        return None
    shared = _spread(state, _XY, _X, _Y)
    root = math.sqrt(ratio(shared * shared, both))
    return root if shared > 0 else -root


def _entry(
    name: str, parameters: int, result: Callable[[State], Any], doc: str, *aliases: str
) -> AggregateFunction:
    return AggregateFunction(
        name, (REAL_NUMBER,) * parameters, DOUBLE, lambda: [0] * 7, _moments(1), result, doc,
        f"{name}({'x, y'[: 3 * parameters - 2]})", merge=parts_added, remove=_moments(-1),
        aliases=aliases,
    )  # fmt: skip


# --- quantiles ------------------------------------------------------------------


def _sorted_in(state: State, *values: Any) -> State:
    bisect.insort(state, values)
    return state


def _sorted_out(state: State, *values: Any) -> State:
    del state[bisect.bisect_left(state, values)]
    return state


def _between(state: State, share: float) -> Any:
    """Returns the value at a share of the way from the least to the greatest, interpolated between
    neighbours."""
    place, rest = divmod(Fraction(share) * (len(state) - 1), 1)
    (low, *_), (high, *_) = state[place], state[min(place + 1, len(state) - 1)]
    if not rest or low == high:
        return low
    if math.isfinite(low) and math.isfinite(high):
        between = Fraction(low) + (Fraction(high) - Fraction(low)) * rest
        return ratio(*between.as_integer_ratio())
    return FAULT if math.isinf(low) and math.isinf(high) else low + high


def _at(state: State, share: float) -> Any:
    """Returns the first value up to which at least this share of the values lies."""
    return state[max(math.ceil(Fraction(share) * len(state)) - 1, 0)][0]


def _quantile(take: Callable[[State, float], Any]) -> Callable[[State], Any]:
    """Computes a quantile. The share is that of the greatest value; it is meant to be a constant."""

    def result(state: State) -> Any:
        if not state:
            return None
        share = state[-1][1]
        return take(state, share) if 0 <= share <= 1 else FAULT

    return result


_SORTED: dict[str, Any] = {
    "init": list,
    "insert": _sorted_in,
    "remove": _sorted_out,
    "merge": lambda a, b: sorted(map(tuple, a + b)),
}

SPREADS: tuple[AggregateFunction, ...] = (
    _entry("var_samp", 1, _variance(1), "The variance of a sample.", "variance"),
    _entry("var_pop", 1, _variance(0), "The variance of all."),
    _entry("stddev_samp", 1, _variance(1, True), "The standard deviation of a sample.", "stddev"),
    _entry("stddev_pop", 1, _variance(0, True), "The standard deviation of all."),
    _entry("covar_samp", 2, _covariance(1), "The covariance of a sample."),
    _entry("covar_pop", 2, _covariance(0), "The covariance of all."),
    _entry("corr", 2, _correlation, "The correlation, from -1 to 1; NULL where one does not vary."),
    AggregateFunction(
        "median", (REAL_NUMBER,), DOUBLE, **_SORTED,
        result=lambda state: _between(state, 0.5) if state else None,
        doc="The value in the middle, or the mean of the two there.", example="median(x)",
    ),
    AggregateFunction(
        "quantile_cont", (REAL_NUMBER, REAL_NUMBER), DOUBLE, **_SORTED, result=_quantile(_between),
        doc="The value that a share of the values lies below, between its neighbours.",
        example="quantile_cont(x, 0.9)", fault="a share outside 0 to 1", aliases=("percentile",),
    ),
    AggregateFunction(
        "quantile_disc", (ANY, REAL_NUMBER), lambda types: types[0], **_SORTED, result=_quantile(_at),
        doc="The first value up to which such a share of the values lies.",
        example="quantile_disc(x, 0.9)", fault="a share outside 0 to 1", aliases=("quantile",),
    ),
)  # fmt: skip
