"""Forks processes from one that has done all imports: a kill costs no second of imports.

They are processes like others, with an id of their own, and a kill -9 ends them.
`tests.cosim.bridge.serving.Process` starts one from scratch, imports included.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from seustream.cli import main as seustream
from seustream.commands import serve
from tests.cosim.bridge.serving import lasting_url

_FORKED = multiprocessing.get_context("forkserver")
_FORKED.set_forkserver_preload([__name__, "tests.cosim.bridge.serving"])
assert serve.run is not None  # imported ahead for the forked processes


class Forked:
    """Runs `seustream serve` like `serving.Process`, but forked."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.options = folder, options
        self.url = lasting_url()
        self.start()

    def start(self) -> None:
        command = ["serve", "--config", "tiny", "--backend", "golden"]
        command += ["--listen", self.url, "--journal", str(self.folder), *self.options]
        there, here = _FORKED.Pipe(duplex=False)
        self._said = self.folder.with_name(self.folder.name + ".stderr")
        self.process = _FORKED.Process(target=_serve, args=(command, here, self._said))
        self.process.start()
        here.close()
        line = _line(there)
        there.close()
        if " on grpc" not in line:
            raise AssertionError(line + self.end()[1])
        self.url = line.split(" on ")[1].split("\n")[0].strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.join(60)

    def terminate(self) -> tuple[int | None, str]:
        self.process.terminate()
        return self.end()

    def end(self) -> tuple[int | None, str]:
        self.process.join(60)
        return self.process.exitcode, self._said.read_text()


def forked(work: Callable[..., Any], *arguments: Any) -> Any:
    """Starts a process that does some work, and returns it."""
    process = _FORKED.Process(target=work, args=arguments)
    process.start()
    return process


def _serve(command: list[str], out: Connection, said: Path) -> None:
    os.dup2(out.fileno(), 1)
    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666), 2)
    sys.stdout = os.fdopen(1, "w", buffering=1)
    sys.stderr = os.fdopen(2, "w", buffering=1)
    sys.exit(seustream(command))


def _line(there: Connection) -> str:
    """Returns the line with which a bridge reports that it serves, or all of its output if it does
    not."""
    data, until = b"", time.monotonic() + 60
    while b"\n" not in data and time.monotonic() < until:
        more = os.read(there.fileno(), 4096)
        if not more:
            break
        data += more
    return data.decode()
