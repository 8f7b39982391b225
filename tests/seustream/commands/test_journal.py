"""`seustream journal` on intact journals, damaged journals, and folders that are none."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from seustream import connect
from seustream.cli import main
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.limits import USUAL
from tests.cosim.bridge.serving import (
    NAMES,
    QUERIES,
    bridge,
    compiled,
    cut,
    feed_epoch,
    multiset,
    results,
    streams,
    wanted,
)

ROWS = streams(120, 4)
EPOCHS = cut(ROWS, 6)


def fed(folder: Path, snapshots: bool = False) -> Path:
    """Makes a journal of five epochs, and a sixth that is only staged."""
    limits = replace(USUAL, journal_bytes=1 if snapshots else 1 << 30)
    with bridge(folder, limits=limits) as (_, url), BridgeClient(url) as client:
        client.load(compiled())
        for epoch in range(5):
            feed_epoch(client, epoch, EPOCHS[epoch])
            client.flush()
        feed_epoch(client, 5, EPOCHS[5], commit=False)
    return folder


def part_of(folder: Path, epoch: int) -> Path:
    """Returns the file with an epoch's rows of R."""
    said = f'"stream":"R","epoch":{epoch},'.encode()
    return next(
        path
        for path in (folder / "staged").iterdir()
        if said in path.read_bytes().replace(b" ", b"")
    )


def flip(path: Path, at: int = 100) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_check_says_what_is_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = fed(tmp_path / "j")
    before = contents(folder)
    assert main(["journal", "check", str(folder)]) == 0
    said = capfd.readouterr().out
    assert "journal of format 3, generation 1\na query set is loaded\n" in said
    assert "records: 5; of these epochs: 5, rows 200\nwriter w: epochs 0 to 4\n" in said
    assert "parts: 10 of epochs, 2 of none yet\nsound\n" in said
    log = next(folder.glob("log-*.b"))
    log.write_bytes(log.read_bytes()[:500])
    assert main(["journal", "check", str(folder)]) == 0
    flip(folder / "journal", 26)
    assert main(["journal", "check", str(folder)]) == 0
    assert "made good when a bridge opens it" in capfd.readouterr().out
    assert set(contents(folder)) == set(before)


