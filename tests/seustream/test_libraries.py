"""`--library FILE.py`: users' functions in APAS queries, from the command line, and their
errors."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from seustream.cli import main
from seustream.compiler.errors import CompileError
from seustream.compiler.pipeline import compile_text
from seustream.errors import UserError
from seustream.libraries import load_libraries
from tests.engine.temporal import windows

QUERY = "where mine.last($S, 2) select out[s = agg.sum($S.v)]"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copy(windows.__file__, tmp_path / "windows.py")
    (tmp_path / "q.apas").write_text(QUERY)
    (tmp_path / "S.csv").write_text("ts,v\n1,10\n2,20\n3,30\n5,40\n")
    return tmp_path


GIVEN = ["q.apas", "--input", "S=S.csv"]
RESULTS = "ts,te,s\n1,2,10\n2,3,30\n3,5,50\n5,9223372036854775807,70\n"


def test_run(folder: Path) -> None:
    assert main(["run", *GIVEN, "--library", "windows.py", "--quiet"]) == 0
    assert (folder / "out.csv").read_text() == RESULTS


def test_explain(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *GIVEN, "--library", "windows.py"]) == 0
    text = capsys.readouterr().out
    assert "S [mine.last(n = 2)]" in text
    assert "lifetimes by mine.last(n = 2)" in text


def test_without_the_library(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *GIVEN]) == 2
    assert "there is no function mine.last" in capsys.readouterr().err


def test_apas_inside_a_file(folder: Path) -> None:
    (folder / "q.xsql").write_text(
        "CREATE STREAM S (v bigint);\n"
        f"CREATE STREAM two AS APAS $${QUERY}$$;\n"
        "SELECT two.s FROM two WHERE two.s > 10 WINDOW 1;"
    )
    given = ["q.xsql", "--input", "S=S.csv", "--library", "windows.py", "--quiet"]
    assert main(["run", *given]) == 0
    lines = (folder / "q0.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == ["30", "50", "70"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("no.py", None, "--library no.py: no such file"),
        ("lib.txt", "x", "--library lib.txt: no Python file"),
        ("lib.py", "def f(:", "lib.py:1: invalid syntax"),
        ("lib.py", "\n\nprint(1 / 0)", "lib.py:3: ZeroDivisionError: division by zero"),
        ("lib.py", "import sys\nsys.exit(0)", "lib.py:2: SystemExit: 0"),
        ("lib.py", "x = 1", "lib.py: it defines no LIBRARIES"),
        ("lib.py", "LIBRARIES = {}", "lib.py: it defines no LIBRARIES"),
        ("lib.py", "LIBRARIES = {'m': 3}", "lib.py: LIBRARIES['m'] is no dict of functions"),
        ("lib.py", "LIBRARIES = {'m': {'f': 3}}", "lib.py: m.f: 3 is no object of Scalar"),
        ("lib.py", "LIBRARIES = {'m': {'a b': 3}}", "lib.py: 'a b' is no name a query could"),
    ],
)
def test_errors(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, text: str | None, message: str
) -> None:
    if text is not None:
        (folder / name).write_text(text)
    assert main(["run", *GIVEN, "--library", name]) == 2
    assert f"seustream: {message}" in capsys.readouterr().err
    assert not (folder / "out.csv").exists()


def test_two_files_of_one_library(folder: Path) -> None:
    shutil.copy("windows.py", "again.py")
    with pytest.raises(UserError) as error:
        load_libraries([Path("windows.py"), Path("again.py")])
    assert list(error.value.messages) == ["again.py: mine.last is registered already"]


def test_a_function_that_fails_in_a_row(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bad.py").write_text(
        "from seustream.compiler.apas.streams import WindowFunction\n"
        "class Bad(WindowFunction):\n"
        "    def ends(self, ts, te):\n"
        "        return self.nothing\n"
        "LIBRARIES = {'bad': {'one': Bad()}}\n"
    )
    (folder / "q.apas").write_text("where bad.one($S) select [$S[T]]")
    assert main(["run", *GIVEN, "--library", "bad.py"]) == 2
    message = "bad.one(): AttributeError: 'Bad' object has no attribute 'nothing' (bad.py:4)"
    assert message in capsys.readouterr().err


def test_a_value_that_a_function_fails_to_give_is_a_fault(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "near.py").write_text(
        "from seustream.compiler.apas.functions import Overload, Scalar\n"
        "from seustream.compiler.apas.types import INTEGER\n"
        "class Near(Scalar):\n"
        "    overloads = (Overload((INTEGER,), INTEGER),)\n"
        "    def call(self, values):\n"
        "        return (60 // (values[0] - 20),)\n"
        "LIBRARIES = {'mine': {'near': Near()}}\n"
    )
    (folder / "q.apas").write_text("select out[n = mine.near($S.v), v = $S.v]")
    given = [*GIVEN, "--library", "near.py"]
    assert main(["run", *given]) == 0
    lines = (folder / "out.csv").read_text().splitlines()[1:]
    assert [line.split(",")[2:] for line in lines] == [
        ["-6", "10"],
        ["", "20"],
        ["6", "30"],
        ["3", "40"],
    ]
    err = capsys.readouterr().err
    assert "1 fault in out: ZeroDivisionError (near.py:6) in mine.near" in err
    (folder / "out.csv").unlink()
    assert main(["run", *given, "--strict"]) == 2
    assert "ZeroDivisionError (near.py:6) in mine.near" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        ("mine.twice(v)", "CREATE STREAM s AS APAS $$ ... $$ computes it"),
        ("agg.sum(v)", "write sum"),
        ("util.millis(v)", "write epoch_ms"),
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT v FROM S WHERE {} > 1 WINDOW NOW",
        "SELECT {} FROM S WINDOW NOW",
        "PATTERN ANY a FROM S WHERE {} > 1 WITHIN 1 s RETURN a.v",
    ],
)
def test_other_languages_name_the_function_they_do_not_call(
    call: str, hint: str, text: str
) -> None:
    with pytest.raises(CompileError) as error:
        compile_text("CREATE STREAM S (v bigint);\n" + text.format(call))
    (problem,) = error.value.problems
    name = call.partition("(")[0]
    assert f"{name} is a function of a library, which APAS alone calls" in problem.message
    assert hint in str(problem.hint)
