"""Tables of measured figures as the pages show them, between a line `<!-- NAME -->` and the next
`<!-- end -->`. `python -m tests.docs.figures` rewrites them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from bench.peer_engines import ENGINES as ENGINES_OF_PEERS
from seustream.commands import bench
from tests.docs.blocks import ROOT

MEASURED = (
    "explanation/engine-speed.md",
    "explanation/papers.md",
    "explanation/pattern-speed.md",
    "explanation/processor-speed.md",
    "explanation/sql-speed.md",
    "reference/boards.md",
)
_PLACE = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
GOAL = 10
ENGINES = {"fast path": "fast path", "esper": "Esper 8", "siddhi": "Siddhi 5", "flink": "FlinkCEP"}
MATCHERS = {
    "NFA^b (for SASE)": "NFA^b",
    "pending lists (for Siddhi)": "pending lists",
    "OptiSeq as printed": "OptiSeq",
    "fast path": "fast path",
}


def filled(page: str) -> str:
    """Returns the page with its tables as the results have them now."""
    return _PLACE.sub(lambda found: f"{found[1]}\n{TABLES[found[2]]()}\n{found[3]}", page)


def results(name: str) -> dict[str, Any]:
    """Returns a benchmark's last run, each row as a mapping from column to value."""
    path = bench.folder() / "results" / f"{name}.json"
    found = json.loads(path.read_text("utf-8"))
    found["rows"] = [dict(zip(found["head"], row, strict=True)) for row in found["rows"]]
    return found


def engines() -> str:
    found = results("engines")
    rows = {(row["query"], row["engine"]): row for row in found["rows"]}
    lines = []
    for query in dict.fromkeys(query for query, _ in rows):
        mine = [rows[query, engine] for engine in ENGINES]
        best = found["ratios"][f"{query}: fast path over the best"]
        speeds = [f"{row['events/s']:,.0f}" for row in mine]
        first = mine[0]
        cells = [query.partition("-")[0], first["window"], f"{first['matches']:,}", *speeds]
        lines.append([*cells, f"{best:.1f} ×"])
    return _table(("query", "window", "matches", *ENGINES.values(), "over the best"), lines)


def below() -> str:
    """Names the queries on which the fast path is not ten times as fast as the best of the
    others."""
    found = results("engines")
    windows = {row["query"]: row["window"] for row in found["rows"]}
    slow = [
        f"{query.partition('-')[0]} in {windows[query]} ({ratio:.1f} ×)"
        for query in windows
        if (ratio := found["ratios"][f"{query}: fast path over the best"]) < GOAL
    ]
    return f"It is not reached on {', '.join(slow)}.\n" if slow else "It is reached on all.\n"


def core() -> str:
    """Returns the microseconds per event with all members of each match: CORE's, and ours by rows a step."""
    rows = [row for row in results("core")["rows"] if row["returns"] == "members"]
    found = {(row["query"], row["engine"], row["rows a step"]): row for row in rows}
    sizes = sorted({row["rows a step"] for row in rows if row["engine"] == "ours"})
    lines = []
    for query in dict.fromkeys(row["query"] for row in rows):
        theirs = found[query, "CORE", 1]
        mine = [found[query, "ours", size] for size in sizes]
        times = [f"{row['us/event']:.3g}" for row in (theirs, *mine)]
        lines.append([query, theirs["window"], f"{theirs['matches']:,}", *times])
    return _table(("query", "window", "matches", "CORE", *(f"{n:,} a step" for n in sizes)), lines)


def matchers() -> str:
    rows = {(row["part"], row["query"], row["engine"]): row for row in results("patterns")["rows"]}
    lines = []
    for part, query in dict.fromkeys((part, query) for part, query, _ in rows):
        mine = [rows[part, query, matcher] for matcher in MATCHERS]
        nfa, pending, optiseq, fast = (row["cpu s"] for row in mine)
        name, _, window = query.partition(" ")
        tests = [f"{row['tests']:,}" for row in (mine[0], mine[2])]
        times = [f"{seconds:.2f}" for seconds in (nfa, pending, optiseq)] + [f"{fast:.3f}"]
        gains = [f"{100 * (1 - optiseq / other):.0f} %" for other in (nfa, pending)]
        lines.append([part, name, window, *tests, *times, *gains])
    head = ("experiment", "query", "window", "tests, NFA^b", "tests, OptiSeq")
    gains = ("OptiSeq's gain over NFA^b", "over pending lists")
    return _table((*head, *(f"{name}, s" for name in MATCHERS.values()), *gains), lines)


