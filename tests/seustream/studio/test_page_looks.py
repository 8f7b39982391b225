"""The page in detail: every link of the eight-query set, folded pictures, intervals, files in a
link, signals."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from seustream.compiler.explain.provenance import provenance
from seustream.studio.compiled import Settings, compilation
from tests.docs.blocks import ROOT
from tests.seustream.studio.browser import chromium, needs_chromium, opened, studio

__all__ = ["chromium"]  # a fixture
pytestmark = [needs_chromium, pytest.mark.campaign]
EIGHT = (ROOT / "examples" / "eight" / "eight.xsql").read_text(encoding="utf-8")

WALK = """async () => {
  const lit = {};
  for (const part of document.querySelectorAll("[data-part]")) {
    part.dispatchEvent(new MouseEvent("mouseenter"));
    await new Promise((done) => setTimeout(done)); // what the page does with it
    lit[part.dataset.part] = [
      [...document.querySelectorAll(".part.lit")].map((one) => one.dataset.part),
      [...document.querySelectorAll(".editor .lit")].map((one) => one.textContent).join("\\n"),
    ];
    part.dispatchEvent(new MouseEvent("mouseleave"));
  }
  return lit;
}"""


@pytest.mark.parametrize("plan", ["cost", "thesis"])
def test_every_part_lights_all_it_came_from_and_became(chromium: Any, plan: str) -> None:
    """The page highlights what the compiler links, from each part of the eight-query set; some of
    it is text."""
    made = provenance(compilation(EIGHT, Settings(plan=plan)))
    with studio(str(ROOT / "examples/eight/eight.xsql")) as link, opened(chromium, link) as page:
        page.wait_for_selector("[data-part='factor:1']")
        page.select_option("text=Plan >> select", plan)
        page.wait_for_function(
            "(count) => document.querySelectorAll('[data-part]').length === count",
            arg=len(made.parts),
        )
        found = page.evaluate(WALK)
    assert set(found) == set(made.parts)
    for part, (lit, text) in found.items():
        expected = {part, *made.sources(part), *made.products(part)}
        assert set(lit) == expected, part
        assert text, f"{part} lights no text"


def test_boxes_fold_and_unfold(chromium: Any) -> None:
    """By mouse and by keyboard: parts that are reached only through a box fold with it."""
    seen = "() => [...document.querySelector('.picture > div').shadowRoot.querySelectorAll('g[role=button], g[id^=query]')].filter((g) => !g.classList.contains('hidden')).map((g) => g.id)"
    with studio(str(ROOT / "examples/eight/eight.xsql")) as link, opened(chromium, link) as page:
        page.wait_for_selector("[data-part='factor:1']")
        page.select_option("section[aria-label=Compilation] select", "picture of tree")
        root = page.wait_for_selector(".picture #node-3")
        every = set(page.evaluate(seen))
        below = {one for one in every if one.startswith("node-3-")}
        assert below
        root.click()
        page.wait_for_selector(".picture #node-3.folded")
        assert set(page.evaluate(seen)) == every - below
        root.focus()
        page.keyboard.press("Enter")
        assert set(page.evaluate(seen)) == every
        # With all streams folded no route is left, and so no query.
        page.select_option("section[aria-label=Compilation] select", "picture of routes")
        for stream in range(3):
            page.wait_for_selector(f".picture #tag-{stream}").click()
        assert set(page.evaluate(seen)) == {"tag-0", "tag-1", "tag-2"}
        page.click("text=Unfold all")
        assert len(page.evaluate(seen)) > 10


def forth_and_back(page: Any, steps: int) -> None:
    """Stepping back shows the same as stepping forward did."""
    states = []
    for _ in range(steps):
        states.append(page.inner_text("main"))
        page.keyboard.press("ArrowRight")
    assert len(set(states)) > steps // 2
    for before in reversed(states):
        page.keyboard.press("ArrowLeft")
        assert page.inner_text("main") == before


def test_intervals_on_every_edge(chromium: Any) -> None:
    with studio() as link, opened(chromium, link) as page:
        page.wait_for_selector("[data-part='factor:1']")
        page.select_option("text=Open >> select", "intervals")
        page.wait_for_selector("option:has-text('picture of busy')", state="attached")
        page.click("nav >> text=Intervals")
        page.click("button:text-is('Run')")
        page.wait_for_selector("[data-testid=moment]")
        forth_and_back(page, 20)
        page.click("[aria-label='To the end']")
        edges = page.query_selector_all("[data-edge]")
        ends = [one.get_attribute("data-edge") for one in edges]
        assert ends == ["0>1", "2>3", "1>4", "3>4", "4>5", "5>6", "6>-1"]
        assert all(one.query_selector(".interval") for one in edges)
        assert page.inner_text("[data-testid=moment]").startswith("the end")
        shown = page.inner_text("main")
        page.click("text=Share")
        shared = page.wait_for_selector("[data-testid=link]").input_value()
    with studio(shared) as link, opened(chromium, link) as page:
        page.wait_for_selector("[data-testid=moment]")
        assert page.inner_text("main") == shown


def test_a_link_has_the_files(chromium: Any, tmp_path: Path) -> None:
    """Dropped rows are in the link; of a file that is too long it has only the name, and it says
    so."""
    chance = random.Random(1)
    long = "ts,a\n" + "".join(f"{n},{chance.randrange(10**9)}\n" for n in range(20_000))
    (tmp_path / "q.xsql").write_text(
        "REGISTER QUERY q AS SELECT * FROM R, S WHERE R.a = S.d WINDOW RANGE 20;", encoding="utf-8"
    )
    given = {"R.csv": "ts,a\n1,7\n3,8\n", "S.csv": "ts,d\n2,7\n4,8\n"}
    links = []
    with studio(str(tmp_path / "q.xsql")) as link, opened(chromium, link) as page:
        for files in (given, {**given, "R.csv": long}):
            page.wait_for_selector("input[type=file]")
            page.set_input_files(
                "input[type=file]",
                [
                    {"name": name, "mimeType": "text/csv", "buffer": text.encode()}
                    for name, text in files.items()
                ],
            )
            page.wait_for_selector("[data-part='factor:1']")
            if not links:
                page.click("nav >> text=Machine")
                page.click("button:text-is('Run')")
                page.wait_for_selector("[data-testid=step]")
                page.keyboard.press("ArrowRight")
                shown = page.inner_text(".machine")
            page.click("text=Share")
            page.wait_for_function(
                "(old) => document.querySelector('[data-testid=link]')?.value !== old",
                arg=links[-1] if links else "",
            )
            links.append(page.input_value("[data-testid=link]"))
            page.click("nav >> text=Query")
    with studio(links[0]) as link, opened(chromium, link) as page:
        page.wait_for_selector("[data-testid=step]")
        assert page.inner_text(".machine") == shown
        assert "q: 2 rows" in page.inner_text("section[aria-label='All results']")
    with studio(links[1]) as link, opened(chromium, link, refused=True) as page:
        assert "too long for a link" in page.wait_for_selector("[role=alert]").inner_text()
    assert max(map(len, links)) < 100_100


def test_the_rtl_with_its_signals(chromium: Any) -> None:
    """Compares the RTL with each model: the events are the same, and the waveform's cursor is the
    machine's."""
    with studio() as link, opened(chromium, link) as page:
        page.wait_for_selector("[data-part='factor:1']")
        page.select_option("text=Open >> select", "join")
        page.select_option("text=Configuration >> select", "tiny")
        page.wait_for_selector("[data-part='query:settled']")
        page.click("nav >> text=Machine")
        page.fill("text=Rows >> input", "60")
        page.select_option("text=Device >> select", "verilated")
        page.check("text=record signals")
        for other in ("golden", "iss"):
            page.select_option("text=beside >> select", other)
            page.click("button:text-is('Run')")
            page.wait_for_selector(f"p:has-text('verilated and {other}')", timeout=580_000)
            assert "every step is the same" in page.inner_text("[data-testid=differences]")
        for _ in range(60):
            page.keyboard.press("ArrowRight")
            if page.query_selector("section.results .chip"):
                break
        waves = page.wait_for_selector("section[aria-label=Waveform]")
        assert len(waves.query_selector_all("svg path, svg rect")) > 5
        page.select_option("text=Step by >> select", "clock cycle")
        step, cycles = page.inner_text("[data-testid=step]"), []
        while True:
            page.keyboard.press("ArrowRight")
            position = page.inner_text("[data-testid=step]")
            if not position.startswith(f"{step},"):
                page.keyboard.press("ArrowLeft")
                break
            cycles.append(int(page.inner_text("[data-testid=cycle]")))
        assert len(cycles) > 1
        assert cycles == sorted(set(cycles)), cycles
        assert page.query_selector(".bits .joined")
        # The cursor moves the machine to the stop that is being executed in that cycle.
        slider = page.locator("section[aria-label=Waveform] input[type=range]")
        slider.fill(str(cycles[0]))
        assert page.inner_text("[data-testid=cycle]") == str(cycles[0])
        position = page.inner_text("[data-testid=step]")
        slider.fill(str(cycles[-1]))
        assert page.inner_text("[data-testid=step]") != position
        forth_and_back(page, 12)
