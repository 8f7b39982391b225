"""The wheel where only the wheel is: an empty folder and an environment made for it.

    python -m tests.wheel               README, tutorial, a user's own modules, what is not installed
    python -m tests.wheel --spark       also `seustream[spark]` and the script of the README

Builds the source distribution, the wheel out of that, and installs this with what the tutorial takes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tests.docs.blocks import ROOT, Block, agrees, blocks, outputs

OWN = "raise SystemExit('a module of the user was imported in the place of ours')\n"
"""A user's `engine.py`, as anybody may have one."""
FRAMES = """
import seustream as ss
found = ss.run("SELECT a FROM R WHERE a > 1 WINDOW NOW", R={"ts": [1, 2], "a": [1, 2]})
assert found["q0"].rows() == [(2, 2, 2)], found["q0"].rows()
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spark", action="store_true", help="also Spark, which needs Java 17")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="seustream-wheel-") as name:
        folder = Path(name)
        wheel = built(folder / "dist")
        check_content(wheel)
        environment = installed(wheel, folder / "venv", "[spark]" if arguments.spark else "")
        place = folder / "empty"
        place.mkdir()
        for module in ("engine", "compiler", "hdl", "cosim"):
            (place / f"{module}.py").write_text(OWN)
        run(place, environment, "python", "-c", FRAMES)
        follow(place, environment, tutorial())
        lacking(place, environment)
        if arguments.spark:
            spark(place, environment)
    print("the wheel is complete")
    return 0


def built(dist: Path) -> Path:
    """The wheel, made of the source distribution."""
    subprocess.run([sys.executable, "-m", "build", "--outdir", dist, ROOT], check=True)
    (wheel,) = dist.glob("*.whl")
    return wheel


def check_content(wheel: Path) -> None:
    """Nothing but the package, what Spark looks for, and the licence."""
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
        top = next(name for name in names if name.endswith("dist-info/top_level.txt"))
        assert content.read(top).decode().split() == ["pyspark_seustream", "seustream"]
    assert any(name.endswith("licenses/LICENSE") for name in names), "no licence"
    assert {name.split("/")[0] for name in names} - {top.split("/")[0]} == {
        "pyspark_seustream.py",
        "seustream",
    }
    data = [path for suffix in ("*.lark", "py.typed") for path in (ROOT / "seustream").glob(suffix)]
    data += [path for room in ("compiler", "hdl") for path in (ROOT / room).rglob("*.lark")]
    lost = {path.name for path in data} - {Path(name).name for name in names}
    assert data, "no data"
    assert not lost, lost


def installed(wheel: Path, venv: Path, extra: str) -> dict[str, str]:
    """A fresh environment with the wheel; gives the variables to run in it."""
    gone = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYSPARK_PYTHON")
    found = {name: value for name, value in os.environ.items() if name not in gone}
    found["PATH"] = os.pathsep.join((str(venv / "bin"), found.get("PATH", "")))
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    wanted = ["python", "-m", "pip", "install", "--quiet", f"{wheel}{extra}", "duckdb"]
    subprocess.run(wanted, check=True, env=found)
    return found


def tutorial() -> list[tuple[Block, Block | None]]:
    """The blocks of the tutorial, without the installation."""
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    steps = [step for step in outputs(page) if "pip install" not in step[0].text]
    assert len(steps) > 5
    return steps


def follow(
    place: Path, environment: dict[str, str], steps: list[tuple[Block, Block | None]]
) -> None:
    for block, shown in steps:
        printed = run(place, environment, "bash", "-euo", "pipefail", "-c", block.text, ok=None)
        if shown is not None:
            assert agrees(shown.text, printed), f"not as shown:\n{block.text}\n{printed}"


def lacking(place: Path, environment: dict[str, str]) -> None:
    """What is not installed is named, with what to install."""
    for arguments, wanted in (
        (("--backend", "verilated"), 'pip install "seustream[rtl]"'),
        (("--backend", "serial:///dev/null"), 'pip install "seustream[boards]"'),
    ):
        given = ("--input", "orders=orders.csv", "--input", "payments=payments.csv", *arguments)
        said = run(place, environment, "seustream", "run", "shop.xsql", *given, ok=2)
        assert wanted in said, said


def spark(place: Path, environment: dict[str, str]) -> None:
    """The script of the how-to page."""
    page = (ROOT / "docs" / "how-to" / "feed-from-spark.md").read_text(encoding="utf-8")
    follow(place, environment, [step for step in outputs(page) if "sql_streams" in step[0].text])
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert any("sql_streams" in block.text for block in blocks(readme))


def run(place: Path, environment: dict[str, str], *command: str, ok: int | None = 0) -> str:
    """Runs a command there; gives what it prints. `ok` is the status it must have."""
    done = subprocess.run(
        command,
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    assert ok is None or done.returncode == ok, f"{command}\n{done.stdout}"
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
