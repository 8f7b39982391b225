"""The runner of measurements knows them all, goes on after a failure, and repeats none
needlessly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seustream.commands import bench
from tests.docs import figures, paper
from tests.docs.blocks import ROOT

NOW: dict[str, object] = {"machine": "one", "commit": "1234567", "versions": {}}
FAILS = "outer"


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns the list of benchmarks that run; each writes its result into a folder of the test,
    and `FAILS` fails."""
    names: list[str] = []

    def make(name: str, is_full: bool) -> bool:
        names.append(name)
        if name == FAILS:
            return False
        write(tmp_path, name, **NOW, **({} if is_full else {"short": True}))
        return True

    known = bench.available()
    monkeypatch.setattr(bench, "available", lambda: known)
    monkeypatch.setattr(bench, "folder", lambda: tmp_path)
    monkeypatch.setattr(bench, "environment", lambda: NOW)
    monkeypatch.setattr(figures, "main", lambda: None)
    monkeypatch.setattr(paper, "make", make)
    return names


def write(folder: Path, name: str, **found: Any) -> None:
    (folder / "results").mkdir(exist_ok=True)
    text = json.dumps({"parts": None, "seconds": 1.0} | found)
    (folder / "results" / f"{name}.json").write_text(text)


def test_all_run_and_one_that_fails_is_named_at_the_end(
    ran: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert paper.main([]) == 1
    assert set(ran) == set(bench.available()) - set(paper.FETCHED)
    assert ran[-1] != FAILS
    assert f"failed: {FAILS};" in capsys.readouterr().out


def test_what_is_made_is_not_made_again_unless_asked(ran: list[str]) -> None:
    paper.main([])
    ran.clear()
    assert paper.main([]) == 1
    assert ran == [FAILS]
    ran.clear()
    assert paper.main(["--only", "plans,golden"]) == 0
    assert not ran
    assert paper.main(["--only", "plans,golden", "--anew"]) == 0
    assert sorted(ran) == ["golden", "plans"]


def test_short_results_are_made_again_in_full_and_not_the_other_way(ran: list[str]) -> None:
    for arguments, made in (([], 1), ([], 1), (["--full"], 2), (["--full"], 2), ([], 2)):
        paper.main(["--only", "smj", *arguments])
        assert len(ran) == made


def test_the_short_session_is_one_that_people_run() -> None:
    assert set(paper.MINUTES) == set(bench.available())
    assert all(0 < short <= full for short, full in paper.MINUTES.values())
    run = set(paper.MINUTES) - set(paper.FETCHED)
    assert sum(paper.MINUTES[name][0] for name in run) <= 75
    for name, (short, full) in paper.MINUTES.items():
        text = bench.available()[name].read_text("utf-8")
        assert (short < full) == ("\nSHORT = " in text), name


@pytest.mark.parametrize(
    "other",
    [{"machine": "another"}, {"commit": "7654321"}, {"parts": ["small"]}],
    ids=["machine", "commit", "parts"],
)
def test_what_was_made_otherwise_is_made_again(
    other: dict[str, object], ran: list[str], tmp_path: Path
) -> None:
    write(tmp_path, "plans", **NOW | other)
    paper.main(["--only", "plans"])
    assert ran == ["plans"]


@pytest.mark.parametrize("commit", ["", "1234567 + changes"])
def test_without_a_commit_everything_is_made(
    commit: str, ran: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = NOW | {"commit": commit}
    monkeypatch.setattr(bench, "environment", lambda: now)
    write(tmp_path, "plans", **now)
    paper.main(["--only", "plans"])
    assert ran == ["plans"]


def test_short_ones_come_first_and_the_time_is_said(
    ran: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = NOW | {"commit": "7654321"}
    write(tmp_path, "plans", **old | {"seconds": 660.0})
    write(tmp_path, "golden", **old | {"seconds": 90.0})
    write(tmp_path, "smj", **old | {"seconds": 7200.0})
    paper.main(["--only", "smj,plans,golden", "--list"])
    said = capsys.readouterr().out
    assert "golden, smj, plans (about" in said
    assert "plans: about 11 min" in said
    paper.main(["--only", "smj,plans,golden", "--list", "--full"])
    assert "golden, plans, smj (about 2.2 h)" in capsys.readouterr().out
    assert not ran


def test_one_that_is_not_known(ran: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert paper.main(["--only", "plan"]) == 2
    assert "did you mean" in capsys.readouterr().err
    assert not ran


def test_a_process_that_fails_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(paper, "LOGS", tmp_path)
    assert not paper.make("no-such", True)
    assert "FAILED in" in capsys.readouterr().out
    assert "there is no benchmark 'no-such'" in (tmp_path / "no-such.log").read_text()


def test_the_page_names_every_benchmark_and_every_figure() -> None:
    page = (ROOT / "docs" / "explanation" / "papers.md").read_text("utf-8")
    for name in bench.available():
        assert f"| `{name}` |" in page
    text = "".join((ROOT / "docs" / name).read_text("utf-8") for name in figures.MEASURED)
    for chart in (ROOT / "bench" / "results").glob("*.svg"):
        assert chart.name in text, chart.name
