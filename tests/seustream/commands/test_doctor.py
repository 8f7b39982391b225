"""`seustream doctor`: reports what works and what is missing; a missing part is no failure."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from seustream.cli import main
from seustream.commands import doctor
from seustream.hdl.device import Batch, Results


def test_doctor(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    out = capfd.readouterr().out
    assert out.endswith("ready\n")
    assert "models agree" in out


@pytest.mark.parametrize("broken", [False, True])
def test_a_missing_part_is_no_failure_and_a_broken_one_is(
    broken: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def differ() -> str:
        raise RuntimeError("golden and instruction-level model differ")

    monkeypatch.setattr(doctor, "_models_agree", differ if broken else lambda: "both")
    monkeypatch.setattr(doctor, "_rtl", lambda: doctor.Finding("RTL", None, "needs amaranth"))
    monkeypatch.setattr(doctor, "_program", lambda *of: doctor.Finding("Java", None, "not found"))
    assert main(["doctor"]) == (2 if broken else 0)
    lines = capfd.readouterr().out.splitlines()
    assert "   -  Java" in "\n".join(lines)
    assert lines[-1] == ("1 problems" if broken else "ready")
    (check,) = (line for line in lines if "models agree" in line)
    assert check.split()[0] == ("FAIL" if broken else "ok")


def test_a_library_that_is_not_there_says_how_to_get_it() -> None:
    found = doctor._library("no_such_library")
    assert found.ok is False
    assert "pip install no_such_library" in found.detail
    assert doctor._part("no-such-part", "for nothing").ok is None


_COLUMNS = ("queries", "newest", "oldest", "sequences")


@pytest.mark.parametrize("left", [slice(1, None), slice(0)])
def test_models_that_differ_are_found(monkeypatch: pytest.MonkeyPatch, left: slice) -> None:
    class Wrong(doctor.GoldenDevice):
        def push(self, batch: Batch) -> Results:
            found = super().push(batch)
            fewer = {name: getattr(found, name)[left] for name in _COLUMNS}
            return dataclasses.replace(found, **fewer)

    assert "both plans" in doctor._models_agree()
    monkeypatch.setattr(doctor, "GoldenDevice", Wrong)
    with pytest.raises(RuntimeError, match="differ"):
        doctor._models_agree()


def test_a_program_says_its_version_without_who_packaged_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "cxx"
    compiler.write_text("#!/bin/sh\necho 'c++ (Some Distribution 12.2.0-14+deb12u1) 12.2.0'\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    found = doctor._program("C++ compiler", ("cxx",), "for the RTL")
    assert found == doctor.Finding("C++ compiler", True, "c++ 12.2.0 (for the RTL)")
