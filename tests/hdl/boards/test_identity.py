"""Tests identities of bitstreams: they come back, and change with what the gateware does."""

from __future__ import annotations

from pathlib import Path

import pytest

from seustream.hdl.boards import identity as identities
from seustream.hdl.boards.identity import LENGTH, Identity, config_digest, version
from seustream.hdl.config import CONFIGURATIONS


def test_identities() -> None:
    config = CONFIGURATIONS["tiny"]
    identity = Identity.of("ulx3s", config, 62.5)
    assert len(identity.encode()) == LENGTH
    assert Identity.decode(identity.encode()) == identity
    assert identity.clock == 62_500
    assert identity.version == version()
    assert Identity.decode(identity.encode()[:-1]) is None
    assert Identity.decode(b"\x09" + identity.encode()[1:]) is None
    with pytest.raises(ValueError, match="at most 15 letters"):
        Identity("a-board-with-a-long-name", 1, 2, 3).encode()


def test_the_version_is_of_what_a_source_does(tmp_path: Path) -> None:
    def code(text: str) -> str:
        source = tmp_path / "one.py"
        source.write_text(text)
        return identities.code(source)

    written = code("def f(a, b=1):\n    return a + b\n")
    assert written == code('def f(a, b=1):  # why\n    "What."\n\n    return (a + b)\n')
    assert written != code("def f(a, b=1):\n    return a - b\n")
    assert written != code("def f(a, b=2):\n    return a + b\n")
    # Members that a newer Python adds, and leaves empty, do not count.
    assert "type_params" not in written
    assert "[]" not in written


def test_the_processor_has_a_version_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the same in tops with other ports, and their versions differ."""
    boards = tmp_path / "boards"
    boards.mkdir()
    sources = {
        tmp_path / "top.py": "a = 1\n",
        boards / "network.py": "b = 1\n",
        boards / "board.py": "c = 1\n",
    }
    for source, text in sources.items():
        source.write_text(text)
    monkeypatch.setattr(identities, "__file__", str(boards / "identity.py"))
    of = identities.version.__wrapped__, identities.processor_version.__wrapped__
    found = [tuple(version() for version in of)]
    for source, text in sources.items():
        source.write_text(text.replace("1", "2"))
        found.append(tuple(version() for version in of))
        source.write_text(text)
    first, processor, port, pins = found
    assert processor[0] != first[0]
    assert processor[1] != first[1]
    assert port[0] != first[0]
    assert port[1] == first[1]
    assert pins == first


def test_a_configuration_is_more_than_its_name() -> None:
    import dataclasses

    digests = {config_digest(config) for config in CONFIGURATIONS.values()}
    assert len(digests) == len(CONFIGURATIONS)
    tiny = CONFIGURATIONS["tiny"]
    assert config_digest(dataclasses.replace(tiny, name="other")) == config_digest(tiny)
