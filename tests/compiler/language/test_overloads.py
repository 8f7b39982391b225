"""Signatures of functions, and the hint if none fits."""

from __future__ import annotations

import pytest

from seustream.compiler.language import types as t
from seustream.compiler.language.functions import FUNCTIONS
from seustream.compiler.language.overloads import expanded_parameters, instead, signatures


def test_every_overload_is_a_signature() -> None:
    plus = FUNCTIONS["+"]
    found = signatures(plus)
    assert found[0] == (plus.parameters, plus.result)
    assert len(found) == 1 + len(plus.overloads)


@pytest.mark.parametrize(
    ("name", "count", "want"),
    [
        ("substr", 1, None), ("substr", 2, 2), ("substr", 3, 3), ("substr", 4, None),
        ("concat", 1, 1), ("concat", 5, 5), ("pi", 0, 0), ("pi", 1, None),
    ],
)  # fmt: skip
def test_one_parameter_an_argument(name: str, count: int, want: int | None) -> None:
    entry = FUNCTIONS[name]
    found = expanded_parameters(entry, entry.parameters, count)
    assert (None if found is None else len(found)) == want


def test_overloads_have_no_optional_parameters() -> None:
    entry = FUNCTIONS["extract"]
    for parameters, _ in signatures(entry)[1:]:
        assert expanded_parameters(entry, parameters, len(parameters) - 1) is None


def test_hints_say_what_to_write_instead() -> None:
    assert instead("||", [t.BOOLEAN, t.BOOLEAN]).endswith("write OR")
    assert instead("+", [t.VARCHAR, t.VARCHAR]) == "texts are joined by ||"
    assert "INTERVAL '1' DAY" in instead("-", [t.DATE, t.INT])
    assert "CAST" in instead("*", [t.VARCHAR, t.INT])