def runs_of() -> str:
    """Says how often everything was run, and which cases less often."""
    found = []
    for name, known in (("patterns", MATCHERS), ("engines", ENGINES)):
        rows = results(name)["rows"]
        for engine, shown in known.items():
            runs = {_case(row): row["runs"] for row in rows if row["engine"] == engine}
            most = max(runs.values())
            fewer: dict[int, list[str]] = {}
            for case, count in runs.items():
                if count < most and case not in fewer.setdefault(count, []):
                    fewer[count].append(case)
            others = [f"{count} for {', '.join(cases)}" for count, cases in fewer.items()]
            found.append(f"- `{name}`, {shown}: " + "; ".join([str(most), *others]))
    return "\n".join(found) + "\n"


def _case(row: dict[str, Any]) -> str:
    query = str(row["query"]).partition("-")[0] + (f" {row['window']}" if "window" in row else "")
    return f"{row['part']}: {query}" if "part" in row else query


def _table(head: tuple[str, ...], rows: list[list[str]]) -> str:
    lines = [head, ["---" if n < 3 else "---:" for n in range(len(head))], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def joins() -> str:
    """Returns the table of joins: each work with the times of both engines."""
    rows = {(row["work"], row["engine"]): row for row in results("joins")["rows"]}
    lines = []
    for work in dict.fromkeys(work for work, _ in rows):
        ours, theirs = rows[work, "engine"], rows[work, "DuckDB"]
        sizes = [f"{ours[name]:,}" for name in ("tuples", "window", "results")]
        times = [f"{row['cpu us/tuple']:.3g}" for row in (ours, theirs)]
        lines.append([work, *sizes, *times, f"{ours['gain']:.2f}"])
    return _table(("work", "tuples", "window", "results", "engine", "DuckDB", "gain"), lines)


def peers(work: str) -> str:
    """Returns the table of a work beside other engines: processor time and, in brackets, time on the
    clock, in microseconds a row, by window and number of rows."""
    rows = _peers()
    mine = {(row["engine"], row["window"], row["rows"]): row for row in rows if row["work"] == work}
    if not mine:
        return "Not measured yet.\n"
    cases = sorted({case[1:] for case in mine})
    lines = []
    for engine, takes in ENGINES_OF_PEERS.values():
        own = [mine.get((engine, *case)) for case in cases]
        version = next((row["version"] for row in own if row and row["version"]), "")
        lines.append([f"{engine} {version}".strip(), takes, *map(_peer, own)])
    head = ("engine", "takes rows", *(f"{window:,}: {rows:,} rows" for window, rows in cases))
    return _table(head, lines)


def _peer(row: dict[str, Any] | None) -> str:
    if row is None:
        return "not measured"
    if row["cpu us/row"] is None:
        return str(row["remark"])
    return f"{row['cpu us/row']:.3g} ({row['wall us/row']:.3g})"


def faster() -> str:
    """Names the engines that need less processor time than ours, case by case."""
    cases: dict[str, list[str]] = {}
    rows = _peers()
    for row in rows:
        if row["over ours"] is not None and row["over ours"] < 1:
            case = f"{row['work']}, window {row['window']:,}, {row['rows']:,} rows"
            gain = f"{row['engine']} ({1 / row['over ours']:.1f} ×)"
            cases.setdefault(case, []).append(gain)
    if not cases:
        return "In none of the cases.\n" if rows else "Not measured yet.\n"
    return "".join(f"- {case}: {', '.join(cases[case])}\n" for case in cases)


def _peers() -> list[dict[str, Any]]:
    """Returns the rows of other engines; none if they are not measured yet."""
    is_there = (bench.folder() / "results" / "peers.json").exists()
    return list(results("peers")["rows"]) if is_there else []


def steps() -> str:
    shown = (
        "query",
        "rows a step",
        "results",
        "best cpu us/step",
        "worst",
        "best cpu us/row",
        "p99 us",
    )
    return _plain(results("steps"), shown)


def sliding() -> str:
    """Returns the processor time per row by window, keys and order: the engine by rows a step, then others."""
    rows = results("sliding")["rows"]
    sizes = sorted({row["rows a step"] for row in rows if row["engine"] == "engine"})
    found = {
        (row["keys"], row["window"], row["order"], row["engine"], row["rows a step"]): row
        for row in rows
    }
    lines = []
    for keys, window, order in dict.fromkeys(key[:3] for key in found):
        mine = [found[keys, window, order, "engine", size] for size in sizes]
        others = [found[keys, window, "in order", name, "all"] for name in ("Polars", "DuckDB")]
        times = [f"{row['cpu us/row']:.3g}" for row in (*mine, *others)]
        lines.append([f"{window:,}", f"{keys:,}", order, *times])
    steps_of = [f"{size:,} a step" for size in sizes]
    return _table(("window", "keys", "order", *steps_of, "Polars", "DuckDB"), lines)


def queries() -> str:
    return _plain(results("queries"))


def thousandth() -> str:
    return _plain(_more("queries", 0))


def outer() -> str:
    return _plain(results("outer"))


def growth() -> str:
    return _plain(results("growth"))


def lengths() -> str:
    return _plain(results("lengths"))


def memory() -> str:
    """Returns the table of bytes of a live row, followed by how many times its columns they are, at best and at
    worst."""
    found = results("memory")
    head = ("query", "row", "columns", "steady", "peak", "steady over columns")
    lines = [
        [
            row["query"],
            row["row"],
            *(f"{row[name]:.0f}" for name in head[2:5]),
            f"{row[head[5]]:.1f}",
        ]
        for row in found["rows"]
    ]
    least, most = (of(found["rows"], key=lambda row: row[head[5]]) for of in (min, max))
    ends = [
        f"{row[head[5]]:.1f} times its columns ({row['query']}, {row['row']})"
        for row in (least, most)
    ]
    return f"{_table(head, lines)}\nA live row takes {ends[0]} to {ends[1]}.\n"


def nexmark() -> str:
    """Returns the table of Nexmark queries beside the times of the others, followed by how the
    times compare, engine by engine."""
    found = results("nexmark")
    shown = _plain(found)
    parts = []
    for engine in ("Flink", "Spark"):
        gains = [
            row[f"over {engine}"] for row in found["rows"] if row[f"over {engine}"] is not None
        ]
        if gains:
            worst, best = min(gains), max(gains)
            parts.append(
                f"{engine}: {len(gains)} queries, {sum(gain < 1 for gain in gains)} of them slower here;"
                f" {worst:.2g} to {best:.2g} times as fast"
            )
    return shown + "\n" + "; ".join(parts) + ".\n"


def spark() -> str:
    """Returns the table of paths from Spark to Spark, followed by their ratios to Spark's best and
    to reading alone."""
    found = results("spark")
    ratios = [f"{what}: {_figure(ratio)}" for what, ratio in found["ratios"].items()]
    return _plain(found) + "\n" + "\n".join(f"- {line}" for line in ratios) + "\n"


def cycles() -> str:
    return _plain(results("device"))


def configurations() -> str:
    return _plain(_more("device", 0))


def groups() -> str:
    return _plain(_more("device", 1))


def scans() -> str:
    return _plain(_more("device", 2))


def _more(name: str, number: int) -> dict[str, Any]:
    """Returns another table of a benchmark, in the form of `results`."""
    found = results(name)["more"][number]
    found["rows"] = [dict(zip(found["head"], row, strict=True)) for row in found["rows"]]
    return dict(found)


def simulators() -> str:
    found = results("simulators")
    (ratio,) = found["ratios"].values()
    return _plain(found) + f"\nThe clock loop is {ratio:.0f} times as fast.\n"


def bitstreams() -> str:
    """Returns the table of bitstreams, with tuples a second computed from measured cycles at the
    clock of the board, beside what the port carries."""
    found = results("boards")
    for row in found["rows"]:
        clock = min(row["MHz asked"], row["MHz reached"])
        row["tuples/s"] = round(1e6 * clock / float(row["cycles/tuple"]))
    shown = list(found["head"])
    shown.insert(shown.index("cycles/tuple") + 1, "tuples/s")
    return _plain(found, shown)


def largest() -> str:
    """Returns the table of the largest configurations, followed by what does not fit."""
    if not (ROOT / "bench" / "results" / "largest.json").exists():
        return "Not measured yet.\n"
    found = results("largest")
    return _plain(found) + "".join(f"\n{remark}.\n" for remark in found.get("remarks", ()))


def clocks() -> str:
    """Returns the columns of the bitstreams that concern the clock."""
    shown = ("configuration", "board", "version", "streams", "lanes", "bits", "LUT4", "block RAM",
             "MHz asked", "MHz reached", "worst seed", "seeds", "MHz by seed", "slowest path")  # fmt: skip
    return _plain(results("boards"), shown)


def _plain(found: dict[str, Any], shown: Sequence[str] = ()) -> str:
    head = tuple(shown or found["head"])
    return _table(head, [[_figure(row[name]) for name in head] for row in found["rows"]])


def _figure(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if value is None:
        return ""
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def papers() -> str:
    """Returns the table of claims of the papers that a benchmark tests, and whether they hold in
    its last run."""
    lines = []

    def claim(paper: str, what: str, found: str, holds: bool | str, bench: str) -> None:
        shown = holds if isinstance(holds, str) else "yes" if holds else "no"
        lines.append([paper, what, found, shown, f"`{bench}`"])

    thesis, cost = (row for row in results("plans")["rows"])
    claim(
        "Wang 2006", "one program serves eight queries that overlap, with the results of each",
        f"{thesis['circulated']:,} circulate by the thesis's plan, {cost['circulated']:,} by the cost plan;"
        f" {cost['results']:,} results by both", thesis["results"] == cost["results"], "plans",
    )  # fmt: skip
    for remark in results("smj")["remarks"]:
        if "published" in remark:
            name, _, rest = remark.partition(": published ")
            published, _, found = rest.partition(", reproduced for ")
            mean = found.partition("the mean over n, ")[2]
            claim(
                "Yin, Zhang 2009", f"{name} saves {published} of lottery routing's cost",
                f"{mean.partition(' %')[0]} % on average; within for {found.partition(' (')[0].partition(';')[0]}",
                "yes" if "every n" in found else "on average" if "lies inside" in mean else "no", "smj",
            )  # fmt: skip
    waits = results("temporal_streams")["ratios"]
    without = waits["64 inputs: mean wait without BOUNDARY over with"]
    hashed = waits["10,000 live tuples: nested loop over hash"]
    claim(
        "Gorawski, Chrószcz 2009", "a BOUNDARY lets a union go on past a silent input",
        f"the mean wait is {without:.0f} times as long without", without > 1, "temporal_streams",
    )  # fmt: skip
    claim(
        "Gorawski, Chrószcz 2009", "a hash join gains over a nested loop as more tuples are alive",
        f"a nested loop takes {hashed:.0f} times as long with 10,000", hashed > 1, "temporal_streams",
    )  # fmt: skip
    gains = results("patterns")["ratios"]
    for published, other in (
        ("15 to 21 percent ", "NFA^b (for SASE)"),
        ("", "pending lists (for Siddhi)"),
    ):
        mine = [100 * v for k, v in gains.items() if k.endswith(f"gain of OptiSeq over {other}")]
        claim(
            "Xia et al. 2023", f"OptiSeq needs {published}less time than {other}",
            _from_to(min(mine), max(mine)),
            "in direction" if min(mine) > 0 else "no", "patterns",
        )  # fmt: skip
    return _table(("paper", "claim", "found here", "holds", "bench"), lines).replace("---:", "---")


def worked() -> str:
    """Returns the figures of papers that are examples worked out by hand, and whether their tests
    pass."""
    shown = (
        ("paper", "paper"),
        ("printed as", "figure or table"),
        ("what", "what it shows"),
        ("reading", "read"),
    )
    lines = [
        [
            *(str(row[name]) for name, _ in shown),
            "yes" if row["tests"] == row["passed"] > 0 else "no",
            f"`{row['file']}`",
        ]
        for row in results("worked")["rows"]
    ]
    return _table((*(title for _, title in shown), "holds", "tests"), lines).replace("---:", "---")


def benches() -> str:
    """Returns the table of all benchmarks: the conditions and the duration of their last run."""
    lines = []
    for name in bench.available():
        path = bench.folder() / "results" / f"{name}.json"
        found = json.loads(path.read_text("utf-8")) if path.exists() else {}
        seconds = found.get("seconds")
        took = "" if seconds is None or found["parts"] else span(seconds)
        took += " (short)" if took and found.get("short") else ""
        conditions = str(found.get("conditions", "not measured yet")).replace("|", "\\|")
        lines.append(
            [
                f"`{name}`",
                conditions,
                str(found.get("machine", "")),
                str(found.get("commit", "")),
                took,
            ]
        )
    return _table(("bench", "conditions", "machine", "commit", "took"), lines).replace(
        "---:", "---"
    )


def span(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def _from_to(low: float, high: float) -> str:
    """Writes how much less time is needed, in percent."""
    if low > 0 or high < 0:
        least, most = sorted((abs(low), abs(high)))
        return f"{least:.0f} to {most:.0f} percent {'less' if low > 0 else 'more'}"
    return f"from {-low:.0f} percent more to {high:.0f} percent less"


TABLES = {
    "papers": papers,
    "joins": joins, "peers_join": partial(peers, "join"), "peers_sum": partial(peers, "sum"), "faster": faster,
    "steps": steps, "sliding": sliding, "queries": queries, "thousandth": thousandth, "outer": outer, "growth": growth, "lengths": lengths, "memory": memory, "nexmark": nexmark, "spark": spark, "engines": engines, "core": core, "below": below, "matchers": matchers, "runs": runs_of,
    "cycles": cycles, "configurations": configurations, "groups": groups, "scans": scans, "simulators": simulators, "clocks": clocks, "bitstreams": bitstreams,
    "largest": largest, "worked": worked, "benches": benches,
}  # fmt: skip


def main() -> None:
    for name in MEASURED:
        page = ROOT / "docs" / name
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
