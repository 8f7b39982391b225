"""What a page tells its reader to type: the blocks of a Markdown text, run in order.

A `sh` or `python` block is run as it stands; a `text` block right after it is what it prints,
where a line that is only `…` stands for any lines.
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
    """A fenced block; `span` is that of its text in the page."""

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
    """A directory as a reader's: the examples, the queries' tests, and the commands of an
    installation. Gives the environment to run them in."""
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
    """Runs a block; gives what it prints, and fails if it does."""
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
    """A block whose last line ends in `# exit status N` is meant to fail so."""
    last = block.text.rstrip().splitlines()[-1]
    found = re.search(r"# exit status (\d+)$", last)
    return int(found[1]) if found else 0


def agrees(shown: str, printed: str) -> bool:
    """Whether what a page shows is what was printed."""
    lines = [line.rstrip() for line in shown.strip("\n").splitlines()]
    pattern = "".join("(?:.*\n)*?" if line == "…" else re.escape(line) + "\n" for line in lines)
    real = "".join(line.rstrip() + "\n" for line in printed.strip("\n").splitlines())
    return re.fullmatch(pattern, real) is not None


def outputs(page: str) -> list[tuple[Block, Block | None]]:
    """Blocks to run, each with the `text` block that shows what it prints, if one follows it
    with nothing between."""
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
    """Runs a page's blocks in a sandbox; gives the page with its outputs as they are now."""
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
