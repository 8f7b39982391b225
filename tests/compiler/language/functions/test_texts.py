"""Functions of texts: no result grows without a limit."""

from __future__ import annotations

import pytest

from seustream.compiler.language.functions.texts import MAX_TEXT
from tests.compiler.language.folding import fault, refused, value


@pytest.mark.parametrize("call", ["repeat('ab', {})", "lpad('a', {}, 'bc')", "rpad('a', {})"])
def test_a_text_has_an_end(call: str) -> None:
    assert fault(call.format(1 << 40)) == "text too long"
    assert len(value(call.format(1000))) in (1000, 2000)


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("^[[:alpha:]]+$", "aZ", "a1"),
        ("^[^[:digit:]_]$", "a", "_"),
        ("^[][:space:]]$", "]", "["),
        ("^[[:punct:]]$", "~", "a"),
        ("^[a||b&&c]$", "|", "d"),
        (r"a\z", "ba", "ab"),
        (r"^[\]z]\z", "]", "a"),
    ],
)
def test_the_classes_of_brackets(pattern: str, matching: str, other: str) -> None:
    assert value(f"regexp_matches('{matching}', '{pattern}')") is True
    assert value(f"regexp_matches('{other}', '{pattern}')") is False


@pytest.mark.parametrize("pattern", ["[[:letter:]]", "[[:^alpha:]]", "[[:alpha:]"])
def test_what_is_no_class(pattern: str) -> None:
    assert "is no regular expression" in refused(f"regexp_matches('a', '{pattern}')")


@pytest.mark.parametrize(
    ("text", "pattern", "like"),
    [
        ("ΟΣΑ", "%ΟΣ%", True),
        ("ΟΔΟΣ", "οδοσ", True),
        ("İ", "_", True),
        ("straße", "STRAẞE", True),
        ("straße", "STRASSE", False),
    ],
)
def test_ilike_takes_each_letter_for_itself(text: str, pattern: str, like: bool) -> None:
    assert value(f"'{text}' ILIKE '{pattern}'") is like


def test_replacing_may_not_grow_without_end() -> None:
    half = f"repeat('a', {MAX_TEXT // 2})"
    assert fault(f"replace({half}, 'a', 'bcd')") == "text too long"
    assert value(f"length(replace({half}, 'a', 'b'))") == MAX_TEXT // 2
    assert value("replace('ab', '', 'x')") == "ab"
