"""The studio's page in a browser, and the bundle it consists of."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from pathlib import Path
from typing import Any

from seustream.cosim.bridge.metrics import METRICS
from seustream.studio.compiled import Settings, compilation
from seustream.studio.data import rows
from tests.docs.blocks import ROOT
from tests.seustream.studio.browser import chromium, needs_chromium, opened, studio, write

__all__ = ["chromium"]  # a fixture

TEXT = """CREATE STREAM R (a int, b int);
CREATE STREAM S (d int, e int);
REGISTER QUERY q AS SELECT * FROM R, S WHERE R.a = S.d WINDOW RANGE 20;
"""


def test_the_bundle_is_made_of_the_sources() -> None:
    """After a change in studio/, `nox -s studio` must rebuild the page."""
    studio = ROOT / "studio"
    names = [f"src/{one.name}" for one in (studio / "src").iterdir()]
    digest = hashlib.sha256()
    for name in sorted([*names, "index.html", "package-lock.json"]):
        digest.update(name.encode() + b"\0" + (studio / name).read_bytes())
    stamp = ROOT / "seustream" / "studio" / "page" / "sources.sha256"
    assert stamp.read_text(encoding="utf-8").strip() == digest.hexdigest(), "run nox -s studio"


def test_the_bundle_is_small() -> None:
    """It excludes Perspective, which only the live table loads."""
    page = ROOT / "seustream" / "studio" / "page"
    first = [one for one in page.iterdir() if not one.name.startswith("perspective")]
    assert sum(one.stat().st_size for one in first) < 3_000_000
    assert "perspective" not in (page / "index.html").read_text(encoding="utf-8")


def test_charts_are_of_what_a_bridge_says() -> None:
    """A chart of a value that no bridge reports would never be seen."""
    text = (ROOT / "studio" / "src" / "Live.svelte").read_text(encoding="utf-8")
    drawn = re.findall(r'\["[^"]+", "(\w+)", "(?:rate|of)"\]', text)
    made = re.findall(r"now\.status\.(\w+) =", text)
    assert drawn
    assert set(drawn) <= {*METRICS, *made}


@needs_chromium
def test_a_query_is_typed_mended_run_and_shared(chromium: Any) -> None:
    with studio() as link, opened(chromium, link) as page:
        page.wait_for_selector("[data-part='factor:1']")
        write(page, TEXT.replace("S.d", "S.dd"))
        problem = page.wait_for_selector("ul.problems li")
        assert problem.inner_text() == "3:54 stream S has no column dd\ndid you mean d?"
        write(page, TEXT)
        page.wait_for_selector("ul.problems li", state="detached")

        # Pointing at a part highlights everything made from it, and its text.
        page.hover("[data-part='factor:1']")
        lit = {one.get_attribute("data-part") for one in page.query_selector_all(".part.lit")}
        assert {"query:q", "factor:1"} <= lit
        assert any(one.startswith("instruction:") for one in lit)
        assert page.inner_text(".editor .lit") == "R.a = S.d"

        page.click("nav >> text=Machine")
        page.select_option("text=beside >> select", "golden")
        page.click("button:has-text('Run')")
        page.wait_for_selector("[data-testid=step]")
        assert "every step is the same" in page.inner_text("[data-testid=differences]")
        states = []
        for _ in range(30):
            states.append(page.inner_text(".machine"))
            page.keyboard.press("ArrowRight")
        for before in reversed(states):
            page.keyboard.press("ArrowLeft")
            assert page.inner_text(".machine") == before
        for _ in range(40):
            page.keyboard.press("ArrowRight")
        position, shown = page.inner_text("[data-testid=step]"), page.inner_text(".machine")

        # DuckDB has as many results.
        total = page.inner_text("section[aria-label='All results'] summary")
        assert int(re.findall(r"(\d+) rows", total)[0]) == matches()

        page.click("text=Share")
        shared = page.input_value("[data-testid=link]")
    with studio(shared) as link, opened(chromium, link) as page:
        page.wait_for_selector("[data-testid=step]")
        assert page.inner_text("[data-testid=step]") == position
        assert page.inner_text(".machine") == shown


def matches() -> int:
    """Counts DuckDB's results for the rows that the page uses."""
    import duckdb
    import pyarrow as pa

    given = rows(compilation(TEXT, Settings()).program.base, 1, 120)
    tables = {name: pa.Table.from_pylist(given[name]) for name in "RS"}
    base = duckdb.connect()
    for name, table in tables.items():
        base.register(name, table)
    text = "SELECT count(*) FROM R, S WHERE R.a = S.d AND abs(R.ts - S.ts) <= 20"
    ((found,),) = base.sql(text).fetchall()
    return int(found)


