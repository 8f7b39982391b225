"""Identity of a bitstream, by which a host checks it.

The version is a digest of the gateware's sources, without comments and docstrings:
to their host, two bitstreams of the same version and configuration are the same circuit.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from seustream.hdl.boards import protocol
from seustream.hdl.config import DeviceConfig

NAME = 15
"""Bytes for a board's name."""
LENGTH = 1 + NAME + 4 + 4 + 4


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity that a bitstream reports.

    board    name of the board
    config   digest of the configuration
    version  version of the gateware
    clock    clock of the processor, in kHz
    """

    board: str
    config: int
    version: int
    clock: int
    protocol: int = protocol.VERSION

    def encode(self) -> bytes:
        name = self.board.encode("ascii")
        if len(name) > NAME:
            raise ValueError(f"board name {self.board!r}: want at most {NAME} letters")
        numbers = (self.config, self.version, self.clock)
        return (
            bytes([self.protocol])
            + name.ljust(NAME, b"\0")
            + b"".join(number.to_bytes(4, "little") for number in numbers)
        )

    @classmethod
    def decode(cls, data: bytes) -> Identity | None:
        """Decodes an identity; None if this host does not understand it."""
        if len(data) != LENGTH or data[0] != protocol.VERSION:
            return None
        name = data[1 : 1 + NAME].rstrip(b"\0").decode("ascii", "replace")
        at = 1 + NAME
        config, version, clock = (
            int.from_bytes(data[at + 4 * i : at + 4 * i + 4], "little") for i in range(3)
        )
        return cls(name, config, version, clock)

    @classmethod
    def of(cls, board: str, config: DeviceConfig, clock: float) -> Identity:
        """The identity of a bitstream made of these sources; `clock` in MHz."""
        return cls(board, config_digest(config), version(), round(clock * 1000))


def config_digest(config: DeviceConfig) -> int:
    """Digest of all parameters except the name."""
    shape = {name: value for name, value in config.to_json().items() if name != "name"}
    return _digest(json.dumps(shape, sort_keys=True).encode())


@functools.cache
def version() -> int:
    """Version of the gateware, as it is when a process first calls this."""
    here = Path(__file__).parent
    # A board's name and clock are in the identity beside the version, and its pins do not matter to a host.
    boards = (source for source in here.glob("*.py") if source.name != "board.py")
    return _digest_of([*here.parent.glob("*.py"), *boards])


@functools.cache
def processor_version() -> int:
    """Version of the processor alone, without link and ports."""
    return _digest_of([*Path(__file__).parent.parent.glob("*.py")])


def _digest_of(sources: list[Path]) -> int:
    return _digest("\n".join(code(source) for source in sorted(sources)).encode())


def code(source: Path) -> str:
    """Reduces a source to what matters to the machine."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [part for part in body if not _is_text(part)]
    return source.name + _dump(tree)


def _dump(node: object) -> str:
    """Does the same as `ast.dump`, but without empty members: which of them exist, and whether they are
    shown, changes between Python versions."""
    if isinstance(node, list):
        return f"[{','.join(map(_dump, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    members = [(name, value) for name, value in ast.iter_fields(node) if value not in (None, [])]
    return f"{type(node).__name__}({','.join(f'{name}={_dump(value)}' for name, value in members)})"


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _digest(data: bytes) -> int:
    return int.from_bytes(hashlib.sha256(data).digest()[:4], "little")
