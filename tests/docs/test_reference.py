"""Compares the reference with the code: it lacks nothing, invents nothing, and its examples
hold."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import datetime
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from seustream.cli import COMMANDS, parser
from seustream.compiler.apas.compile import compile_query
from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.apas.scope import CODES
from seustream.compiler.apas.symbols import Schema
from seustream.compiler.apas.tree import from_lists
from seustream.compiler.catalogue import Column, Stream
from seustream.compiler.errors import CompileError
from seustream.compiler.language.types import INT, MILLISECONDS, VARCHAR, Kind
from seustream.compiler.pattern.statements import compile_pattern
from seustream.compiler.pipeline import Options, compile_text
from seustream.compiler.wjasip.assembler import assemble, disassemble
from seustream.cosim.bridge.mark import FORMAT
from seustream.cosim.golden import GoldenDevice
from seustream.engine.explain import SHOWN
from seustream.engine.graph import GraphRun
from seustream.engine.sites.explain import Block
from seustream.engine.sites.layout import SiteLayout
from seustream.engine.sites.messages import MESSAGES
from seustream.hdl import device, isa
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.device import LoadRefused
from tests.docs import functions
from tests.docs.blocks import ROOT, agrees, blocks, execute, outputs, sandbox

REFERENCE = ROOT / "docs" / "reference"


def page(name: str) -> str:
    return (REFERENCE / f"{name}.md").read_text(encoding="utf-8")


def tables(text: str) -> list[list[list[str]]]:
    """Returns every table of a page as rows of cells, the head first."""
    found: list[list[list[str]]] = [[]]
    for line in text.splitlines():
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
            row = [cell.strip().replace("\\|", "|") for cell in cells]
            if not all(re.fullmatch(r"-+", cell) for cell in row):
                found[-1].append(row)
        elif found[-1]:
            found.append([])
    return [rows for rows in found if rows]


def table(text: str, head: str) -> list[list[str]]:
    """Returns the rows of all tables whose first column has this head."""
    rows = [row for rows in tables(text) if rows[0][0] == head for row in rows[1:]]
    assert rows, f"no table of {head}"
    return rows


def codes(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


# --- X-SQL --------------------------------------------------------------------

STATEMENTS = sorted((REFERENCE / "statements").glob("*.md"))


@pytest.mark.parametrize("path", STATEMENTS, ids=lambda path: path.stem)
def test_a_page_of_a_statement_works_as_typed(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python blocks run in this process."""
    text = path.read_text(encoding="utf-8")
    assert path.stem == "index" or outputs(text)
    for block, shown in outputs(text):
        assert shown is not None, "an example shows what it prints"
        if block.language == "python":
            exec(block.text, {})
            assert agrees(shown.text, capsys.readouterr().out)
        else:
            assert agrees(shown.text, execute(block, tmp_path, sandbox(tmp_path)))


def test_every_statement_has_a_page() -> None:
    grammar = (ROOT / "compiler" / "xsql" / "xsql.lark").read_text(encoding="utf-8")
    (first,) = re.findall(r"\?start: (.*?)\n\n", grammar, flags=re.DOTALL)
    pages = " ".join(path.stem.replace("-", "_") for path in STATEMENTS)
    for rule in re.findall(r"\w+", first):
        assert rule.split("_")[0].replace("query", "select") in f"{pages} describe", rule


def test_xsql_examples_compile() -> None:
    text = "".join(block.text for block in blocks(page("xsql")) if block.language == "xsql")
    compiled = compile_text(text)
    assert {"careful", "near"} <= {*compiled.program.names}
    near = next(query for query in compiled.program.queries if query.name == "near")
    assert [item.name for item in near.items] == ["a", "twice", "upper(note)"]


OTHER_SQL = (
    "CREATE STREAM R (a int, b real, c varchar(9)); CREATE STREAM S (k int NOT NULL, v int);"
)
REFUSED = [(codes(row[0])[0], row[1]) for row in table(page("other-sql"), "refused")]


