"""Tests that the table bus has room for what a command says."""

from __future__ import annotations

from seustream.hdl.control import COMMAND
from seustream.hdl.table_bus import write_signature


def test_all_of_a_command_but_its_operation() -> None:
    members = write_signature().members
    assert members["valid"].shape == 1
    assert {name: member.shape for name, member in members.items() if name != "valid"} == {
        name: field.shape for name, field in COMMAND if name != "operation"
    }
