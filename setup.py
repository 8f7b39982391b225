"""Builds the compiled kernels; everything else about the package is in `pyproject.toml`."""

from __future__ import annotations

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


setup(
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
