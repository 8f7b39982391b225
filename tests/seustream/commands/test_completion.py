"""Shell completion."""

from __future__ import annotations

import pytest

from seustream.cli import COMMANDS, main


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_knows_commands_and_options(
    shell: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    script = capfd.readouterr().out
    assert all(command in script for command in COMMANDS)
    assert "--backend" in script
