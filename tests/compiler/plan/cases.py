"""Fixtures: titled before/after pairs, one file for each pass, and the streams they use.

# title
before  a condition, or statements
after   what the pass makes of it, further lines indented
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from seustream.compiler.pipeline import Compilation, Options, compile_text

STREAMS = """\
CREATE STREAM R (a int, b int, c int, n int NOT NULL, m int NOT NULL, s varchar(20), x real,
  y double precision, g bigint, day date, hour time, moment timestamp, ok boolean);
CREATE STREAM S (d int, e int, k int NOT NULL, s varchar(20), x real,
  y double precision, g bigint, day date, hour time, moment timestamp, ok boolean);
CREATE STREAM T (f int, g int);
CREATE STREAM U (h int, i int);
"""

FOLDER = Path(__file__).with_name("fixtures")


class Case(NamedTuple):
    title: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    def __str__(self) -> str:
        return self.title


def cases(name: str) -> list[Case]:
    found: list[Case] = []
    title, parts, current = "", {"before": [], "after": []}, []  # type: ignore[var-annotated]
    for line in [*FOLDER.joinpath(f"{name}.txt").read_text("utf-8").splitlines(), "# "]:
        if line.startswith("# "):
            if title:
                found.append(Case(title, tuple(parts["before"]), tuple(parts["after"])))
            title, parts = line[2:], {"before": [], "after": []}
        elif line.startswith(("before ", "after ")):
            current = parts[line.split()[0]]
            current.append(line[8:])
        elif line:
            assert line.startswith(" " * 8), f"{name}.txt: {line}"
            current.append(line[8:])
    assert len({case.title for case in found}) == len(found)
    return found


def compiled(
    condition: str,
    streams: str = "R, S, T",
    window: str = "RANGE 100",
    options: Options | None = None,
    stop_after: str = "split",
) -> Compilation:
    """Compiles one query with this condition, or without a condition if it is empty."""
    where = f"WHERE {condition} " if condition else ""
    text = f"{STREAMS}SELECT * FROM {streams} {where}WINDOW {window}"
    return compile_text(text, options=options, stop_after=stop_after)


def compiled_all(
    queries: str, options: Options | None = None, stop_after: str = "split"
) -> Compilation:
    """Compiles statements over the streams of the fixtures."""
    return compile_text(STREAMS + queries, options=options, stop_after=stop_after)
