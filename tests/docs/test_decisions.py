"""Each decision has a number, a date, a status, the parts of the template, and a row in the
index."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT

FOLDER = ROOT / "docs" / "decisions"
PAGES = [page for page in sorted(FOLDER.glob("0*.md")) if page.stem != "0000-template"]
HEAD = re.compile(
    r"# (?P<number>\d{4}) (?P<title>.+)\n\n"
    r"\*\*Date\.\*\* (?P<date>\d{4}-\d\d-\d\d)\. \*\*Status\.\*\* (?P<status>(?:.|\n)+?)\.\n\n"
)
STATUS = re.compile(r"Accepted|Replaced by \[")


def head(page: Path) -> re.Match[str]:
    found = HEAD.match(page.read_text(encoding="utf-8"))
    assert found, f"{page.name}: want '# NNNN Title' and '**Date.** … **Status.** ….' below"
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem[:4])
def test_a_decision_says_when_it_was_taken_and_how_it_stands(page: Path) -> None:
    found, text = head(page), page.read_text(encoding="utf-8")
    assert page.name.startswith(f"{found['number']}-")
    assert STATUS.match(found["status"])
    assert [part for part in ("Context", "Decision") if f"**{part}.**" not in text] == []


def test_the_index_repeats_title_date_and_status_of_each() -> None:
    want = []
    for page in PAGES:
        found = head(page)
        status = " ".join(found["status"].split())
        status = status[0].lower() + status[1:]
        link = f"[{found['number']}]({page.name})"
        want.append(f"| {link} | {found['title']} | {found['date']} | {status} |")
    index = (FOLDER / "index.md").read_text(encoding="utf-8")
    assert [line for line in index.splitlines() if line.startswith("| [")] == want


@pytest.mark.parametrize("page", [*PAGES, FOLDER / "index.md"], ids=lambda page: page.stem[:5])
def test_links_of_decisions_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)[^)]*\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
