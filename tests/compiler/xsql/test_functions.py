"""Functions and aggregates: what they make of the types of their arguments."""

from __future__ import annotations

import pytest

from compiler.language.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    NULL,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    VARCHAR,
    Kind,
    Type,
)
from compiler.xsql.functions import AGGREGATES, FUNCTIONS

CHAR = Type(Kind.CHAR, 4)
NUMBERS = (SMALLINT, INT, BIGINT, REAL, DOUBLE)
OTHERS = (CHAR, VARCHAR, DATE, TIME, TIMESTAMP, BOOLEAN)


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        *(("abs", [kind], kind) for kind in (*NUMBERS, NULL)),
        *((name, [k], DOUBLE) for name in ("ceil", "floor", "round", "sqrt") for k in NUMBERS),
        ("power", [INT, REAL], DOUBLE),
        ("power", [NULL, BIGINT], DOUBLE),
        *((name, [k], VARCHAR) for name in ("lower", "upper", "trim") for k in (CHAR, VARCHAR)),
        ("lower", [NULL], VARCHAR),
        ("length", [CHAR], BIGINT),
        ("substr", [CHAR, INT], VARCHAR),
        ("substr", [VARCHAR, SMALLINT, BIGINT], VARCHAR),
        ("substr", [NULL, NULL, NULL], VARCHAR),
        *((name, [k], k) for name in ("coalesce", "greatest", "least") for k in (*NUMBERS, *OTHERS)),
        ("coalesce", [NULL, NULL, INT, SMALLINT], INT),
        ("coalesce", [INT, REAL], DOUBLE),
        ("greatest", [REAL, REAL], REAL),
        ("least", [CHAR, VARCHAR], VARCHAR),
        ("nullif", [INT, BIGINT], BIGINT),
        ("nullif", [DATE, NULL], DATE),
    ],
)  # fmt: skip
def test_function(name: str, arguments: list[Type], result: Type) -> None:
    function = FUNCTIONS[name]
    assert function.fewest <= len(arguments) <= function.most
    assert function.result(arguments) == result


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        *((name, [kind]) for name in ("abs", "ceil", "floor", "round", "sqrt") for kind in OTHERS),
        ("power", [INT, VARCHAR]),
        *((name, [k]) for name in ("lower", "upper", "trim", "length") for k in (*NUMBERS, DATE)),
        ("substr", [INT, INT]),
        ("substr", [VARCHAR, REAL]),
        ("substr", [VARCHAR, INT, VARCHAR]),
        ("coalesce", [INT, VARCHAR]),
        ("coalesce", [INT, NULL, BOOLEAN]),
        ("greatest", [DATE, TIMESTAMP]),
        ("nullif", [TIME, DATE]),
    ],
)
def test_function_refuses(name: str, arguments: list[Type]) -> None:
    assert FUNCTIONS[name].result(arguments) is None


@pytest.mark.parametrize(
    ("name", "fewest", "most"),
    [
        ("abs", 1, 1),
        ("power", 2, 2),
        ("substr", 2, 3),
        ("nullif", 2, 2),
        ("coalesce", 1, 16),
        ("greatest", 1, 16),
    ],
)
def test_number_of_arguments(name: str, fewest: int, most: int) -> None:
    assert (FUNCTIONS[name].fewest, FUNCTIONS[name].most) == (fewest, most)


def test_aggregates() -> None:
    for kind in (*NUMBERS, *OTHERS, NULL):
        assert AGGREGATES["count"](kind) == BIGINT
        assert AGGREGATES["min"](kind) == AGGREGATES["max"](kind) == kind
    for kind in OTHERS:
        assert AGGREGATES["sum"](kind) is None
        assert AGGREGATES["avg"](kind) is None
    for kind in NUMBERS:
        assert AGGREGATES["sum"](kind) == (BIGINT if kind.is_integer else DOUBLE)
        assert AGGREGATES["avg"](kind) == DOUBLE


def test_no_name_is_both_function_and_aggregate() -> None:
    assert not set(FUNCTIONS) & set(AGGREGATES)
    assert all(name == name.lower() for name in (*FUNCTIONS, *AGGREGATES))
