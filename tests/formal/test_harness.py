"""Checks that every planted fault fits the present source: its proof runs in a campaign, and would
not show this before one is run."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.formal.harness import Case


def cases(module: ModuleType) -> Iterator[Case]:
    """Yields the cases that the module's tests are parametrized with."""
    for function in vars(module).values():
        for mark in getattr(function, "pytestmark", ()):
            if mark.name == "parametrize" and mark.args[0] == "case":
                yield from (case for parameter in mark.args[1] for case in parameter.values)


PLANTED = [
    pytest.param(case, id=f"{file.stem}-{case.name}")
    for file in sorted(Path(__file__).parent.glob("test_*.py"))
    for case in cases(importlib.import_module(f"tests.formal.{file.stem}"))
    if case.verdict == "FAIL"
]


def test_there_are_planted_faults() -> None:
    """Otherwise the next test would be empty, which would go unnoticed."""
    assert len(PLANTED) >= 40


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_fault_is_in_the_source(planted: Case) -> None:
    specification = planted.specification()
    specification._MustUse__silence = True  # it is not elaborated
    with specification.setting():
        pass
