"""Functions of texts: no result grows without a limit."""

from __future__ import annotations

import pytest

from seustream.compiler.language.functions.texts import MAX_TEXT
from tests.compiler.language.folding import fault, value


@pytest.mark.parametrize("call", ["repeat('ab', {})", "lpad('a', {}, 'bc')", "rpad('a', {})"])
def test_a_text_has_an_end(call: str) -> None:
    assert fault(call.format(1 << 40)) == "text too long"
    assert len(value(call.format(1000))) in (1000, 2000)


def test_replacing_may_not_grow_without_end() -> None:
    half = f"repeat('a', {MAX_TEXT // 2})"
    assert fault(f"replace({half}, 'a', 'bcd')") == "text too long"
    assert value(f"length(replace({half}, 'a', 'b'))") == MAX_TEXT // 2
    assert value("replace('ab', '', 'x')") == "ab"
