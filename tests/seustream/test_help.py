"""Help of all commands, at the usual narrow width of a terminal."""

from __future__ import annotations

import pytest

from seustream.cli import COMMANDS, main, parser
from tests.lint.prose import parsers


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_eighty_columns(
    command: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "--help"])
    assert ended.value.code == 0
    text = capfd.readouterr().out
    assert text.startswith("usage: seustream")
    assert [line for line in text.splitlines() if len(line) > 80] == []


def test_help_of_commands_within_commands_fits_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    found = {name: one.format_help() for name, one in parsers(parser(), "seustream")}
    assert "seustream query register" in found
    assert [line for text in found.values() for line in text.splitlines() if len(line) > 80] == []


def test_the_parser_of_all_commands_knows_them() -> None:
    assert parser().parse_args(["doctor"]).command == "doctor"
