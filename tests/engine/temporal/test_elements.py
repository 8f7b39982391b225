"""Elements: keys, instants, saturation, text form."""

from __future__ import annotations

import pytest

from seustream.engine.temporal.elements import FOREVER, ElementKind
from tests.engine.temporal.reference.elements import STOP, boundary, header, insertion, later


def test_keys_are_lexicographic() -> None:
    """The example of section 2: B(5,5), (5,6), (5,9), (6,6) is in order; after (5,9), B(5,5) is
    stale."""
    keys = [boundary(5).key, insertion(5, 6).key, insertion(5, 9).key, insertion(6, 6).key]
    assert keys == sorted(keys)
    assert boundary(5).key < insertion(5, 9).key


def test_an_interval_does_not_end_before_it_starts() -> None:
    with pytest.raises(ValueError, match=r"\[3, 2\): an interval ends after it starts"):
        insertion(3, 2)


def test_sums_saturate() -> None:
    assert later(3, 10) == 13
    assert later(FOREVER - 1, 10) == FOREVER
    assert later(FOREVER, FOREVER) == FOREVER


def test_only_insertions_and_boundaries_have_a_time() -> None:
    assert [kind.name for kind in ElementKind if kind.timed] == ["INSERTION", "BOUNDARY"]


def test_they_print_as_in_the_specification() -> None:
    shown = [insertion(1, 4, -1), insertion(2, FOREVER, "a", 1.5), boundary(7), STOP, header(None)]
    assert [repr(x) for x in shown] == ["[1,4) -1", "[2,inf) 'a', 1.5", "B(7)", "STOP", "HEADER"]
