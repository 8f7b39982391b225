"""The streams a query knows, hints for an unknown name, and parts of the syntax tree."""

from __future__ import annotations

import pytest

from seustream.compiler.apas import syntax as s
from seustream.compiler.apas.parse import parse
from seustream.compiler.apas.symbols import Schema, Symbol, Symbols, attribute_hint
from seustream.compiler.apas.tree import from_lists, leaf
from seustream.compiler.apas.types import INTEGER
from seustream.compiler.errors import SourceText

TREE = from_lists("I", [["speed", "INTEGER"], ["at", [["x", "DOUBLE"]]], ["none", []]])


def test_a_local_stream_hides_one_of_the_catalogue() -> None:
    symbols = Symbols({"I": Schema(TREE), "J": Schema(TREE)})
    symbols.local["I"] = Symbol("I", leaf("I", INTEGER), number=0)
    found = symbols.find("I")
    assert found is not None
    assert (found.schema, found.number) == (None, 0)
    assert symbols.names == ["I", "J"]
    assert symbols.met == {}


def test_a_schema_is_as_it_was_when_the_query_first_met_it() -> None:
    catalogue = {"I": Schema(TREE, 3)}
    symbols = Symbols(catalogue)
    assert symbols.find("X") is None
    first = symbols.find("I")
    catalogue["I"] = Schema(from_lists("I", []), 4)
    again = symbols.find("I")
    assert first is not None
    assert again is not None
    assert again.tree is first.tree
    assert again.tree is not TREE
    assert symbols.met["I"].version == 3


def test_version_0_is_no_source_yet() -> None:
    assert not Schema(from_lists("I", []), 0).connected
    assert Schema(TREE).connected


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        (("sped",), "did you mean $I.speed?"),
        (("at", "X"), "did you mean $I.at.x?"),
        (("at", "qqq"), "known attributes of $I.at: x"),
        (("none", "x"), "$I.none has none"),
        (("at",), "$I is a group"),
    ],
)
def test_a_hint_is_for_the_place_where_a_path_goes_wrong(path: tuple[str, ...], hint: str) -> None:
    assert attribute_hint(TREE, path, "$I") == hint


def test_three_spellings_of_a_target_are_one_tree() -> None:
    def items(text: str) -> str:
        (assignment,) = parse(SourceText(f"select {text}")).final.items
        while isinstance(assignment, s.Inner):
            (assignment,) = assignment.level.items
        assert isinstance(assignment, s.Assignment)
        return str(assignment.path)

    assert items("O[x = 1]") == "x"
    assert items("O[z[x = 1]]") == "x"
    assert items("O[z.x = 1]") == "z.x"


def test_an_argument_has_a_label_or_none() -> None:
    (block,) = parse(SourceText("where f.g($I, size = 3) select [a = 1]")).final.where
    assert isinstance(block, s.FunctionCall)
    labels = [s.label_of(argument)[0] for argument in block.arguments]
    assert labels == [None, "size"]
    reference = s.label_of(block.arguments[0])[1]
    assert isinstance(reference, s.Reference)
    assert str(s.names_of(reference)).endswith("I")
