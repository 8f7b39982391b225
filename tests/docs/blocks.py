"""Runs the blocks of a Markdown page in order, as its reader would type them.

A `sh` or `python` block runs as it stands; a `text` block right after it shows its output. A line
in it that is only `…` stands for any lines.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUN = ("sh", "python")
_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block; `span` is the range of its text in the page."""

    language: str
    text: str
    span: tuple[int, int]


def blocks(page: str) -> list[Block]:
    found = []
    for match in _FENCE.finditer(page):
        indent, language, text = match.groups()
        text = re.sub(f"^{indent}", "", text, flags=re.MULTILINE)
        found.append(Block(language, text, match.span(3)))
    return found


def sandbox(directory: Path) -> dict[str, str]:
    """Sets up a directory like a reader's: the examples, the tests, and the commands of an
    installation. Returns the environment to run them in."""
    commands = directory / ".commands"
    commands.mkdir()
    for name, call in (("python", ""), ("seustream", " -m seustream"), ("pip", " -c pass")):
        script = commands / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}"{call} "$@"\n')
        script.chmod(0o755)
    for folder in ("examples", "tests"):
        ignored = shutil.ignore_patterns("__pycache__", "data", "results")
        shutil.copytree(ROOT / folder, directory / folder, ignore=ignored)
    path = os.pathsep.join((str(commands), os.environ.get("PATH", "")))
    quiet = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"}
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **quiet}


def execute(block: Block, directory: Path, environment: dict[str, str]) -> str:
    """Runs a block and returns its output; raises if the block fails."""
    shell = ["bash", "-euo", "pipefail", "-c", block.text]
    command = shell if block.language == "sh" else [sys.executable, "-c", block.text]
    done = subprocess.run(
        command,
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    wanted = fails_with(block)
    assert done.returncode == wanted, (
        f"exit status {done.returncode}, not {wanted}:\n{block.text}\n{done.stdout}"
    )
    return done.stdout


def fails_with(block: Block) -> int:
    """Returns the exit status a block should have: that of `# exit status N` in its last line, or
    0."""
    last = block.text.rstrip().splitlines()[-1]
    found = re.search(r"# exit status (\d+)$", last)
    return int(found[1]) if found else 0


def agrees(shown: str, printed: str) -> bool:
    """Returns whether the shown text agrees with the printed one."""
    lines = [line.rstrip() for line in shown.strip("\n").splitlines()]
    pattern = "".join("(?:.*\n)*?" if line == "…" else re.escape(line) + "\n" for line in lines)
    real = "".join(line.rstrip() + "\n" for line in printed.strip("\n").splitlines())
    return re.fullmatch(pattern, real) is not None


def outputs(page: str) -> list[tuple[Block, Block | None]]:
    """Returns the blocks to run, each with the `text` block that shows its output, if one follows
    it directly."""
    found = blocks(page)
    pairs = []
    for block, after in zip(found, [*found[1:], None][: len(found)], strict=True):
        if block.language in RUN:
            close = after is not None and after.language == "text"
            between = page[block.span[1] : after.span[0]] if after else ""
            shown = after if close and re.fullmatch(r" *```\s*```text\n", between) else None
            pairs.append((block, shown))
    return pairs


def run_page(path: Path, directory: Path) -> str:
    """Runs a page's blocks in a sandbox; returns the page with its present outputs."""
    page = path.read_text(encoding="utf-8")
    environment = sandbox(directory)
    changes = []
    for block, shown in outputs(page):
        printed = execute(block, directory, environment)
        if shown is not None and not agrees(shown.text, printed):
            assert "…\n" not in shown.text, f"{path.name}: not as shown:\n{block.text}\n{printed}"
            changes.append((shown.span, printed.strip("\n") + "\n"))
    for (start, end), text in reversed(changes):
        page = page[:start] + text + page[end:]
    return page
