"""`seustream explain --stage sites`: the facts known before a run, and the record of a run."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from seustream.cli import main
from seustream.compiler.pipeline import compile_text
from seustream.engine.sites.costs import UnitCosts
from seustream.engine.sites.explain import save
from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.query import join_of
from tests.engine.sites.network import SiteNetwork, watch
from tests.engine.sites.running import block, feed

TEXT = """
CREATE STREAM birds (tag int, weight int);
CREATE STREAM foxes (tag int, age int);
CREATE STREAM traps (tag int);
REGISTER QUERY eaten AS SELECT * FROM birds b, foxes f, traps t
WHERE b.tag = f.tag AND f.tag = t.tag AND (b.weight < f.age OR f.age IS NULL) AND b.weight > 1
WINDOW RANGE 10;
REGISTER QUERY alike AS SELECT * FROM birds b, foxes f WHERE b.weight < f.age WINDOW RANGE 3;
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.xsql").write_text(TEXT)
    return tmp_path


def record(here: Path, strategy: str = "planned") -> Path:
    """Runs four blocks of each site of the query's shape, and writes the record."""
    query = compile_text(TEXT).program.queries[0]
    join = join_of(query)
    bare = type(join)(join.streams, join.equal)
    costs = UnitCosts.of([[0, 18, 25, 1], [18, 0, 20, 1], [25, 20, 0, 1], [1, 1, 1, 0]])
    net = SiteNetwork(SiteLayout(bare, costs, 3, strategy=strategy))  # type: ignore[arg-type]
    seen = watch(net)
    for t in range(4):
        feed(net, [block(0, t, 5), block(1, t, 5)], lockstep=True)
    feed(net, [block(2, 3, 5)], lockstep=True)
    save({"eaten": seen.blocks()}, here / "run.json")
    return here / "run.json"


def test_before_anything_runs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "q.xsql", "--stage", "sites"]) == 0
    said = capsys.readouterr().out
    assert "Query eaten across 3 sites" in said
    assert "b.tag = f.tag = t.tag" in said
    assert "where b and f meet" in said
    assert "at the source b" in said
    assert "left out  alike  no equality connects" in said
    assert main(["explain", "q.xsql", "--stage", "sites", "--format", "json"]) == 0
    (only,) = json.loads(capsys.readouterr().out)
    assert [site["carried"] for site in only["sites"]] == [["weight"], ["age"], []]
    assert only["classes"] == [["b.tag", "f.tag", "t.tag"]]
    assert len(only["conditions"]) == 2


def test_a_run_by_block(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["explain", "q.xsql", "--stage", "sites", "--query", "eaten", "--record"]
    run.append(str(record(here)))
    assert main(run) == 0
    said = capsys.readouterr().out.splitlines()
    # Each of four times has a bird and a fox: at most 16 pairs, all of which the trap meets.
    way = next(line for line in said if line.startswith("  t → f → b"))
    assert way.split()[-5:] == ["1", "of", "1", "108", "108"]
    assert main([*run, "--format", "json"]) == 0
    (only,) = json.loads(capsys.readouterr().out)
    last = only["blocks"][-1]
    assert (last["order"], last["predicted"], last["actual"]) == (["f", "b"], 108, 108)
    assert main([*run, "--format", "svg"]) == 0
    picture = ET.fromstring(capsys.readouterr().out)
    bars = [r for r in picture.iter("{http://www.w3.org/2000/svg}rect") if r.get("height") == "7.5"]
    assert len(bars) == 2 * len(only["blocks"])
    assert [bar.get("width") for bar in bars[-2:]] == ["380.0", "380.0"]


def test_a_hub_is_a_way(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = record(here, "auto")
    text = [str(w) for w in ("explain", "q.xsql", "--stage", "sites", "--query", "eaten")]
    assert main([*text, "--record", str(path), "--format", "json"]) == 0
    (only,) = json.loads(capsys.readouterr().out)
    hubs = [b for b in only["blocks"] if b["hub"] is not None]
    assert hubs
    assert main([*text, "--record", str(path)]) == 0
    assert f"→ hub at node {hubs[0]['hub']}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--record", "run.json"], "--record is for --stage sites"),
        (["--stage", "sites", "--query", "no"], "there is no query 'no'"),
        (["--stage", "sites", "--query", "alike"], "no equality connects"),
        (["--stage", "sites", "--format", "svg"], "a picture of the stage sites is of a run"),
        (["--stage", "sites", "--record", "none.json"], "none.json: cannot be read"),
        (["--stage", "sites", "--record", "q.xsql"], "no record of a run"),
        (["--stage", "sites", "--record", "other.json"], "a run with the site x"),
    ],
)
def test_what_is_wrong_is_said(
    arguments: list[str], said: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = json.loads(record(here).read_text())
    others = [b | {"stream": "x"} for b in blocks["eaten"]]
    (here / "other.json").write_text(json.dumps({"eaten": others}))
    assert main(["explain", "q.xsql", *arguments]) == 2
    assert said in capsys.readouterr().err
