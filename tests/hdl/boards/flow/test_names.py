"""Tests names that yosys can tell apart."""

from __future__ import annotations

from seustream.hdl.boards.flow.names import plain


def test_names_keep_what_they_are_but_for_brackets() -> None:
    """A slice of a wire stands apart from its name, and is kept."""
    text = 'wire width 4 \\keys[0]\nconnect \\a.b[1][2] \\keys [3:0]\nparameter \\MEMID "\\\\bank[0]"\n'
    assert plain(text) == (
        'wire width 4 \\keys(0)\nconnect \\a.b(1)(2) \\keys [3:0]\nparameter \\MEMID "\\\\bank(0)"\n'
    )
    assert plain('attribute \\x "[0]"\nassign $1 [0]\n') == 'attribute \\x "[0]"\nassign $1 [0]\n'
