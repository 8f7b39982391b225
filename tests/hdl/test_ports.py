"""Tests that the table bus has room for what a command says."""

from __future__ import annotations

from seustream.hdl.control import COMMAND
from seustream.hdl.ports import WORD, TableBus


def test_all_of_a_command_but_its_operation() -> None:
    members = TableBus().members
    assert members["valid"].shape == members["half"].shape == 1
    assert {name: members[name].shape for name in WORD if name != "valid"} == {
        name: field.shape for name, field in COMMAND if name != "operation"
    }
