"""The live page at a bridge: its table, a bridge that goes and comes back, a minute of 10,000 rows
a second, and a day."""

from __future__ import annotations

import itertools
import json
import random
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import seustream as ss
from tests.docs.blocks import ROOT
from tests.seustream.studio.browser import chromium, needs_chromium, opened, started, studio

__all__ = ["chromium"]  # a fixture
REGISTER = (
    "CREATE STREAM R (a int, n varchar(9)); REGISTER QUERY q AS SELECT a, n FROM R WINDOW NOW;"
)
pytestmark = [needs_chromium, pytest.mark.campaign]


def cells(page: Any) -> list[list[str]]:
    rows = page.query_selector_all("[data-testid=results] tbody tr")
    return [[cell.inner_text() for cell in row.query_selector_all("td")] for row in rows]


def test_a_bridge_that_goes_and_comes_back(chromium: Any, tmp_path: Path) -> None:
    """The page registers queries; rows come in and are grouped and selected; the bridge dies, the
    page reports it gone, and finds it again."""
    serve = ("serve", "--journal", str(tmp_path / "journal"), "--listen")
    with (
        started(*serve, "grpc://127.0.0.1:0") as (bridge, address),
        studio("--bridge", address) as link,
        opened(chromium, link, refused=True) as page,
    ):
        page.click("nav >> text=Live")
        page.fill("#statement", REGISTER)
        page.click("text=Execute")
        page.wait_for_selector("td:has-text('RUNNING')")
        page.click("td button:has-text('q')")
        with ss.connect(address) as session:
            session.push("R", {"ts": [1, 2, 3], "a": [7, 8, 9], "n": ["<b>x", "y", None]})
            session.push("R", {"ts": [4, 5], "a": [1, 2], "n": ["y", None]})
            session.watermark("R", 10)
            page.wait_for_selector("text=5 so far")
        page.wait_for_selector("figure[aria-label='latency of queries, ms'] >> text=q p99")
        newest = [["2", "NULL", "5", "5"], ["1", "y", "4", "4"], ["9", "NULL", "3", "3"]]
        assert cells(page)[:3] == newest
        page.select_option("text=Group by >> select", "n")
        page.wait_for_selector("[data-testid=results] th:has-text('group')")
        sums = {row[0]: row[1] for row in cells(page)}
        assert sums == {"all": "27", "NULL": "11", "<b>x": "7", "y": "9"}
        page.select_option("text=only where >> select", "a")
        page.select_option("[aria-label=Comparison]", ">")
        page.fill("[aria-label=Value]", "7")
        page.keyboard.press("Tab")
        page.wait_for_selector("[data-testid=results] td:text-is('17')")
        bridge.kill()
        page.wait_for_selector("text=the bridge is gone", timeout=20_000)
        with started(*serve, address):
            page.wait_for_selector("text=the bridge is gone", state="detached", timeout=60_000)
            page.wait_for_selector("td:has-text('RUNNING')")


SECONDS, A_SECOND = 60, 10_000
KEPT = 50_000  # rows in the table
ANSWER = """async (column) => {
  const select = [...document.querySelectorAll("label")].find((l) => l.innerText.startsWith("Group by")).querySelector("select");
  const start = performance.now();
  select.value = column;
  select.dispatchEvent(new Event("change", { bubbles: true }));
  const first = () => document.querySelector("[data-testid=results] th").innerText === "group";
  while (first() !== (column !== "")) await new Promise(requestAnimationFrame);
  return performance.now() - start;
}"""


