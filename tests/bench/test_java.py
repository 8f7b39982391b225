"""What is said of Java and of the engines that need it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import java, peers
from seustream.errors import UserError


def test_a_program_that_is_missing_and_who_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None if name == "mvn" else name)
    with pytest.raises(UserError, match="mvn is not there") as error:
        java.check("Flink needs")
    assert error.value.hint == "Flink needs Java 17 and Maven"


def test_the_version_of_an_engine_is_that_of_its_first_dependency(tmp_path: Path) -> None:
    pom = tmp_path / "pom.xml"
    one = "<dependency><artifactId>{}</artifactId><version>{}</version></dependency>\n"
    head = "<project><version>1</version>\n<dependencies>"
    pom.write_text(head + one.format("it", "7.8.9") + one.format("log", "1.2"))
    assert java.version(pom) == "7.8.9"
    assert all(java.version(peers._pom(part)) for part in peers._POMS)


def test_a_program_that_fails_says_why() -> None:
    assert java.run(["echo", "found"]) == "found\n"
    with pytest.raises(UserError, match=r"sh: no such topic"):
        java.run(["sh", "-c", "echo no such topic >&2; exit 1"])
