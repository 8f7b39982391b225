"""Checks that each session installs what it imports. The sessions are asked what they would install
and run. What they run is imported, not run, where none of the other packages can be imported;
sessions that install the same share one process. The session of all tests imports its packages as
it runs."""

from __future__ import annotations

import functools
import importlib.metadata
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nox
import pytest
from packaging.requirements import Requirement

import noxfile
from seustream.commands import bench
from tests.docs.blocks import ROOT
from tests.installed import installed

SESSIONS = [name for name, found in vars(noxfile).items() if isinstance(found, nox.registry.Func)]
# pyarrow mistakes a pandas that is gone for one that is there.
STAYS = {"pandas"}


def packages(requirements: tuple[str, ...]) -> set[str]:
    """Returns the packages that requirements let a program import."""
    names = {re.split(r"[\[<>=,;]", requirement)[0] for requirement in requirements}
    known = _owners()
    return {name.replace("-", "_") for name in names} | {
        package for package, owners in known.items() if names & set(owners)
    }


@functools.cache
def _owners() -> Mapping[str, list[str]]:
    """Returns which distributions have each package: half a second, and asked a dozen times."""
    return importlib.metadata.packages_distributions()


EVERY = packages(
    nox.project.dependency_groups(noxfile.PROJECT, *noxfile.PROJECT["dependency-groups"])
)


def steps(name: str) -> tuple[set[str], list[tuple[str, ...]]]:
    """Returns the packages that a session installs, and the commands that it runs."""
    had: set[str] = set()
    ran: list[tuple[str, ...]] = []
    session: Any = SimpleNamespace(
        posargs=[],
        venv_backend="uv",
        install=lambda *what: had.update(packages(tuple(w for w in what if w not in ("-e", ".")))),
        run=lambda *command, **_: ran.append(command),
        create_tmp=tempfile.gettempdir,
    )
    vars(noxfile)[name](session)
    return had, ran


def imports(command: tuple[str, ...]) -> Iterator[str]:
    """Yields code that imports what a command imports."""
    match command:
        case "python", "-m", "tests.docs.paper":
            yield "import tests.docs.paper"
            yield "from seustream.commands import bench"
            yield from (f"bench._load({name!r})" for name in bench.available())
        case "python", "-m", module, *_:
            yield f"import importlib; importlib.import_module({module!r})"
        case "python", file:
            yield f"sys.path.insert(0, {str(Path(file).parent)!r})"
            yield f"import runpy; runpy.run_path({file!r})"
        case "pytest", *arguments:
            arguments = ["--collect-only", "-qq", "-p", "xdist.plugin", *arguments, "-n", "0"]
            # Plugins of packages that are gone here would be imported because they are installed.
            yield "import os; os.environ['PYTEST_DISABLE_PLUGIN_AUTOLOAD'] = '1'"
            yield f"import pytest; assert not pytest.main({arguments!r})"
        case "seustream", "bench", *names:
            names = names or [
                n for n, path in bench.available().items() if not bench.said(path).get("LONG")
            ]
            yield "from seustream.commands import bench"
            yield from (f"bench._load({name!r})" for name in names)
        case (
            (
                "ruff"
                | "mypy"
                | "lint-imports"
                | "towncrier"
                | "pip"
                | "pip-audit"
                | "npm"
                | "mkdocs"
            ),
            *_,
        ):
            pass
        case _:
            raise AssertionError(f"what does it import? {command}")


def alike() -> dict[tuple[str, ...], tuple[set[str], list[tuple[str, ...]]]]:
    """Groups sessions that install the same; returns what is gone there, and the commands of all of
    them."""
    found: dict[frozenset[str], tuple[list[str], list[tuple[str, ...]]]] = {}
    for name in SESSIONS:
        if name != "tests":
            had, ran = steps(name)
            names, commands = found.setdefault(frozenset(EVERY - had - STAYS), ([], []))
            names.append(name)
            commands += ran
    return {tuple(names): (set(gone), commands) for gone, (names, commands) in found.items()}


ALIKE = alike()


@pytest.mark.parametrize("names", ALIKE, ids=" ".join)
def test_a_session_installs_what_it_imports(names: tuple[str, ...]) -> None:
    gone, commands = ALIKE[names]
    code = ["sys.path.insert(0, '.')"]
    for command in dict.fromkeys(commands):
        code += [f"print({command!r}, flush=True)", *imports(command)]
    done = installed("\n".join(code), ROOT, gone)
    assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-2000:]}"


def test_uv_is_brought_where_nox_has_none() -> None:
    said: list[tuple[str, ...]] = []
    session: Any = SimpleNamespace(
        venv_backend="venv",
        install=lambda *what: said.append(("pip", *what)),
        run_install=lambda *what: said.append(what),
    )
    noxfile.put(session, "-e", ".")
    assert said == [("pip", "uv"), ("uv", "pip", "install", "--quiet", "-e", ".")]


def test_an_extra_is_the_group_of_its_name() -> None:
    """A user installs the one, a developer the other; `rtl` is the group `sim`."""
    extras = noxfile.PROJECT["project"]["optional-dependencies"]
    for name in ("spark", "rtl", "fpga", "boards", "studio"):
        group = nox.project.dependency_groups(noxfile.PROJECT, {"rtl": "sim"}.get(name, name))
        assert set(map(Requirement, extras[name])) == set(map(Requirement, group)), name
    assert extras["all"] == ["seustream[spark,rtl,fpga,boards,studio]"]