@needs_chromium
def test_hostile_names_and_rows_are_text(chromium: Any, tmp_path: Path) -> None:
    text = TEXT.replace("e int", "e varchar").replace("= S.d", "= S.d AND S.e = '<img src=x>'")
    (tmp_path / "q.xsql").write_text(text, encoding="utf-8")
    with studio(str(tmp_path / "q.xsql")) as link, opened(chromium, link, refused=True) as page:
        page.wait_for_selector("[data-part='factor:1']")
        assert "S.e = '<img src=x>'" in page.inner_text(".parts")
        write(page, text.replace("QUERY q", 'QUERY "<img src=x>"'))
        assert "<img src=x>" in page.wait_for_selector("ul.problems li").inner_text()
        # The rows and column names of a chosen file, and its own name.
        rows = "ts,a,<img src=x>\n1,7,<img src=x onerror=alert(1)>\n"
        both = [given("R.csv", rows), given("S.csv", "ts,d\n2,7\n")]
        page.set_input_files("input[type=file]", both)
        write(page, "REGISTER QUERY q AS SELECT * FROM R, S WHERE R.a = S.d WINDOW RANGE 20;")
        page.wait_for_selector("[data-part='factor:1']")
        page.click("nav >> text=Machine")
        page.click("button:text-is('Run')")
        page.wait_for_selector("[data-testid=step]")
        page.click("summary:has-text('q: 1 rows')")
        assert "<img src=x onerror=alert(1)>" in page.inner_text(
            "section[aria-label='All results']"
        )
        page.click("nav >> text=Query")
        page.set_input_files("input[type=file]", [given("<img src=x>.csv", rows)])
        assert "<img src=x>" in page.wait_for_selector("[role=alert]").inner_text()
        assert page.query_selector("img[src=x]") is None


INJECT = """() => {
  const script = document.createElement("script");
  script.textContent = "window.ran = true";
  document.body.append(script);
  return window.ran === true;
}"""


@needs_chromium
def test_the_policy_holds(chromium: Any) -> None:
    """A script injected into the page would not run, and could fetch nothing from elsewhere;
    without its token the page gets nothing, and a page of another origin cannot ask."""
    with studio() as link, chromium.new_context() as profile:
        page = profile.new_page()
        page.goto(link)
        page.wait_for_selector("[data-part='factor:1']")
        assert page.evaluate(INJECT) is False
        fetched = "() => fetch('http://127.0.0.1:9/').then(() => true, () => false)"
        assert page.evaluate(fetched) is False
        address, _, _ = link.partition("#")
        other = profile.new_page()
        other.goto(address)
        assert "token is wrong" in other.wait_for_selector("[role=alert]").inner_text()
        other.goto("about:blank")
        asked = "(to) => fetch(to, {method: 'POST', headers: {'x-studio-token': 't'}, body: '{}'}).then(() => true, () => false)"
        assert other.evaluate(asked, f"{address}ask/start") is False


def given(name: str, text: str) -> dict[str, Any]:
    return {"name": name, "mimeType": "text/csv", "buffer": text.encode()}


@needs_chromium
def test_a_pattern_is_watched_and_shared(chromium: Any) -> None:
    with studio() as link, opened(chromium, link) as page:
        page.wait_for_selector("[data-part='factor:1']")
        page.select_option("text=Open >> select", "pattern")
        page.wait_for_selector("option:has-text('picture of rising')", state="attached")
        page.click("nav >> text=Patterns")
        page.click("button:has-text('Run')")
        page.wait_for_selector("section[aria-label='Kept in !Pay']")
        page.select_option("text=Pattern >> select", "rising")
        page.click("button:has-text('Run')")
        page.wait_for_selector("section[aria-label='Kept in more[i]']")
        assert len(page.query_selector_all(".match")) > 0
        states = []
        for _ in range(25):
            states.append(page.inner_text("main"))
            page.keyboard.press("ArrowRight")
        assert any("run 1.0" in state for state in states)
        for before in reversed(states):
            page.keyboard.press("ArrowLeft")
            assert page.inner_text("main") == before
        for _ in range(20):
            page.keyboard.press("ArrowRight")
        event = page.inner_text("[data-testid=event]")
        page.click("text=Share")
        shared = page.input_value("[data-testid=link]")
    with studio(shared) as link, opened(chromium, link) as page:
        page.wait_for_selector("[data-testid=event]")
        assert page.inner_text("[data-testid=event]") == event


LONG = (
    "".join(f"CREATE STREAM A{n} (k int, v int); " for n in range(4))
    + "SELECT A0.v FROM A0, A1, A2, A3 WHERE A0.k = A1.k AND A1.k = A2.k AND A2.k = A3.k"
    " WINDOW RANGE 1 hour;"
)
"""A text whose run over the rows of a seed takes minutes."""


@needs_chromium
def test_a_run_ends_with_its_text_or_when_it_is_stopped(chromium: Any) -> None:
    with studio() as link, opened(chromium, link) as page:
        page.wait_for_selector("[data-part='factor:1']")
        write(page, LONG)
        page.wait_for_selector("[data-part='query:q0']")
        page.click("nav >> text=Machine")
        page.fill("text=Rows >> input", "1000")
        page.click("button:text-is('Run')")
        page.click("button:text-is('Stop')")
        page.wait_for_selector("button:text-is('Run'):enabled")
        assert page.query_selector("[role=alert]") is None
        page.click("button:text-is('Run')")
        page.wait_for_selector("button:text-is('Stop')")
        page.click("nav >> text=Query")
        write(page, TEXT)
        page.wait_for_selector("[data-part='query:q']")
        page.click("nav >> text=Machine")
        page.click("button:text-is('Run')")  # it runs the new text alone
        page.wait_for_selector("section[aria-label='Join area S']")
        assert page.query_selector("section[aria-label='Join area A0']") is None


