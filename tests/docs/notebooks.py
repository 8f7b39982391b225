"""The notebooks of the docs: run, compared, brought up to date, and turned into pages.

    python -m tests.docs.notebooks      runs them anew and writes their outputs

A cell is run as a notebook runs it: what its last expression gives is shown.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.docs.blocks import ROOT

FOLDER = ROOT / "docs" / "notebooks"
Cell = dict[str, Any]


def run(notebook: dict[str, Any], place: Path) -> Iterator[tuple[Cell, list[dict[str, Any]]]]:
    """Yields the code cells with their present outputs; runs them in a folder of their own."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(place):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                yield cell, _outputs("".join(cell["source"]), names)


def _outputs(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if last else None
    found: list[dict[str, Any]] = []
    if text := printed.getvalue():
        found.append({"output_type": "stream", "name": "stdout", "text": _lines(text)})
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        for kind, method in (("text/html", "_repr_html_"), ("image/svg+xml", "_repr_svg_")):
            if hasattr(value, method):
                data[kind] = _lines(getattr(value, method)())
        found.append(
            {"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data}
        )
    return found


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def as_page(text: str) -> str:
    """Returns a notebook as Markdown."""
    out = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            out.append(source)
            continue
        out.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            shown = data.get("image/svg+xml") or data.get("text/html")
            if shown:
                out.append(f'<div class="output">{"".join(shown)}</div>')
            else:
                out.append(f"```text\n{''.join(output.get('text') or data['text/plain'])}\n```")
    return "\n\n".join(out) + "\n"


def main() -> None:
    import tempfile

    for path in sorted(FOLDER.glob("*.ipynb")):
        notebook = json.loads(path.read_text("utf-8"))
        with tempfile.TemporaryDirectory() as place:
            for cell, outputs in run(notebook, Path(place)):
                cell["outputs"] = outputs
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
        print(os.path.relpath(path, ROOT))


if __name__ == "__main__":
    main()
