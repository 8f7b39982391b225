"""The wheel where only the wheel is: an empty folder and an environment made for it.

    python -m tests.wheel               README, tutorial, a user's own modules, what is not installed
    python -m tests.wheel --spark       also `seustream[spark]` and the scripts for it; Java 17

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

from tests.docs.blocks import ROOT, Block, agrees, fails_with, outputs

OWN = "raise SystemExit('a module of the user was imported in the place of ours')\n"
"""A user's `engine.py`, a name that anybody may use."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spark", action="store_true", help="also Spark, which needs Java 17")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="seustream-wheel-") as name:
        folder = Path(name)
        wheel = built(folder / "dist")
        check_content(wheel)
        environment = installed(wheel, folder / "venv", "[spark]" if arguments.spark else "")
        place = empty(folder / "tutorial")
        follow(place, environment, steps("docs/tutorial.md"))
        lacking(place, environment)
        readme, place = steps("README.md"), empty(folder / "readme")
        assert any(is_spark(block) for block, _ in readme), "the README has no script for Spark"
        follow(place, environment, [s for s in readme if arguments.spark or not is_spark(s[0])])
        if arguments.spark:
            rows = "".join(path.read_text() for path in (place / "lookups").glob("*.csv"))
            assert rows.count("10.0.0.7") == 2, rows
            page = [s for s in steps("docs/how-to/feed-from-spark.md") if is_spark(s[0])]
            follow(empty(folder / "spark"), environment, page)
            follow(empty(folder / "tutorial-spark"), environment, steps("docs/tutorial-spark.md"))
    print("the wheel is complete")
    return 0


def empty(place: Path) -> Path:
    """Makes a folder with nothing but modules of the user, under the names that ours have."""
    place.mkdir()
    for module in ("engine", "compiler", "hdl", "cosim"):
        (place / f"{module}.py").write_text(OWN)
    return place


def built(dist: Path) -> Path:
    """Builds the wheel from the source distribution."""
    command = [sys.executable, "-m", "build", "--outdir", str(dist), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-5000:]}{done.stderr[-5000:]}"
    (wheel,) = dist.glob("*.whl")
    return wheel


def check_content(wheel: Path) -> None:
    """Checks that there is nothing but the package, what Spark looks for, and the licence."""
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
    """Makes a fresh environment with the wheel; returns the variables to run in it."""
    gone = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYSPARK_PYTHON")
    found = {name: value for name, value in os.environ.items() if name not in gone}
    found["PATH"] = os.pathsep.join((str(venv / "bin"), found.get("PATH", "")))
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    wanted = ["python", "-m", "pip", "install", "--quiet", f"{wheel}{extra}", "duckdb"]
    subprocess.run(wanted, check=True, env=found)
    return found


def steps(page: str) -> list[tuple[Block, Block | None]]:
    """Returns the blocks of a page, without those that install and those that need a checkout."""
    found = outputs((ROOT / page).read_text(encoding="utf-8"))
    return [s for s in found if not any(word in s[0].text for word in ("pip install", "nox -s"))]


def is_spark(block: Block) -> bool:
    return "sql_streams" in block.text


def follow(
    place: Path, environment: dict[str, str], steps: list[tuple[Block, Block | None]]
) -> None:
    """Runs blocks; Python as a script in this folder, beside the user's own modules."""
    assert steps
    for block, shown in steps:
        (place / "script.py").write_text(block.text)
        shell = ("bash", "-euo", "pipefail", "-c", block.text)
        command = shell if block.language == "sh" else ("python", "script.py")
        printed = run(place, environment, *command, ok=fails_with(block))
        if shown is not None:
            assert agrees(shown.text, printed), f"not as shown:\n{block.text}\n{printed}"


def lacking(place: Path, environment: dict[str, str]) -> None:
    """Checks that what is not installed is named, with what to install."""
    for arguments, wanted in (
        (("--backend", "verilated"), 'pip install "seustream[rtl]"'),
        (("--backend", "serial:///dev/null"), 'pip install "seustream[boards]"'),
    ):
        given = ("--input", "orders=orders.csv", "--input", "payments=payments.csv", *arguments)
        said = run(place, environment, "seustream", "run", "shop.xsql", *given, ok=2)
        assert wanted in said, said


def run(place: Path, environment: dict[str, str], *command: str, ok: int | None = 0) -> str:
    """Runs a command in a folder; returns what it prints. `ok` is the status it must have."""
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