@needs_chromium
def test_files_are_given_and_removed(chromium: Any) -> None:
    """With every kind of file. Cells have the declared types, and late rows are shown as such."""
    text = TEXT.replace("e int", "e bigint")
    late = "ts,A,b\n2026-01-01 00:00:00.010,1,5\n2026-01-01 00:00:00.001,1,6\n"
    exact = "ts,d,e\n2026-01-01 00:00:00.012,1,9007199254740993\n"
    with studio() as link, opened(chromium, link, refused=True) as page:
        page.wait_for_selector("[data-part='factor:1']")
        write(page, text)
        files = [given("R.CSV", late), given("S.csv", exact), given("T.parquet", "PAR1")]
        page.set_input_files("input[type=file]", files)
        alert = page.wait_for_selector("[role=alert]").inner_text()
        assert alert == "not opened: T.parquet\nrows are .csv files, texts .xsql, .sql or .apas"
        page.set_input_files("input[type=file]", [given("my-rows.csv", exact)])
        page.wait_for_selector("[role=alert]:has-text('named after a stream')")
        page.click("button[aria-label='Remove my-rows.csv']")
        assert page.input_value("input[type=file]") == ""  # it may be chosen again
        page.wait_for_selector("[role=alert]", state="detached")
        page.click("nav >> text=Machine")
        page.click("button:text-is('Run')")
        page.wait_for_selector("[data-testid=step]")
        assert page.inner_text("h2:has-text('R at')") == "R at 2026-01-01T00:00:00.010"
        page.click("summary:has-text('R: 1 late or without a time, left out')")
        assert "2026-01-01T00:00:00.001" in page.inner_text("[data-testid=left-out]")
        page.click("summary:has-text('q: 1 rows')")
        rows = page.inner_text("section[aria-label='All results'] tbody").split()
        times = ["2026-01-01T00:00:00.010", "2026-01-01T00:00:00.012"]
        assert rows == ["1", "5", "1", "9007199254740993", *times]
        page.click("nav >> text=Query")
        for name in "RS":
            page.click(f"button[aria-label='Remove {name}.csv']")
        page.wait_for_selector("text=Drop CSV files here")


@needs_chromium
def test_trouble_of_rows_that_are_gone_is_not_shown(chromium: Any) -> None:
    with studio() as link, opened(chromium, link, refused=True) as page:
        page.wait_for_selector("[data-part='factor:1']")
        held: list[Any] = []

        def hold_first(route: Any) -> None:
            if held:
                route.continue_()
            else:
                held.append(route)

        page.route("**/compile", hold_first)
        page.set_input_files("input[type=file]", [given("my-rows.csv", "ts,d,e\n1,1,1\n")])
        with page.expect_response("**/compile"):
            page.click("button[aria-label='Remove my-rows.csv']")
        with page.expect_response("**/compile") as late:
            held[0].continue_()
        assert "named after a stream" in late.value.text()
        page.wait_for_timeout(100)
        assert page.query_selector("[role=alert]") is None


@needs_chromium
def test_a_shared_run_that_fails_is_said_to(chromium: Any) -> None:
    kept = {
        "text": TEXT,
        "page": "machine",
        "files": {"R": "ts,a,b\n1,1,5\n", "S": "ts,d,e\n1,1,x\n"},
    }
    for content, said in (
        (kept, "S.csv:2: column e: 'x' is not an int"),
        (None, "the share link is damaged"),
        (kept | {"page": "none", "files": {}}, None),
    ):
        deflated = zlib.compress(json.dumps(content).encode(), wbits=-15)
        share = base64.urlsafe_b64encode(deflated).decode().rstrip("=")
        with (
            studio(f"http://a/#share={share}") as link,
            opened(chromium, link, refused=True) as page,
        ):
            if said is None:
                page.wait_for_selector("[data-part='query:q']")
                continue
            page.wait_for_selector("[role=alert]")
            page.wait_for_selector(".cm-content, button:text-is('Run'):enabled")
            assert said in page.inner_text("[role=alert]")


@needs_chromium
def test_a_file_may_have_the_name_of_a_text_of_the_gallery(chromium: Any, tmp_path: Path) -> None:
    (tmp_path / "join").write_text(TEXT, encoding="utf-8")
    named = str(tmp_path / "join")
    with studio(named) as link, opened(chromium, link) as page:
        page.wait_for_selector("[data-part='query:q']")
        opened_text = "label:has-text('Open') >> select"  # a path of xdist has the word, too
        page.select_option(opened_text, "join")
        page.wait_for_selector("[data-part='query:q']", state="detached")
        page.select_option(opened_text, label=named)
        page.wait_for_selector("[data-part='query:q']")
