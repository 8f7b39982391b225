"""`seustream compile`: the files it writes, and query sets with nothing to write."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from seustream.cli import main
from seustream.compiler.wjasip.image import decode
from seustream.hdl.config import CONFIGURATIONS
from tests.seustream.texts import JOIN, STREAMS, TICKS, names


@pytest.fixture(autouse=True)
def query(here: Path) -> None:
    (here / "q.xsql").write_text(STREAMS + JOIN)


def test_statistics_name_streams_there_are(capfd: pytest.CaptureFixture[str]) -> None:
    Path("s.json").write_text('{"Rx": {"rows": 5}}')
    assert main(["compile", "q.xsql", "--statistics", "s.json"]) == 2
    assert "s.json: there is no stream rx" in capfd.readouterr().err
    Path("s.json").write_text('{"R": {"distinct": {"zz": 5}}}')
    assert main(["compile", "q.xsql", "--statistics", "s.json"]) == 2
    assert "s.json: stream r has no column zz" in capfd.readouterr().err


def test_compile_writes_image_manifest_and_listing(capfd: pytest.CaptureFixture[str]) -> None:
    Path("s.json").write_text('{"R": {"rows": 5, "distinct": {"a": 7}}}')
    assert main(["compile", "q.xsql", "-o", "image", "--statistics", "s.json"]) == 0
    assert names("image") == ["image/q.json", "image/q.lst", "image/q.wjas"]
    tables = decode(Path("image/q.wjas").read_bytes(), CONFIGURATIONS["default"])
    assert tables.streams == 2
    manifest = json.loads(Path("image/q.json").read_text())
    assert manifest["source"]["text"] == STREAMS + JOIN
    assert manifest["image"]["bytes"] == Path("image/q.wjas").stat().st_size
    assert manifest["options"]["statistics"] == {"r": {"rows": 5, "distinct": {"a": 7}}}
    assert [query["name"] for query in manifest["queries"]] == ["q0"]
    assert "30080   CMP 0,R0,=,0" in Path("image/q.lst").read_text()
    assert "1 query, 1 in the device" in capfd.readouterr().out


def test_queries_without_a_file_have_a_plain_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["compile", "-c", STREAMS + JOIN, "-o", "given"]) == 0
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(f"\ufeff{STREAMS}{JOIN}".encode()))
    )
    assert main(["compile", "-", "-o", "read"]) == 0
    for folder in ("given", "read"):
        found = [f"{folder}/query.{kind}" for kind in ("json", "lst", "wjas")]
        assert names(folder) == found
        assert json.loads(Path(found[0]).read_text())["image"]["file"] == "query.wjas"


def test_the_words_of_an_image(capsys: pytest.CaptureFixture[str]) -> None:
    text = "CREATE STREAM R (a int); CREATE STREAM S (a int);"
    Path("q.xsql").write_text(f"{text} SELECT * FROM R, S WHERE R.a = S.a WINDOW RANGE 9")
    assert main(["compile", "q.xsql", "--config", "tiny", "--words", "-o", "out"]) == 0
    assert "register writes" in capsys.readouterr().out
    assert len(Path("out/q.words").read_bytes()) % 12 == 0
    assert main(["compile", "q.xsql", "--config", "tiny", "-o", "without"]) == 0
    assert not Path("without/q.words").exists()


def test_within_is_wanted_where_input_does_not_end(capfd: pytest.CaptureFixture[str]) -> None:
    Path("q.xsql").write_text(TICKS + "PATTERN A RETURN *;")
    assert main(["compile", "q.xsql"]) == 2
    assert "P010" in capfd.readouterr().err


def test_there_is_nothing_to_compile(capfd: pytest.CaptureFixture[str]) -> None:
    Path("q.xsql").write_text(TICKS + "PATTERN A WITHIN 1 s RETURN *;")
    assert main(["compile", "q.xsql"]) == 2
    assert "nothing for a device" in capfd.readouterr().err


def test_a_set_that_is_spread_has_no_single_image(capfd: pytest.CaptureFixture[str]) -> None:
    columns = ", ".join(f"{name} int" for name in "kvwxy")
    Path("wide.xsql").write_text(
        f"CREATE STREAM a ({columns}); CREATE STREAM b ({columns});"
        "REGISTER QUERY first AS SELECT * FROM a, b WHERE a.k = b.k AND a.v = b.v WINDOW ROWS 5;"
        "REGISTER QUERY second AS SELECT * FROM a, b WHERE a.w = b.w AND a.x = b.x WINDOW ROWS 5;"
        "REGISTER QUERY third AS SELECT * FROM a, b WHERE a.k = b.k AND a.y = b.y WINDOW ROWS 5;"
    )
    assert main(["compile", "wide.xsql", "--devices", "2", "-o", "out"]) == 2
    said = capfd.readouterr().err
    assert "the set is spread over 2 devices, and an image is for one" in said
    assert "text 1: first, second; text 2: third" in said
    assert not Path("out").exists()
