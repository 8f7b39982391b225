"""Functions of numbers: values as in C and Spark, and rounding of the number as it is written."""

from __future__ import annotations

import math

from tests.compiler.language.folding import fault, value


def test_c_values_where_python_raises() -> None:
    assert value("exp(1000)") == math.inf
    assert value("power(0.0, -1)") == math.inf
    assert value("power(-10.0, 309)") == -math.inf
    assert value("power(-10.0, 310)") == math.inf
    assert fault("power(-8, 0.5)") == "outside its domain"
    assert value("round(CAST('inf' AS double))") == math.inf
    assert value("floor(-1e300)") == -1e300


def test_rounding_as_written() -> None:
    assert value("round(2.675, 2)") == 2.68
    assert value("round(0.49999999999999994)") == 0.0
    assert value("round(1e300, 400)") == 1e300
    assert value("round(1234.5, -2)") == 1200.0
    assert value("round(1e300, -500)") == 0.0
    assert value("round(55, -1)") == 60
    assert fault("round(9223372036854775807, -1)") == "integer overflow"
    assert value("round(5, -30)") == 0


def test_hash_is_that_of_spark() -> None:
    """Values that Spark computes for bigint, double, string, boolean and date."""
    assert value("hash(CAST(1 AS bigint))") == -1712319331
    assert value("hash('Spark')") == 228093765
    assert value("hash(NULL)") == 42
    assert value("hash(0.0)") == value("hash(-0.0)")
    assert value("hash(1, 'a')") != value("hash('a', 1)")
