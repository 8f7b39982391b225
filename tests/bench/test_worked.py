"""Checks that every test named for a figure of a paper exists, and that a failing one is
noticed."""

from __future__ import annotations

import re

from bench.worked import PRINTED, outcomes
from tests.docs.blocks import ROOT


def test_every_test_that_is_named_is_there() -> None:
    for item in PRINTED:
        there = set(re.findall(r"^def (test_\w+)", (ROOT / item.file).read_text("utf-8"), re.M))
        assert there >= set(item.tests), item
        assert there


def test_outcomes_of_a_file() -> None:
    (tests,) = {item.file for item in PRINTED if item.place == "figure 2-3"}
    found = dict(outcomes([tests]))
    assert found[tests, "test_a_joined_tuple_of_the_thesis_has_136_bits"] is True