@pytest.mark.parametrize(("refused", "instead"), REFUSED, ids=lambda cell: cell[:40])
def test_what_is_refused_says_what_to_write_instead(refused: str, instead: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_text(f"{OTHER_SQL} {refused}")
    hint = caught.value.to_json()[0]["hint"]
    assert hint
    assert not str(hint).startswith(("the form is", "known ", "did you mean", "a statement begins"))
    written = [
        code
        for code in codes(instead)
        if code.startswith(("SELECT", "CREATE", "REGISTER", "DESCRIBE"))
    ]
    assert written or instead.startswith("none")
    for text in written:
        compile_text(f"{OTHER_SQL} {text}")


EXPRESSIONS = [(row[0], row[1]) for row in table(page("xsql"), "expression")]


@pytest.mark.parametrize(("expression", "value"), EXPRESSIONS)
def test_expressions_have_the_values_shown(expression: str, value: str) -> None:
    text = f"CREATE STREAM one (n int); SELECT {codes(expression)[0]} AS v FROM one WINDOW NOW"
    compiled = compile_text(text)
    driver = GraphRun(compiled, GoldenDevice(compiled.options.config))
    driver.push("one", pa.table({"ts": [0], "n": pa.nulls(1, pa.int32())}))
    ((_, rows),) = driver.finish()
    assert shown(rows.column("v")[0].as_py()) == codes(value)[0]


def shown(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    if isinstance(value, datetime.date):
        return f"DATE '{value}'"
    return f"'{value}'" if isinstance(value, str) else repr(value)


def test_the_page_of_functions_is_that_of_the_registry() -> None:
    assert page("functions") == functions.text(), "run python -m tests.docs.refresh"


def test_examples_of_functions_bind() -> None:
    create = "CREATE STREAM one (n int, x double precision, y int, name varchar, t timestamp);"
    for row in table(page("functions"), "function"):
        compile_text(f"{create} SELECT {codes(row[3])[0]} AS v FROM one WINDOW NOW")
    for row in table(page("functions"), "aggregate"):
        compile_text(f"{create} SELECT {codes(row[4])[0]} AS v FROM one WINDOW 2")


def test_types_and_their_codes() -> None:
    known = {kind.value for kind in Kind} - {"null", "error", "list"}
    rows = table(page("xsql"), "type")
    names = [name.partition("(")[0] for row in rows for name in codes(row[0])]
    assert known <= set(names)
    for row in rows:
        for name in codes(row[0]):
            written = name.replace("(n)", "(4)").replace("(p,s)", "(12,2)")
            for operator, cell in (("=", row[2]), ("<", row[3])):
                text = (
                    f"CREATE STREAM R (x {written}); CREATE STREAM S (y {written});"
                    f"SELECT * FROM R, S WHERE x {operator} y WINDOW 1"
                )
                encoding = compile_text(text).layout.encodings.get(("R", "x"))
                shown = "none" if encoding is None else str(encoding)
                assert shown in (f"{cell}, 32 bits", cell), name


def test_units_are_all_there() -> None:
    (units,) = re.findall(r"Units: (.*?)\.", page("xsql"), flags=re.DOTALL)
    assert codes(units) == list(MILLISECONDS)


def test_statements_are_all_there() -> None:
    grammar = (ROOT / "compiler" / "xsql" / "xsql.lark").read_text(encoding="utf-8")
    keywords = set(re.findall(r'"([A-Z]+)"i', grammar)) - {"MIN"}
    assert keywords <= set(re.findall(r"[A-Z]+", page("xsql"))), "a keyword is not mentioned"


# --- errors -------------------------------------------------------------------


def kinds_in_the_compiler(apas: bool) -> set[str]:
    """Returns the kinds of problems of APAS or of the other languages. The language core reports
    its own under APAS's names."""
    found = set(CODES.values()) if apas else set()
    for path in (ROOT / "compiler").rglob("*.py"):
        if ("apas" in path.relative_to(ROOT).parts) != apas:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args:
                called = node.func
                name = (
                    called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
                )
                first = node.args[0]
                value = first.value if isinstance(first, ast.Constant) else None
                if name in ("add", "fail", "_fail", "Problem") and isinstance(value, str):
                    found.add(value)
    return found


KINDS = table(page("errors"), "kind")


def test_error_kinds_are_all_there() -> None:
    listed = [codes(row[0])[0] for row in KINDS]
    assert listed == sorted(listed)
    of_patterns = {
        kind for kind in kinds_in_the_compiler(apas=False) if re.fullmatch(r"P\d+", kind)
    }
    assert set(listed) == kinds_in_the_compiler(apas=False) - of_patterns


def test_codes_of_patterns_are_all_there() -> None:
    listed = [codes(row[0])[0] for row in table(page("pattern"), "code")]
    assert listed == [f"P{number:03}" for number in range(1, 21)]


def test_clauses_and_strategies_of_patterns_compile() -> None:
    shown = " ".join(row[0] for row in table(page("pattern"), "part"))
    assert all(word in shown for word in ("USING ANY", "USING NEXT", "USING STRICT", "WITHIN"))


@pytest.mark.parametrize("row", table(page("pattern"), "written"), ids=lambda row: row[0])
def test_conditions_of_patterns_compile(row: list[str]) -> None:
    of = Stream("s", (Column("type", VARCHAR), Column("x", INT), Column("y", INT)))
    for text in codes(row[0]):
        element = "A" if text.startswith(":") or text == "v.ts" else "A+"
        step = "i-1" in text
        where = f"WHERE {text} > 0 " if step else ""
        item = "1" if step else text
        compile_pattern(
            f"PATTERN {element} v; A a {where}WITHIN 1 s RETURN {item}", of, parameters={"p": 1}
        )


APAS_KINDS = table(page("errors"), "APAS kind")


def test_apas_kinds_are_all_there() -> None:
    listed = [codes(row[0])[0] for row in APAS_KINDS]
    assert listed == sorted(listed)
    assert set(listed) == kinds_in_the_compiler(apas=True)


@pytest.mark.parametrize("row", APAS_KINDS, ids=lambda row: row[0].strip("`"))
def test_apas_examples_are_of_their_kind(row: list[str]) -> None:
    schemas = {
        "I": [["v", "INTEGER"], ["d", "DOUBLE"], ["g", [["x", "DOUBLE"]]]],
        "J": [["v", "INTEGER"]],
        "K": [["w", "INTEGER"]],
    }
    catalogue = {name: Schema(from_lists(name, lists)) for name, lists in schemas.items()}
    with pytest.raises(CompileError) as raised:
        compile_query(codes(row[2])[0], catalogue)
    assert [problem.kind for problem in raised.value.problems] == codes(row[0])


def test_apas_functions_are_all_there() -> None:
    listed = [
        name
        for row in table(page("apas"), "function")
        for name in re.findall(r"\w+\.\w+(?=\()", row[0])
    ]
    assert sorted(listed) == sorted(Libraries().names)


@pytest.mark.parametrize("row", [row for row in KINDS if row[2]], ids=lambda row: row[0].strip("`"))
def test_error_examples_are_of_their_kind(row: list[str]) -> None:
    (before,) = re.findall(r"follow `(.*?)`", page("errors"))
    with pytest.raises(CompileError) as raised:
        compile_text(f"{before} {codes(row[2])[0]}", options=Options(fit="strict"))
    assert [problem.kind for problem in raised.value.problems] == [codes(row[0])[0]]


def test_exceptions_are_where_they_are_said_to_be() -> None:
    listed = set()
    rows = [*table(page("errors"), "exception"), *table(page("pattern"), "exception")]
    for row in rows:
        ((name,), (module,)) = codes(row[0]), codes(row[1])
        assert issubclass(getattr(importlib.import_module(module), name), Exception)
        listed.add(name)
    listed |= {"PatternError", "InternalError"}  # the base class of all, and an internal error
    for module in (
        "seustream.engine.host.errors",
        "seustream.engine.pattern.errors",
        "seustream.errors",
    ):
        for name, value in vars(importlib.import_module(module)).items():
            own = isinstance(value, type) and value.__module__ == module
            assert not own or name in listed


# --- command line -------------------------------------------------------------


def options_of(command: argparse.ArgumentParser) -> dict[str, list[str]]:
    """Returns the options of a command with their choices."""
    found = {}
    for action in command._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                found |= options_of(one)
            continue
        name = next((o for o in action.option_strings if o.startswith("--")), None)
        name = name or next(iter(action.option_strings), action.metavar or action.dest)
        found[str(name)] = [str(choice) for choice in action.choices or ()]
    return found


def described_options(section: str) -> dict[str, list[str]]:
    found = {}
    for row in table(section, "option"):
        written = codes(row[0])[0].replace(" …", "")
        name, _, value = written.partition(" ")
        found[name] = value.split("|") if "|" in value else []
    return found


def test_commands_and_options_are_all_there() -> None:
    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", page("command-line"), re.M | re.S))
    shared = described_options(sections["Options of compile, explain, run and feed"])
    commands = next(
        action.choices for action in parser()._actions if isinstance(action.choices, dict)
    )
    assert set(commands) == set(COMMANDS)
    assert {name.removeprefix("seustream ") for name in sections} - set(commands) == {
        "Options of compile, explain, run and feed"
    }
    for name, command in commands.items():
        section = sections[f"seustream {name}"]
        described = described_options(section) if "| option |" in section else {}
        if name in ("compile", "explain", "run", "feed"):
            described |= shared
        expected = options_of(command)
        assert set(described) == set(expected), name
        for option, choices in expected.items():
            assert not choices or described[option] == choices, f"{name} {option}"
    (row,) = (row for row in table(sections["seustream explain"], "option") if "STAGE" in row[0])
    assert codes(row[1]) == list(SHOWN)


def test_joins_across_sites_are_all_there() -> None:
    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", page("sites"), re.M | re.S))
    options = [codes(row[0])[0] for row in table(sections["Layout"], "option")]
    assert options == [field.name for field in dataclasses.fields(SiteLayout)]
    told = [codes(row[0])[0] for row in table(sections["Messages"], "message")]
    assert sorted(told) == sorted(MESSAGES)
    members = [codes(row[0])[0] for row in table(sections["Record"], "member")]
    assert members == [field.name for field in dataclasses.fields(Block)]


# --- device -------------------------------------------------------------------


def test_configurations_and_limits() -> None:
    text = page("configurations")
    names = list(CONFIGURATIONS)
    seen = {"name"}
    for row in table(text, "parameter"):
        (member,) = codes(row[0])
        seen.add(member)
        values = [str(getattr(CONFIGURATIONS[name], member)) for name in names]
        assert row[2:] == values, member
    assert [codes(cell)[0] for cell in tables(text)[0][0][2:]] == names
    for row in table(text, "limit"):
        (member,) = codes(row[2])
        seen.add(member)
        if row[1].isdecimal():
            assert getattr(DeviceConfig(), member) == int(row[1])
    assert seen == {field.name for field in dataclasses.fields(DeviceConfig)}
    assert DeviceConfig().longest_range == 2**47 - 1
    assert DeviceConfig().longest_rows == 2**31 - 1


def test_instructions() -> None:
    text = page("instruction-set")
    written = {codes(row[0])[0].split()[0]: codes(row[1])[0] for row in tables(text)[1][1:]}
    assert set(written) == {kind.MNEMONIC for kind in isa.INSTRUCTIONS}
    for kind in isa.INSTRUCTIONS:
        fixed = ""
        for part in kind.LAYOUT:
            fixed += part if isinstance(part, str) else "x" * part[1]
        bits = written[kind.MNEMONIC]
        assert len(bits) == isa.WORD_BITS
        assert re.sub("[a-z]", "x", bits) == fixed, kind.MNEMONIC
    head, symbols = table_of_conditions(text)
    assert [isa.Condition(int(number)).symbol for number in head] == symbols
    for row in table(text, "word"):
        (word,), (instruction,) = codes(row[0]), codes(row[1])
        assert disassemble([int(word, 16)], "RST") == instruction
        assert assemble(instruction, "RST") == (int(word, 16),)


def table_of_conditions(text: str) -> tuple[list[str], list[str]]:
    (rows,) = (rows for rows in tables(text) if rows[0][0] == "c")
    return rows[0][1:], [codes(cell)[0] for cell in rows[1][1:]]


def test_registers() -> None:
    rows = [row[0] for row in table(page("instruction-set"), "registers")]
    ranges = (
        isa.FACTOR_REGISTERS,
        isa.SCRATCH_REGISTERS,
        isa.WINDOW_SELECTION_REGISTERS,
        isa.PROBE_SELECTION_REGISTERS,
    )
    want = [f"{r.start}–{r.stop - 1}" for r in ranges] + [str(isa.TRUE_REGISTER)]
    assert rows == want


def test_device_contract() -> None:
    text = page("device-contract")
    members = {re.split(r"\W", codes(row[0])[0])[0] for row in table(text, "member")}
    known = {*vars(device.Device), *vars(device.Clocked)}
    assert members == {name for name in known if not name.startswith("_")}
    counters = [codes(row[0])[0] for row in table(text, "counter")]
    assert counters == [field.name for field in dataclasses.fields(device.Status)]
    for record in (device.Batch, device.Results, device.HandedOver, device.Groups):
        for field in dataclasses.fields(record):
            assert f"`{field.name}`" in text, field.name
    rules = re.findall(r"^(\d)\. \*\*([\w ]+?)\.?\*\*", text, re.M)
    documented = re.findall(r"^(\d)\. \*([\w ]+?)\.?\*", str(device.__doc__), re.M)
    assert [rule[0] for rule in rules] == [rule[0] for rule in documented]


def test_image() -> None:
    text = page("image")
    compiled = compile_text("CREATE STREAM R (a int); SELECT * FROM R, R S WINDOW 1")
    image = compiled.image
    assert image[:4] == b"WJAS"
    assert int.from_bytes(image[4:6], "little") == 2
    assert "`WJAS`" in text
    sections = [row[0] for row in table(text, "section")]
    assert sections == [field.name for field in dataclasses.fields(device.Tables)]
    refused = {name for row in table(text, "table") for name in codes(row[0])}
    fields = (*dataclasses.fields(device.Tables), *dataclasses.fields(device.Area))
    assert refused - {field.name for field in fields} == {"join rows", "interest", "terms"}
    assert {field.name for field in fields} - refused == {"areas"}
    for altered in (image[:-1], image[:40] + b"\0" + image[41:], b"X" + image[1:]):
        with pytest.raises(LoadRefused):
            GoldenDevice(compiled.options.config).load(altered)
    for free in ("name", "lanes", "indexes", "probe_fifo_depth", "output_fifo_depth"):
        other = {"name": "x", "lanes": 0, "indexes": 0}.get(free, 7)
        config = dataclasses.replace(compiled.options.config, **{free: other})
        GoldenDevice(config).load(image)
    with pytest.raises(LoadRefused):
        GoldenDevice(CONFIGURATIONS["tiny"]).load(image)


def test_nesting_limits() -> None:
    text = page("configurations")
    (deep, parentheses) = map(int, re.findall(r"(\d+) operators and (\d+) parentheses", text)[0])
    stream = "CREATE STREAM R (a int); SELECT * FROM R WHERE "
    for condition, most in (
        (lambda n: "(" * n + "a = 1" + ")" * n, parentheses),
        (lambda n: "a" + " + a" * (n - 1) + " = 1", deep),
    ):
        compile_text(f"{stream}{condition(most)} WINDOW 1", options=Options())
        with pytest.raises(CompileError, match=r"stand within|are open"):
            compile_text(f"{stream}{condition(most + 1)} WINDOW 1")


def test_the_format_of_the_journal() -> None:
    said = (ROOT / "docs/reference/bridge.md").read_text()
    assert f"names the format, {FORMAT}," in said


def test_pages_are_all_linked_from_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for path in sections_of_docs():
        assert f"({path.relative_to(ROOT / 'docs')})" in index, path.name


def sections_of_docs() -> Iterator[Path]:
    for folder in ("how-to", "reference", "explanation"):
        yield from sorted((ROOT / "docs" / folder).glob("*.md"))


def test_promises_name_tests_that_there_are() -> None:
    said = (ROOT / "docs/reference/promises.md").read_text()
    named = re.findall(r"`(test_\w+\.py)(?:::(\w+))?`", said)
    assert len(named) > 30
    texts: dict[str, str] = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        texts[path.name] = texts.get(path.name, "") + path.read_text()
    assert not [each for each in named if f"def {each[1]}" not in texts.get(each[0], "")]