def test_what_is_before_the_damage_can_be_saved(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A bridge opens the new journal and goes on with the next epoch."""
    folder, new = fed(tmp_path / "j"), tmp_path / "new"
    part = part_of(folder, 3)
    flip(part)
    before = contents(folder)
    assert main(["journal", "check", str(folder)]) == 2
    said = capfd.readouterr().out
    assert f"damaged: {part}: byte 0: not the bytes that were written" in said
    assert "can be saved: the first 3 records\n  writer w: up to epoch 2\n" in said
    assert "lost then: 2 records: epoch 3 of w, epoch 4 of w" in said
    assert main(["journal", "repair", str(folder), "-o", str(new)]) == 2
    said = capfd.readouterr().err
    assert "lost then: 2 records" in said
    assert "--accept-loss" in said
    assert not new.exists()
    assert main(["journal", "repair", str(folder), "-o", str(new), "--accept-loss"]) == 0
    assert contents(folder) == before
    assert main(["journal", "check", str(new)]) == 0
    with bridge(new) as (_, url), BridgeClient(url) as client:
        for epoch in range(3, 6):
            feed_epoch(client, epoch, EPOCHS[epoch], attempt="again")
        client.end()
        assert results(client, NAMES) == wanted(compiled(), ROWS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["j", "new"]


def test_a_log_can_be_saved_up_to_the_damage(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, new = fed(tmp_path / "j", snapshots=True), tmp_path / "new"
    with bridge(folder) as (_, url), BridgeClient(url) as client:
        feed_epoch(client, 5, EPOCHS[5])
    for log in folder.glob("log-*"):
        data = log.read_bytes()
        flip(log, data.index(b'"kind":"epoch"'))
    assert main(["journal", "check", str(folder)]) == 2
    said = capfd.readouterr().out
    assert "snapshot: snapshot-" in said
    assert "can be saved: the first 0 records\n" in said
    assert "lost then: whatever the log had from the damage on" in said
    assert main(["journal", "repair", str(folder), "-o", str(new), "--accept-loss"]) == 0
    with bridge(new) as (_, url), BridgeClient(url) as client:
        feed_epoch(client, 5, EPOCHS[5], attempt="again")
        client.end()
        assert results(client, NAMES) == wanted(compiled(), ROWS)


@pytest.mark.parametrize("fault", ["none", "part", "snapshot", "no log"])
def test_rows_can_be_taken_out(
    fault: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, out = fed(tmp_path / "j", snapshots=fault == "snapshot"), tmp_path / "out"
    want = pa.concat_tables([EPOCHS[n]["R"] for n in range(6) if fault != "snapshot" or n == 5])
    if fault == "part":
        flip(part_of(folder, 2))
        want = pa.concat_tables([EPOCHS[n]["R"] for n in (0, 1, 3, 4, 5)])
    elif fault == "snapshot":
        flip(next(folder.glob("snapshot-*")))
        assert main(["journal", "repair", str(folder), "-o", str(out), "--accept-loss"]) == 2
        assert "seustream journal export" in capfd.readouterr().err
    elif fault == "no log":
        for log in folder.glob("log-*"):
            log.unlink()
    assert main(["journal", "export", str(folder), "-o", str(out)]) == 0
    said = capfd.readouterr().err
    assert ("left out: " in said) == (fault in ("part", "snapshot"))
    found = parquet.read_table(out / "streams" / "R.parquet")
    assert multiset(found.select(["ts", "a", "b"])) == multiset(want)
    assert set(found.column_names) > {"journal_writer", "journal_epoch", "journal_committed"}
    listed = json.loads((out / "export.json").read_text())
    assert listed["rows"]["streams/R.parquet"] == want.num_rows
    assert bool(listed["damages"]) == (fault != "none")
    if fault != "no log":
        assert (out / "queries.xsql").read_text() == QUERIES
    if fault == "none":
        assert sum(found.column("journal_committed").to_pylist()) == 100


def test_windows_and_results_are_taken_out(tmp_path: Path) -> None:
    folder, out = fed(tmp_path / "j", snapshots=True), tmp_path / "out"
    assert main(["journal", "export", str(folder), "-o", str(out)]) == 0
    first = {name: table.slice(0, 100) for name, table in ROWS.items()}
    found = multiset(parquet.read_table(out / "results" / "large.parquet"))
    assert found.total() > 3
    assert found <= wanted(compiled(), first)["large"]
    kept = multiset(parquet.read_table(out / "windows" / "R.parquet"))
    assert kept.total() > 10
    assert kept <= multiset(first["R"])


def test_queries_that_keep_no_rows_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = tmp_path / "j", tmp_path / "out"
    with bridge(folder) as (opened, url), connect(url, writer="w") as con:
        con.sql(
            "CREATE STREAM r (a int); CREATE STREAM s (d int);"
            "REGISTER QUERY left AS SELECT a, d FROM r LEFT JOIN s ON a = d WINDOW RANGE 1 hour;"
            "REGISTER QUERY hours AS SELECT count(*) AS n FROM r GROUP BY TUMBLE(ts, 1 hour)"
        )
        con.push("r", {"ts": [1, 2], "a": [3, 4]})
        con.push("s", {"ts": [2], "d": [4]})
        list(con.results())
        opened.close(save=True)
    assert main(["journal", "export", str(folder), "-o", str(out)]) == 0
    said = json.loads((out / "export.json").read_text())
    assert said["without_rows"] == ["hours"]
    assert "left out: rows in the windows of hours" in capsys.readouterr().err
    assert parquet.read_table(out / "windows" / "r.parquet").column("a").to_pylist() == [3, 4]


def test_streams_made_anew_are_taken_out(tmp_path: Path) -> None:
    """Its columns are others, also those of the query over it; each kind of rows has a file, which
    takes no other's name."""
    folder, out = tmp_path / "j", tmp_path / "out"
    with bridge(folder) as (_, url), connect(url, writer="w") as con:
        con.sql(
            'CREATE STREAM u (x int); CREATE STREAM "t.2" (x int); SELECT x FROM u; SELECT x FROM "t.2"'
        )
        con.push("t.2", {"ts": [1], "x": [9]})
        for column, values in (("a int", [5, 6]), ("b varchar", ["x"]), ("a int", [7])):
            con.sql(f"CREATE STREAM t ({column}); REGISTER QUERY q AS SELECT * FROM t")
            con.push("t", {"ts": [*range(len(values))], column[0]: values})
            list(con.results())
            con.sql("DROP QUERY q")
            con.sql("DROP STREAM t")
    assert main(["journal", "export", str(folder), "-o", str(out)]) == 0
    listed = json.loads((out / "export.json").read_text())
    of = [file for file, name in listed["names"].items() if name == "t"]
    found = {
        tuple(rows.column(1).to_pylist()) for rows in map(parquet.read_table, (out / f for f in of))
    }
    assert found == {(5, 6, 7), ("x",)}
    assert {listed["rows"][file] for file in of} == {3, 1}
    other = [file for file, name in listed["names"].items() if name == "t.2"]
    assert [parquet.read_table(out / file).column("x").to_pylist() for file in other] == [[9]]


@pytest.mark.parametrize("refusal", [errno.EACCES, errno.EROFS])
def test_a_journal_that_may_only_be_read(
    refusal: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is on a file system that a fault made read-only, or another user's. It is still locked."""
    folder, plain = fed(tmp_path / "j"), os.open

    def opened(path: str | Path, flags: int, *rest: int, **more: int) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY | os.O_CREAT) and folder in Path(path).parents:
            raise OSError(refusal, "refused", str(path))
        return plain(path, flags, *rest, **more)

    with monkeypatch.context() as limited:
        limited.setattr(os, "open", opened)
        assert main(["journal", "check", str(folder)]) == 0, capfd.readouterr().err
        assert main(["journal", "export", str(folder), "-o", str(tmp_path / "out")]) == 0
    with bridge(folder), monkeypatch.context() as limited:
        limited.setattr(os, "open", opened)
        assert main(["journal", "check", str(folder)]) == 2
        assert "is the journal of a bridge that is running" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["check", "none"], "none: no such folder"),
        (["check", "empty"], "empty: there is no journal in it"),
        (["check", "foreign"], "no journal puts there thesis.txt"),
        (["export", "j", "-o", "empty"], "empty: is there already"),
        (["repair", "j", "-o", "empty"], "empty: is there already"),
        (["check", "held"], "is the journal of a bridge that is running"),
    ],
)
def test_what_is_refused(
    arguments: list[str],
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("foreign").mkdir()
    Path("foreign/thesis.txt").write_text("x")
    fed(Path("j"))
    with bridge(Path("held")):
        assert main(["journal", *arguments]) == 2
    assert complaint in capfd.readouterr().err
