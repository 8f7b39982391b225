"""Notebooks show the outputs of their cells, and become pages of the site."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.docs.notebooks import FOLDER, as_page, run


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_puts_out(path: Path, tmp_path: Path) -> None:
    """`python -m tests.docs.notebooks` rewrites the outputs."""
    notebook = json.loads(path.read_text("utf-8"))
    assert (notebook["nbformat"], notebook["cells"][0]["cell_type"]) == (4, "markdown")
    for cell, outputs in run(notebook, tmp_path):
        assert cell["outputs"] == outputs, "".join(cell["source"])


def test_a_notebook_becomes_a_page() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# A title\n", "words"]},
        {
            "cell_type": "code",
            "source": ["1 + 1"],
            "outputs": [
                {"output_type": "stream", "text": ["said\n"]},
                {"output_type": "execute_result", "data": {"text/plain": ["2"]}},
                {"output_type": "execute_result", "data": {"text/html": ["<b>2</b>"]}},
            ],
        },
    ]
    assert as_page(json.dumps({"cells": cells})) == (
        "# A title\nwords\n\n```python\n1 + 1\n```\n\n```text\nsaid\n\n```\n\n```text\n2\n```\n\n"
        '<div class="output"><b>2</b></div>\n'
    )
