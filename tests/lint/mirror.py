"""Checks that tests mirror modules: the tests of a module belong in `tests/<room>/…/test_<module>.py`.

    python -m tests.lint.mirror

Lists the modules whose tests are not there. A module may share a file with its neighbours if its name
begins that of the file (`test_join_<case>.py`), or is one of several in it
(`test_framer_and_deframer.py`). `KNOWN` has the modules that are tested under other names; it may only shrink.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Set
from pathlib import Path

from tests.lint.names import ROOT, sources

KNOWN: frozenset[str] = frozenset()
"""Modules without a test file of their name."""


def has_behaviour(path: Path) -> bool:
    """Returns whether a module defines more than names: errors and constants need no test file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in ast.walk(tree))


def missing(root: Path = ROOT) -> set[str]:
    """Returns the modules with behaviour that have no test file of their name."""
    found = set()
    for path in sources(root):
        where = path.relative_to(root)
        if path.stem.startswith("__") or not has_behaviour(path):
            continue
        tests = (root / "tests" / where.parent).glob("test_*.py")
        tested = {name for test in tests for name in test.stem.removeprefix("test_").split("_and_")}
        if not any(name == path.stem or name.startswith(f"{path.stem}_") for name in tested):
            found.add(where.as_posix())
    return found


def complaints(root: Path = ROOT, known: Set[str] = KNOWN) -> list[str]:
    """Returns the modules that lack a test file and are not known to, and those known that have one
    by now."""
    gone = missing(root)
    found = []
    for module in sorted(gone - known):
        want = Path("tests", module).with_name(f"test_{Path(module).name}")
        found.append(f"{module}: no tests in {want.as_posix()}")
    found += [
        f"{module}: has its tests now: take it off the list in tests/lint/mirror.py"
        for module in sorted(known - gone)
    ]
    return found


def main() -> int:
    found = complaints()
    print("\n".join(found) or "tests mirror modules")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
