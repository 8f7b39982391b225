"""Checks the prose of docstrings and pages, so that habits that the project has left behind do not return.

    python -m tests.lint.prose

A docstring begins with a verb or the name of the thing. It has none of the words in `WORDS`, and nothing
has a name in `NAMES`. A page, and the help of a command, has none of `tests/lint/habits.py`. `KNOWN` counts
the exceptions that existed when this was written, by folder: a count may only go down.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from seustream.cli import parser
from tests.lint.habits import habits_of
from tests.lint.names import ROOT, sources

BEGINNING = re.compile(r"(What|Whether|Which|Where|When|How|Who|Whose)\b")
WORDS = re.compile(
    r"\b(told|hears?|says so|say so|nobody|nobody's|somebody|somebody's|whoever|whatever one)\b",
    re.IGNORECASE,
)
NAMES = frozenset(
    [
        "alone",
        "completed",
        "blaming",
        "telling",
        "waits_too",
        "Weather",
        "Books",
        "Led",
        "Told",
        "told",
        "insist",
        "calm",
    ]
)

KNOWN: Mapping[str, int] = {}
"""The number of docstrings and names that are still to be corrected, by folder."""


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yields the docstrings of modules, classes, functions and constants, with their lines."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        has_members = isinstance(node, ast.Module | ast.ClassDef)
        defines = has_members or isinstance(node, ast.FunctionDef)
        for before, one in zip([None, *body], body, strict=False):
            if not isinstance(one, ast.Expr) or not isinstance(one.value, ast.Constant):
                continue
            first = before is None and defines
            if isinstance(one.value.value, str) and (
                first or (has_members and isinstance(before, ast.Assign | ast.AnnAssign))
            ):
                yield one.lineno, one.value.value


def habits(text: str) -> Iterator[tuple[int, str]]:
    """Yields what is to be corrected in a source text, with the lines."""
    tree = ast.parse(text)
    for line, doc in docstrings(tree):
        if begins := BEGINNING.match(doc):
            yield (
                line,
                f"a docstring begins with {begins[0]!r}: begin with a verb, or name the thing",
            )
        for word in WORDS.findall(doc):
            yield line, f"a docstring has {word!r}: say who does what"
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name in NAMES:
            yield node.lineno, f"{node.name!r} is no name that says what it is"


def pages(root: Path = ROOT) -> Iterator[Path]:
    """Yields the pages that users read; a decision stays as it was taken."""
    yield from sorted(root.glob("*.md"))
    for folder in ("docs", "examples"):
        for path in sorted((root / folder).rglob("*.md")):
            if "decisions" not in path.parts:
                yield path


def prose_of(page: str) -> str:
    """Returns a page with its code blanked; its lines stay where they were."""
    lines, fenced = [], False
    for line in page.splitlines():
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        lines.append("" if fenced or fence else line)
    text = re.sub(r"`[^`]*`", lambda code: "\n" * code[0].count("\n") + "x", "\n".join(lines))
    return re.sub(r"\]\([^)]*\)", "]", text)


def helps() -> Iterator[tuple[str, str]]:
    """Yields the name of each command, and the sentences in its help."""
    for command, one in parsers(parser(), "seustream"):
        said = [one.description, *(action.help for action in one._actions)]
        yield command, "\n\n".join(text for text in said if text and text != argparse.SUPPRESS)


def parsers(
    one: argparse.ArgumentParser, name: str
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yields a parser and those of its commands, each with what is typed."""
    yield name, one
    for action in one._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, inner in action.choices.items():
                yield from parsers(inner, f"{name} {word}")


def complaints(root: Path = ROOT, known: Mapping[str, int] = KNOWN) -> list[str]:
    """Returns, place by place, what is to be corrected in folders that have more than is known, and
    in pages and helps."""
    found: dict[str, list[str]] = {}
    for path in sources(root):
        where = path.relative_to(root)
        for line, what in habits(path.read_text(encoding="utf-8")):
            found.setdefault(where.parent.as_posix(), []).append(
                f"{where.as_posix()}:{line}: {what}"
            )
    complained = [
        f"{path.relative_to(root).as_posix()}:{line}: {what}"
        for path in pages(root)
        for line, what in habits_of(prose_of(path.read_text(encoding="utf-8")))
    ]
    complained += [
        f"{command} --help:{line}: {what}"
        for command, text in helps()
        for line, what in habits_of(text)
    ]
    for folder, here in sorted(found.items()):
        if len(here) > known.get(folder, 0):
            complained += here
    return complained


def main() -> int:
    found = complaints()
    print("\n".join(found) or "no habits")
    counts = Counter(line.split(":")[0].rpartition("/")[0] for line in found)
    if "--count" in sys.argv:
        print(dict(sorted(counts.items())))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