def test_a_minute_of_10_000_rows_a_second(chromium: Any) -> None:
    """The table takes every row and answers within 200 ms, and its memory does not grow once it is
    full."""
    with (
        started("serve", "--listen", "grpc://127.0.0.1:0") as (_, address),
        ss.connect(address) as session,
        studio("--bridge", address) as link,
        opened(chromium, link) as page,
    ):
        session.sql(REGISTER)
        page.click("nav >> text=Live")
        page.click("td button:has-text('q')")
        answers, memory, heap = minute(page, session, chromium)
        page.wait_for_selector(f"text={SECONDS * A_SECOND:,} so far", timeout=30_000)
        page.evaluate(ANSWER, "")
        page.evaluate(ANSWER, "n")
        shown = {row[0]: row[1:3] for row in cells(page)}
    print(f"answers ms {answers}, memory MB {memory}, heap MB {heap}")
    kept = range(SECONDS * A_SECOND - KEPT, SECONDS * A_SECOND)
    groups = {f"n{k}": [t for t in kept if t % 50 == k] for k in range(50)} | {"all": list(kept)}
    assert shown == {name: [str(sum(of)), str(len(of))] for name, of in groups.items()}
    assert max(answers) < 200
    assert max(memory[-10:]) < 1.1 * max(memory[20:30])
    assert max(heap[-10:]) < 1.1 * max(heap[20:30]) + 5


def minute(page: Any, session: Any, chromium: Any) -> tuple[list[int], list[int], list[int]]:
    """Returns the milliseconds of each answer, and by the second the megabytes of the page's
    process and of its heap."""
    cdp = page.context.new_cdp_session(page)
    answers, memory, heap = [], [], []
    start = time.monotonic()
    for second in range(SECONDS):
        for tenth in range(10):
            at = second * A_SECOND + tenth * (A_SECOND // 10)
            times = list(range(at, at + A_SECOND // 10))
            session.push("R", {"ts": times, "a": times, "n": [f"n{t % 50}" for t in times]})
            session.watermark("R", times[-1])
            page.wait_for_timeout(max(0, 1000 * (start + second + tenth / 10 - time.monotonic())))
        if second > 5:
            answers.append(round(page.evaluate(ANSWER, "n" if second % 2 else "")))
        cdp.send("HeapProfiler.collectGarbage")
        heap.append(cdp.send("Runtime.getHeapUsage")["usedSize"] >> 20)
        memory.append(resident(chromium))
    return answers, memory, heap


def resident(chromium: Any) -> int:
    """Returns the megabytes of the largest renderer process, including WebAssembly."""
    found = chromium.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    pages = [one["id"] for one in found if one["type"] == "renderer"]
    sizes = [Path(f"/proc/{pid}/statm").read_text().split()[1] for pid in pages]
    return max(map(int, sizes)) * 4096 >> 20


DAY = 86_400  # looks, one a second
HISTORY = """import ts from "typescript";
import { readFileSync } from "node:fs";
const code = ts.transpile(readFileSync("src/history.ts", "utf-8"), { module: "esnext", target: "es2022" });
const { History } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
const history = new History();
let most = 0;
for (const [time, rows] of JSON.parse(readFileSync(0, "utf-8"))) {
  history.add(time, { rows });
  most = Math.max(most, history.times.length);
}
const { times } = history;
console.log(JSON.stringify({ most, times, rows: history.of("rows"), rates: history.rate("rows") }));
"""


@pytest.mark.skipif(
    not (shutil.which("node") and (ROOT / "studio" / "node_modules" / "typescript").exists()),
    reason="the page's packages are not installed: npm --prefix studio ci",
)
def test_charts_of_a_day() -> None:
    """At most 4,096 looks are drawn, all of the newest half hour among them, and no stretch of the
    day is left out; each was a real look, and a rate is the growth since the one before."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    given, time_, rows = {}, 1e9, 0
    for _ in range(DAY):
        time_, rows = time_ + 1 + chance.random() / 10, rows + chance.randrange(10_000)
        given[time_] = rows
    made = subprocess.run(
        ["node", "--input-type=module", "--eval", HISTORY],
        input=json.dumps(list(given.items())),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT / "studio",
    )
    found = json.loads(made.stdout)
    times, rates, looks = found["times"], found["rates"], list(given)
    assert found["most"] <= 4096
    assert times[0] == looks[0]
    assert times[-1800:] == looks[-1800:]
    assert found["rows"] == [given[at] for at in times]
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert max(gaps) < (times[-1] - times[0]) / 500
    grown = [rate * gap for rate, gap in zip(rates[1:], gaps, strict=True)]
    assert rates[0] is None
    assert sum(grown) == pytest.approx(given[looks[-1]] - given[looks[0]])
