"""Names from other systems are not ours; each leads to its hint."""

from __future__ import annotations

import pytest

from seustream.compiler.errors import CompileError
from seustream.compiler.language.aggregates import AGGREGATES
from seustream.compiler.language.elsewhere import INSTEAD
from seustream.compiler.language.functions import FUNCTIONS
from seustream.compiler.pipeline import compile_text


def test_what_there_is_has_no_entry() -> None:
    entries = (*FUNCTIONS.values(), *AGGREGATES.values())
    assert not {*INSTEAD} & {name for entry in entries for name in (entry.name, *entry.aliases)}


@pytest.mark.parametrize(
    "written", ["now()", "current_timestamp", "nth_value(a, 2) OVER (ORDER BY ts)"]
)
def test_a_function_a_column_and_a_frame_say_what_to_write(written: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_text(f"CREATE STREAM R (a int); SELECT {written} AS x FROM R")
    name = written.partition("(")[0]
    assert caught.value.to_json()[0]["hint"] == INSTEAD[name]
