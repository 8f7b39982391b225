"""Statistics of the streams: given values, and guesses for the rest."""

from __future__ import annotations

import pytest

from seustream.compiler.plan.divide import Attribute, JoinFactor
from seustream.compiler.plan.statistics import Estimate, Statistics, StatisticsError
from seustream.hdl.isa import Condition
from tests.compiler.plan.cases import compiled_all


def test_read_from_json() -> None:
    text = '{"R": {"rows": 500, "distinct": {"A": 100, "b": 2.5}}, "s": {}, "T": {"rows": 1}}'
    assert Statistics.from_json(text) == Statistics(
        {("r", "a"): 100.0, ("r", "b"): 2.5}, {"r": 500.0, "t": 1.0}
    )
    assert Statistics.from_json("{}") == Statistics()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "want .*Expecting value"),
        ("[]", "want"),
        ("5", "want"),
        ('{"R": 5}', "want"),
        ('{"R": {"rows": "many"}}', "want .*many"),
        ('{"R": {"rows": null}}', "want"),
        ('{"R": {"rows": [1]}}', "want"),
        ('{"R": {"distinct": 5}}', "want"),
        ('{"R": {"distinct": {"a": {}}}}', "want"),
        ('{"R": {"row": 5}}', "R: unknown member 'row'"),
        ('{"R": {"rows": 0}}', "positive"),
        ('{"R": {"rows": -1}}', "positive"),
        ('{"R": {"rows": NaN}}', "positive"),
        ('{"R": {"rows": Infinity}}', "finite"),
        ('{"R": {"rows": 1e999}}', "finite"),
        (f'{{"R": {{"rows": 1{"0" * 400}}}}}', "want"),
        ('{"R": {"distinct": {"a": -5}}}', "positive"),
        ('{"R": ' * 100_000, "want"),
    ],
)
def test_refused(text: str, reason: str) -> None:
    with pytest.raises(StatisticsError, match=reason):
        Statistics.from_json(text)


C = compiled_all("SELECT x.a FROM R x, R y, S WHERE x.a = S.d AND y.a = S.d WINDOW 5")
R, R2, S = range(3)


def estimate(rows: dict[str, float], distinct: dict[tuple[str, str], float]) -> Estimate:
    return Estimate(Statistics(distinct, rows), C.layout)


def selectivity(symbol: str, distinct: dict[tuple[str, str], float], slot: int = R) -> float:
    condition = next(c for c in Condition if c.symbol == symbol)
    factor = JoinFactor(Attribute(slot, "a"), condition, Attribute(S, "d"), "")
    return estimate({}, distinct).selectivity(factor)


def test_rows() -> None:
    known = estimate({"r": 7.0}, {})
    assert [known.rows(slot) for slot in (R, R2, S)] == [7.0, 7.0, 1000.0]


def test_typical_selectivity() -> None:
    assert selectivity("=", {}) == 0.01
    assert selectivity("<>", {}) == 0.99
    assert all(selectivity(symbol, {}) == 1 / 3 for symbol in ("<", "<=", ">", ">="))


def test_known_selectivity() -> None:
    assert selectivity("=", {("r", "a"): 50.0}) == 1 / 50
    assert selectivity("=", {("r", "a"): 50.0, ("s", "d"): 200.0}) == 1 / 200
    assert selectivity("<>", {("s", "d"): 4.0}) == 0.75
    assert selectivity("=", {("r", "a"): 50.0}, slot=R2) == 1 / 50
    assert selectivity("=", {("r", "b"): 50.0}) == 0.01
    assert selectivity("<", {("r", "a"): 50.0}) == 1 / 3
