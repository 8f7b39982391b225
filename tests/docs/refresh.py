"""Brings what the pages show up to date: `python -m tests.docs.refresh`.

Runs every page, rewrites the `text` blocks that differ (not those with `…`) and the tables of
measured figures, and draws the pictures anew. What changed is for a person to read: `git diff docs`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.explain import explain, shown
from seustream.compiler.language.types import DOUBLE, VARCHAR
from seustream.compiler.pattern.statements import compile_pattern
from seustream.compiler.pipeline import Options, compile_text
from seustream.engine.pattern.explain import pattern
from tests.docs import figures, functions
from tests.docs.blocks import ROOT, run_page

PICTURES = {
    "routes": ("cost", None),
    "q7-cost": ("cost", "q7"),
    "q7-thesis": ("thesis", "q7"),
}
"""Pictures that EXPLAIN draws of the eight queries: plan, query. All others but those of the
pattern are drawn by hand."""

PATTERNS = {"pattern-automaton": "automaton", "pattern-lists": "lists"}
PATTERN = (
    "PATTERN A; !N; B+ k; C WHERE a.price > 60 AND k[i].price > k[i-1].price AND c.price < a.price"
    " WITHIN 10 min USING NEXT RETURN *"
)
"""Pictures that EXPLAIN draws of this pattern, by stage."""


def picture(name: str) -> str:
    if name in PATTERNS:
        stock = Stream("stock", (Column("type", VARCHAR), Column("price", DOUBLE)))
        facts = pattern(compile_pattern(PATTERN, stock))
        return shown(getattr(facts, PATTERNS[name]).diagram, "svg") + "\n"
    plan, query = PICTURES[name]
    path = Path("examples/eight/eight.xsql")
    text = (ROOT / path).read_text(encoding="utf-8")
    compiled = compile_text(text, str(path), Options(plan=plan))
    return explain(compiled, None, "svg", query=query) + "\n"


def main() -> None:
    docs = ROOT / "docs"
    for name in (*PICTURES, *PATTERNS):
        (docs / "pictures" / f"{name}.svg").write_text(picture(name), encoding="utf-8")
    names = ("", "-patterns", "-fpga")
    pages = [*(docs / f"tutorial{name}.md" for name in names), *(docs / "how-to").glob("*.md")]
    for path in (*pages, *(docs / "explanation").glob("*.md")):
        with tempfile.TemporaryDirectory() as directory:
            path.write_text(run_page(path, Path(directory)), encoding="utf-8")
        print(path.relative_to(ROOT))
    (docs / "reference" / "functions.md").write_text(functions.text(), encoding="utf-8")
    figures.main()


if __name__ == "__main__":
    main()
