"""Parsers whose tables are cached between processes.

Finds: cached tables of another grammar, or damaged ones, that are used; a read-only cache folder
that stops the run.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from lark import Lark

from seustream.compiler.language import parse


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "seustream"


def anew(folder: Path, text: str) -> Lark:
    """Returns the parser of a grammar as a process without one gets it."""
    file = folder / "plain.lark"
    file.write_text(text)
    return parse.parser.__wrapped__(file)


def grammar() -> str:
    return Path(__file__).with_name("plain.lark").read_text(encoding="utf-8")


def test_tables_are_made_once(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = anew(tmp_path, grammar())
    assert [file.suffix for file in cache.iterdir()] == [".tables"]
    monkeypatch.setattr(parse, "Lark", _Refused)
    kept = anew(tmp_path, grammar())
    for text in ("1 + 2 * a", "CASE WHEN x > 'y' THEN 1 END", "a BETWEEN 1 AND 2"):
        assert kept.parse(text) == made.parse(text)


def test_another_grammar_has_tables_of_its_own(tmp_path: Path, cache: Path) -> None:
    anew(tmp_path, grammar())
    anew(tmp_path, grammar() + "\n// another\n")
    assert len(list(cache.iterdir())) == 2


def test_broken_tables_are_made_anew(tmp_path: Path, cache: Path) -> None:
    anew(tmp_path, grammar())
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    for broken in (b"", b"nonsense", whole[: len(whole) // 2]):
        file.write_bytes(broken)
        assert anew(tmp_path, grammar()).parse("1 + 1")
        assert file.read_bytes() != broken


def test_without_a_folder_nothing_is_kept(tmp_path: Path, cache: Path) -> None:
    cache.parent.write_text("a file where a folder should be")
    assert anew(tmp_path, grammar()).parse("1 + 1")


class _Refused(Lark):
    def __init__(self, *_: object, **__: object) -> None:
        raise AssertionError("tables were made anew")
