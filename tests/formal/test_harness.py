"""Every planted fault stands in the source as it is now: a proof of it is a campaign's, and would not
say so before one is run."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.formal.harness import Case


def cases() -> Iterator[object]:
    for file in sorted(Path(__file__).parent.glob("test_*.py")):
        module = importlib.import_module(f"tests.formal.{file.stem}")
        for function in vars(module).values():
            for mark in getattr(function, "pytestmark", ()):
                if mark.name == "parametrize" and mark.args[0] == "case":
                    for planted in mark.args[1]:
                        (case,) = planted.values
                        if case.verdict == "FAIL":
                            yield pytest.param(case, id=f"{file.stem}-{case.name}")


@pytest.mark.parametrize("planted", list(cases()))
def test_a_planted_fault_is_in_the_source(planted: Case) -> None:
    specification = planted.specification()
    specification._MustUse__silence = True  # it is not elaborated
    with specification.setting():
        pass
