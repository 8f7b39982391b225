"""Builds the kernels in a checkout."""

from __future__ import annotations

import pytest

from seustream.engine import kernels
from seustream.engine.kernels.errors import KernelsMissing


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files from an earlier build stay."""
    before = {file: file.stat().st_mtime for file in kernels._HERE.glob("native.*")}
    monkeypatch.setattr(kernels, "_stale", lambda: True)
    monkeypatch.setenv("CC", "/no/such/compiler")
    monkeypatch.setenv("CXX", "/no/such/compiler")
    with pytest.raises(KernelsMissing, match="do not build") as raised:
        kernels._build()
    assert "C++ compiler (C++17)" in str(raised.value)
    assert "pip install -e ." in str(raised.value)
    assert {file: file.stat().st_mtime for file in kernels._HERE.glob("native.*")} == before


def test_what_is_built_is_not_older_than_its_sources() -> None:
    assert not kernels._stale()
