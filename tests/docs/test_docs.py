"""The pages a reader follows: their commands run as typed, and print the output that is shown.

If EXPLAIN or a summary has changed on purpose, `python -m tests.docs.refresh` updates the pages.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.docs.blocks import ROOT, agrees, blocks, execute, outputs, sandbox
from tests.docs.figures import MEASURED, filled
from tests.docs.refresh import PATTERNS, PICTURES, picture
from tests.docs.site import links, slug

DOCS = ROOT / "docs"
BESIDE = [DOCS / "how-to" / name for name in ("join-across-sites.md", "watch-a-query.md")]
"""Pages whose commands need several machines or a browser; other tests run those commands."""
FOLLOWED = [
    *(DOCS / f"tutorial{name}.md" for name in ("", "-patterns", "-fpga")),
    DOCS / "reference" / "match-recognize.md",
    *sorted(set((DOCS / "how-to").glob("*.md")) - set(BESIDE)),
]
SHOWN = [*sorted((DOCS / "explanation").glob("*.md")), *BESIDE]
PAGES = [
    path
    for path in sorted([*DOCS.rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
    if "decisions" not in path.parts
]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", [*FOLLOWED, *SHOWN], ids=name_of)
def test_page_works_as_typed(path: Path, tmp_path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    environment = sandbox(tmp_path)
    assert outputs(page) or path in SHOWN, "a page to follow has something to type"
    for block, shown in outputs(page):
        printed = execute(block, tmp_path, environment)
        if shown is not None:
            assert agrees(shown.text, printed), f"not as shown:\n{block.text}\n{printed}"


def test_what_is_shown_agrees() -> None:
    assert agrees("a\nb\n", "a\nb\n\n")
    assert agrees("a\n…\nd\n", "a\nb\nc\nd\n")
    assert agrees("a\n…\n", "a\n")
    assert not agrees("a\nb\n", "a\n")
    assert not agrees("a\n…\nd\n", "a\nd e\n")


def test_blocks_are_found_in_lists_too() -> None:
    page = "1. x\n\n   ```sh\n   ls\n   ```\n\n```text\ny\n```\n"
    assert [(b.language, b.text) for b in blocks(page)] == [("sh", "ls\n"), ("text", "y\n")]


# --- all pages ----------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    for target in links(path.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        found = Path(os.path.normpath(path.parent / file)) if file else path
        assert found.exists(), f"{target} is not there"
        if anchor:
            assert anchor in anchors(found.read_text(encoding="utf-8")), f"no {anchor} in {file}"


def test_every_page_can_be_reached() -> None:
    reached, open_pages = set(), [DOCS / "index.md"]
    while open_pages:
        page = open_pages.pop()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        for target in links(page.read_text(encoding="utf-8")):
            file = target.partition("#")[0]
            if file and not re.match(r"[a-z]+:", file):
                open_pages.append(Path(os.path.normpath(page.parent / file)))
    mine = {path for path in PAGES if DOCS in path.parents}
    assert mine <= reached, f"no way to {mine - reached}"
    pictures = {path.name for path in (DOCS / "pictures").iterdir()}
    text = "".join(path.read_text(encoding="utf-8") for path in mine)
    assert all(f"pictures/{name}" in text for name in pictures)


@pytest.mark.parametrize("name", [*PICTURES, *PATTERNS])
def test_pictures_are_what_explain_draws(name: str) -> None:
    shown = (DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
    assert shown == picture(name)


@pytest.mark.parametrize("path", sorted((DOCS / "pictures").glob("*.svg")), ids=name_of)
def test_pictures_are_well_formed(path: Path) -> None:
    root = ElementTree.parse(path).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.find("{http://www.w3.org/2000/svg}title") is not None


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_pages_are_plain(path: Path) -> None:
    """A page begins with a heading, closes its blocks, and names nothing of the machine it was
    written on."""
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert text.count("```") % 2 == 0
    for local in ("/work", "/tmp", "/home", "localhost"):
        assert local not in text


def anchors(page: str) -> set[str]:
    return {slug(head) for head in re.findall(r"^#+ (.+)$", page, flags=re.MULTILINE)}


def test_glossary_is_in_order_and_names_a_thing_once() -> None:
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^\| (.+?) \| ", text, flags=re.MULTILINE)[1:]
    folded = [term.lower().replace("-", " ") for term in terms]
    assert folded == sorted(set(folded))


def test_published_ranges_are_as_measured() -> None:
    """The page on joins across sites repeats the findings of the last run of its benchmark."""
    found = json.loads((ROOT / "bench" / "results" / "smj.json").read_text())["remarks"]
    shown = " ".join((DOCS / "explanation" / "joins-across-sites.md").read_text().split())
    published = [remark for remark in found if "published" in remark]
    assert len(published) == 4
    for remark in published:
        assert remark in shown


@pytest.mark.parametrize("name", MEASURED)
def test_tables_of_figures_are_as_measured(name: str) -> None:
    page = (DOCS / name).read_text(encoding="utf-8")
    assert "<!-- end -->" in page
    assert "| --- |" in page
    assert filled(page) == page, "python -m tests.docs.figures"
