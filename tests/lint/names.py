"""One of each: counts the definitions of a name over the rooms.

    python -m tests.lint.names

Fails on a second definition of what the project has once, and on a class whose name another class has.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("compiler", "cosim", "engine", "hdl", "seustream", "spark_feeder")

ONCE = {
    "Binder": "compiler/language/bind.py",
    "Merger": "engine/stream/merge.py",
    "GraphRun": "engine/graph.py",
    "Snapshot": "engine/stream/snapshot.py",
    "evaluate": "engine/stream/evaluate.py",
    "compile_row": "compiler/language/evaluate.py",
    "Catalogue": "cosim/bridge/registry.py",
    "Problems": "compiler/errors.py",
    "picture": "compiler/explain/picture/diagram.py",
    "Diagram": "compiler/explain/picture/diagram.py",
    "AGGREGATES": "compiler/language/aggregates.py",
    "FUNCTIONS": "compiler/language/functions/__init__.py",
}
"""The files of the binder, of the evaluators of columns and of rows, the runner, the codec of
snapshots, the registry, the catalogue, the collector of problems, and the writer of pictures, by
name."""

Definitions = dict[str, list[str]]


def sources(root: Path = ROOT) -> Iterator[Path]:
    """Yields the files of the rooms, each once: `seustream` has links to them."""
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            if not any(parent.is_symlink() for parent in path.parents):
                yield path


def definitions(root: Path = ROOT) -> tuple[Definitions, Definitions]:
    """Returns classes, and whatever a module defines at its top that may exist once, by name and
    file."""
    classes: Definitions = defaultdict(list)
    tops: Definitions = defaultdict(list)
    for path in sources(root):
        where = path.relative_to(root).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(where)
        for node in tree.body:
            match node:
                case ast.ClassDef() | ast.FunctionDef():
                    tops[node.name].append(where)
                case ast.AnnAssign(target=ast.Name(name)) | ast.Assign(targets=[ast.Name(name)]):
                    tops[name].append(where)
    return classes, tops


def complaints(root: Path = ROOT, once: Mapping[str, str] = ONCE) -> list[str]:
    """Returns the places at which something is defined a second time."""
    classes, tops = definitions(root)
    found = []
    for name, home in once.items():
        others = [where for where in tops.get(name, []) if where != home]
        if home not in tops.get(name, []):
            found.append(
                f"{name} is not in {home} any more: say in tests/lint/names.py where it is"
            )
        found += [f"{where}: a second {name}; the project has one, in {home}" for where in others]
    twice = {name: places for name, places in classes.items() if len(places) > 1}
    for name, places in sorted(twice.items()):
        if name not in once:
            found.append(f"{places[-1]}: a class {name} is there already, in {places[0]}")
    return found


def main() -> int:
    found = complaints()
    print("\n".join(found) or "one of each")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
