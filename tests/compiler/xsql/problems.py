"""Texts with a mistake and the problem each reports, one fixture for each module that reports
problems.

A case is the kind of problem, the text (indented) with the offending part in «», the message after
`!`, the hint after `?`. `test_errors` checks that no kind is missing. `STREAMS` is put before every
text except those of the parser.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from seustream.compiler.errors import CompileError
from seustream.compiler.pipeline import compile_text

STREAMS = """\
CREATE STREAM R (a int, b int, s varchar(20), day date, hour time, moment timestamp, ok boolean);
CREATE STREAM S (d int, b int, x real, s char(4), long bigint);
"""
FIXTURES = ("parse", "analyse", "bind")


class Report(NamedTuple):
    kind: str
    line: int
    column: int
    text: str
    message: str
    hint: str


class Mistake(NamedTuple):
    kind: str
    marked: str
    message: str
    hint: str

    @property
    def text(self) -> str:
        return self.marked.replace("«", "").replace("»", "")

    def report(self, lines_before: int = 0) -> Report:
        before, rest = self.marked.split("«")
        offending, _ = rest.split("»")
        line = lines_before + before.count("\n") + 1
        column = len(before) - (before.rfind("\n") + 1) + 1
        return Report(self.kind, line, column, offending, self.message, self.hint)

    def __str__(self) -> str:
        return f"{self.kind}: {self.marked}"


def mistakes(fixture: str) -> list[Mistake]:
    text = Path(__file__).with_name("fixtures").joinpath(f"{fixture}.txt").read_text("utf-8")
    return [_mistake(block.split("\n")) for block in text.strip("\n").split("\n\n")]


def _mistake(lines: list[str]) -> Mistake:
    kind, *written, message, hint = lines
    assert message.startswith("! ")
    assert hint.startswith("? ")
    return Mistake(kind, "\n".join(line[4:] for line in written), message[2:], hint[2:])


def reported(text: str, stop_after: str = "tree") -> list[Report]:
    """Returns all reported problems of a text, in order."""
    with pytest.raises(CompileError) as caught:
        compile_text(text, stop_after=stop_after)
    members = Report._fields
    return [Report(*(row[member] for member in members)) for row in caught.value.to_json()]  # type: ignore[arg-type]
