"""Keys: one form for all values that SQL calls equal, and the hashes of the specification."""

from __future__ import annotations

import math

import numpy as np
import pytest

from seustream.engine.sites.errors import BadKey
from seustream.engine.sites.keys import canonical, hashed, spelled


def test_statement_07_hashes() -> None:
    assert (hashed(1, 0, 1000), hashed(1, 1, 1000), hashed(42, 0, 1000)) == (486, 383, 518)


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (3, 3),
        (3.0, 3),
        (-0.0, 0),
        (2.5, 2.5),
        (1e300, int(1e300)),
        (math.inf, math.inf),
        ("3", "3"),
        (b"3", b"3"),
        (None, None),
        (math.nan, None),
        (np.int32(7), 7),
        (np.float64(7), 7),
    ],
)
def test_equal_values_have_one_form(value: object, key: object) -> None:
    found = canonical(value)
    assert found == key
    assert type(found) is type(key)


@pytest.mark.parametrize("value", [True, np.bool_(False), [1], (1,)])
def test_what_is_no_key_is_refused(value: object) -> None:
    with pytest.raises(BadKey) as raised:
        canonical(value)
    assert raised.value.hint


def test_keys_of_different_types_are_spelled_apart() -> None:
    assert len({spelled(key) for key in (3, "3", b"3", 3.5, -3)}) == 5
    assert spelled(2.5) == b"f" + bytes.fromhex("4004000000000000")
