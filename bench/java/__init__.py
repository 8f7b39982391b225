"""Engines that are Java programs: Maven fetches what a program needs from Maven Central, `javac` compiles it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from seustream.errors import UserError


def check(who: str) -> None:
    """Raises an error if Java is not there, which says who needs it."""
    for program in ("java", "javac", "mvn"):
        if shutil.which(program) is None:
            raise UserError([f"{program} is not there"], hint=f"{who} Java 17 and Maven")


def compiled(pom: Path, sources: Iterable[Path], scratch: Path) -> str:
    """Compiles a program into a folder of its own; returns its class path."""
    jars, classes = scratch / "jars", scratch / "classes"
    classes.mkdir(parents=True)
    own = shutil.copy(pom, scratch)  # Maven writes beside it
    run(["mvn", "-q", "-B", "-f", own, "dependency:copy-dependencies", f"-DoutputDirectory={jars}"])
    run(["javac", "-nowarn", "-cp", f"{jars}/*", "-d", str(classes), *map(str, sources)])
    return f"{classes}:{jars}/*"


def version(pom: Path) -> str:
    """Returns the version of the first dependency of a program."""
    found = re.search(r"<dependency>.*?<version>(.*?)</version>", pom.read_text("utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def run(command: list[str]) -> str:
    """Runs a program; returns what it prints."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise UserError([f"{command[0]}: {done.stderr.strip() or done.stdout.strip()}"])
    return done.stdout
