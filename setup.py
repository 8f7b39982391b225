"""Builds the compiled kernels, takes the version from the tag, and the addresses of the project from the workflow
that releases it; everything else about the package is in `pyproject.toml`. (setuptools-scm would list the links of `seustream/` as files, which no wheel can hold.)"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

KERNELS = Path("seustream", "engine", "kernels")
"""Sources and result. `setup` wants paths from the root, with forward slashes."""

MISSING = """\

the kernels of the engine want a C++ compiler (C++17) and the headers of Python {version}
  hint: install them, for example: apt-get install g++ python3-dev, or xcode-select --install
"""


class BuildKernels(build_ext):
    """Says what to install where the kernels can not be built."""

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:
            version = ".".join(map(str, sys.version_info[:2]))
            raise SystemExit(f"{error}\n{MISSING.format(version=version)}") from None


def version() -> str:
    """Of the tag, as `v0.2.0`, and what came after it; of a source distribution the one it was given."""
    if (given := Path("PKG-INFO")).exists():
        found = re.search(r"^Version: (\S+)$", given.read_text(encoding="utf-8"), re.MULTILINE)
        assert found is not None
        return found[1]
    command = ["git", "describe", "--tags", "--long", "--match", "v[0-9]*"]
    try:
        assert Path(".git").exists()
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (AssertionError, OSError, subprocess.CalledProcessError):
        return "0.1.0"
    tag, count, commit = done.stdout.strip().removeprefix("v").rsplit("-", 2)
    return tag if count == "0" else f"{tag}.post{count}+{commit}"


def addresses() -> dict[str, str]:
    """Pages of the repository in which a workflow makes the release; none elsewhere, for a clone does
    not know where it belongs. Those of a source distribution are as given."""
    if (given := Path("PKG-INFO")).exists():
        text = given.read_text(encoding="utf-8")
        return dict(re.findall(r"^Project-URL: (.+?), (\S+)$", text, re.MULTILINE))
    server, name = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    if not server or not name:
        return {}
    home = f"{server}/{name}"
    return {
        "Source": home,
        "Documentation": f"{home}/blob/main/docs/index.md",
        "Issues": f"{home}/issues",
        "Changelog": f"{home}/blob/main/CHANGELOG.md",
    }


Path("seustream", "version.txt").write_text(version(), encoding="utf-8")
setup(
    version=version(),
    project_urls=addresses(),
    ext_modules=[
        Extension(
            "seustream.engine.kernels.native",
            [(KERNELS / "native.cpp").as_posix()],
            depends=[path.as_posix() for path in sorted(KERNELS.glob("*.h"))],
            extra_compile_args=["/std:c++17", "/O2"]
            if sys.platform == "win32"
            else ["-std=c++17", "-O3", "-fvisibility=hidden", "-g0"],
            py_limited_api=True,
        )
    ],
    # One wheel for each platform serves every Python from 3.11 on.
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
    cmdclass={"build_ext": BuildKernels},
)
