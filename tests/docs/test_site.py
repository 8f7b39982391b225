"""The pages as a site: navigation, links, files beside them."""

from __future__ import annotations

import pytest

from tests.docs.blocks import ROOT
from tests.docs.site import beside, fenced, moved, navigation, place, slug


def test_navigation_is_the_first_page() -> None:
    index = "# X\n## Where to begin\n- [a](a.md)\n## Learn\n- [first\n  steps](a.md): words\n- [b](x/b.ipynb)\n"
    assert navigation(index) == [
        {"Home": "index.md"},
        {"Learn": [{"First steps": "a.md"}, {"B": "x/b.md"}]},
    ]
    real = navigation((ROOT / "docs" / "index.md").read_text("utf-8"))
    assert [next(iter(part)) for part in real] == [
        "Home", "Learn", "Do", "Understand", "Look up", "Examples",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "target", "wanted"),
    [
        ("index.md", "how-to/x.md", "how-to/x.md"),
        ("how-to/x.md", "../../examples/eight/README.md", "beside/examples/eight/README.md"),
        ("beside/examples/eight/README.md", "eight.xsql", "beside/examples/eight/eight.xsql"),
        ("beside/examples/eight/README.md", "../../docs/tutorial.md", "tutorial.md"),
    ],
)
def test_places(source: str, target: str, wanted: str) -> None:
    assert place(source, target) == wanted


def test_links_are_moved_and_code_is_left() -> None:
    page = "[a](../../examples/e.md#x) [b](https://x/y.md)\n```\n[c](../../d.md)\n```\n"
    assert moved("how-to/x.md", page) == (
        "[a](../beside/examples/e.md#x) [b](https://x/y.md)\n```\n[c](../../d.md)\n```\n"
    )


def test_what_lies_beside_is_there() -> None:
    found = beside()
    assert "beside/examples/eight/README.md" in found
    assert "beside/bench/results/engines-length.svg" in found
    assert slug("Coming from Flink & SQL") == "coming-from-flink--sql"


def test_examples_of_docstrings_are_code() -> None:
    assert fenced("Adds.\n\n>>> 1 + 1\n2\n\nMore.\n") == (
        "Adds.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore.\n"
    )
