"""The compiler end to end: its stages, and that no text crashes it.

The random texts come from fixed seeds; a failing test prints the seed with the text.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from seustream.compiler import plan
from seustream.compiler.errors import CompileError
from seustream.compiler.pipeline import (
    PASSES,
    PLANS,
    STAGES,
    Compilation,
    Options,
    compile_text,
)
from seustream.compiler.wjasip.image import decode
from seustream.hdl.config import CONFIGURATIONS
from tests.compiler.plan.cases import FOLDER, STREAMS, cases
from tests.compiler.plan.eight import EIGHT
from tests.compiler.plan.random_queries import query
from tests.compiler.xsql.problems import FIXTURES, mistakes

# --- stages -------------------------------------------------------------------

NAMES = (
    "tokens",
    "tree",
    "predicate",
    "dnf",
    "subqueries",
    "requests",
    "routes",
    "areas",
    "listing",
    "split",
)
FILLED: dict[str, Callable[[Compilation], object]] = {
    "tokens": lambda c: c.tokens,
    "tree": lambda c: c.statements,
    "predicate": lambda c: c.program != c.written,
    "dnf": lambda c: c.normalised,
    "subqueries": lambda c: c.subqueries,
    "requests": lambda c: c.requests.rows,
    "routes": lambda c: c.routes.tags,
    "areas": lambda c: c.tables.areas,
    "listing": lambda c: c.programs,
    "split": lambda c: c.image,
}
TEXT = STREAMS + "SELECT * FROM R, S WHERE NOT R.a <> S.d AND R.b > 5 WINDOW RANGE 100;"


def test_stages_in_order() -> None:
    assert STAGES == NAMES
    assert list(FILLED) == list(NAMES)
    assert [stage for stage, _ in PASSES] == sorted([s for s, _ in PASSES], key=NAMES.index)


def test_every_pass_has_its_fixture() -> None:
    """A pass shows a before and an after in its docstring."""
    passes = set()
    for path in Path(plan.__file__).parent.glob("*.py"):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if re.search(r"^before .*^after ", text, re.DOTALL | re.MULTILINE):
            passes.add(path.stem)
    # Two planners make routes, each with its own fixture.
    assert {path.stem for path in FOLDER.iterdir()} == passes - {"routes"} | {"cost", "thesis"}


@pytest.mark.parametrize("stage", NAMES)
def test_stop_after(stage: str) -> None:
    """Every result up to the stage exists, and no later one."""
    c = compile_text(TEXT, stop_after=stage)
    done = NAMES.index(stage) + 1
    assert [bool(filled(c)) for filled in FILLED.values()] == [i < done for i in range(len(NAMES))]
    if stage == "dnf":
        assert c.layout.slots
        assert c.divisions
    if stage == "areas":
        assert all(area.program == () for area in c.tables.areas)


def test_the_whole_way_is_the_default() -> None:
    assert compile_text(TEXT).image == compile_text(TEXT, stop_after="split").image != b""


def test_an_unknown_stage_is_refused_before_anything_else() -> None:
    with pytest.raises(ValueError, match=r"no stage 'code'; stages: tokens, tree, .*split"):
        compile_text("not even X-SQL", stop_after="code")


def test_an_unknown_plan_is_refused() -> None:
    assert list(PLANS) == ["cost", "thesis"]
    with pytest.raises(ValueError, match="no plan 'best'; plans: cost, thesis"):
        compile_text(TEXT, options=Options(plan="best"))


def test_a_stage_before_the_mistake_succeeds() -> None:
    text = "SELECT nope FROM nowhere WINDOW 1"
    assert len(compile_text(text, stop_after="tokens").tokens) == 6
    with pytest.raises(CompileError):
        compile_text(text, stop_after="tree")


def test_an_error_names_the_file() -> None:
    with pytest.raises(CompileError, match=r"^road\.xsql:1:1: "):
        compile_text("nonsense", "road.xsql")


# --- what comes out -----------------------------------------------------------


def test_conditions_are_kept_as_written_and_simplified() -> None:
    c = compile_text(TEXT)
    assert c.written.queries[0].where != c.program.queries[0].where
    assert c.streams == c.written.streams
    assert c.slot_names == ("R", "S")


def test_queries_of_the_device_are_numbered_among_themselves() -> None:
    c = compile_text(
        STREAMS
        + "SELECT a FROM R WINDOW 1; SELECT * FROM R, S WINDOW 1; SELECT * FROM R, S WHERE 1 = 2"
        " WINDOW 1; SELECT * FROM S, T WINDOW 1"
    )
    assert [one.division.query.name for one in c.device_queries] == ["q1", "q3"]
    assert len(c.tables.windows) == 2
    assert len(c.normalised) == len(c.program.queries) == 4


@pytest.mark.parametrize("text", ["", "-- nothing", STREAMS, STREAMS + "SHOW STREAMS"])
def test_nothing_to_join_is_an_image_without_areas(text: str) -> None:
    c = compile_text(text)
    assert c.tables.areas == ()
    assert decode(c.image, c.options.config) == c.tables


@pytest.mark.parametrize("planner", ["cost", "thesis"])
@pytest.mark.parametrize(
    "config", [c for c in CONFIGURATIONS.values() if c.streams == 4], ids=lambda c: c.name
)
def test_images_load(planner: str, config: object) -> None:
    chance = random.Random(51)
    for _ in range(10):
        text = "\n".join(query(chance) for _ in range(chance.choice((1, 2, 4))))
        c = compile_text(STREAMS + text, options=Options(config, planner))  # type: ignore[arg-type]
        assert decode(c.image, c.options.config) == c.tables


def test_the_same_text_gives_the_same_image() -> None:
    assert compile_text(EIGHT).image == compile_text(EIGHT).image


def test_order_of_streams_is_that_of_the_catalogue_not_of_from() -> None:
    for symbol, mirrored in (("=", "="), ("<", ">"), (">=", "<="), ("<>", "<>")):
        one = compile_text(STREAMS + f"SELECT R.a FROM R, S WHERE R.a {symbol} S.d WINDOW 5, 6")
        for condition in (f"R.a {symbol} S.d", f"S.d {mirrored} R.a"):
            other = compile_text(STREAMS + f"SELECT R.a FROM S, R WHERE {condition} WINDOW 6, 5")
            assert one.image == other.image


# --- any text at all ----------------------------------------------------------


def survives(text: str, seed: int, case: int) -> bool:
    """Returns True if the text compiles, False if it reports a problem; anything else fails."""
    reported: CompileError | None = None
    try:
        compile_text(text)
    except CompileError as error:
        reported = error
    except BaseException:
        print(f"seed {seed}, case {case}: {text!r}")
        raise
    if reported is not None:
        check_report(reported, text)
    return reported is None


def check_report(error: CompileError, text: str) -> None:
    assert error.problems
    assert all(row["kind"] and row["message"] and row["hint"] for row in error.to_json())
    for problem in error.problems:
        assert 0 <= problem.span.start <= problem.span.end <= max(len(text), 1)
        line, column = error.source.position(problem.span.start)
        assert 1 <= line <= text.count("\n") + 1
        assert column >= 1


VALID = [
    EIGHT,
    *(
        STREAMS + "\n".join(case.before)
        for fixture in ("areas", "cost", "decompose", "layout", "requests")
        for case in cases(fixture)
    ),
    *(
        STREAMS + f"SELECT R.a FROM R, S, T WHERE {case.before[0]} WINDOW 5 s, NOW, 3;"
        for fixture in ("simplify", "divide")
        for case in cases(fixture)
    ),
    STREAMS
    + "SELECT s, count(*) AS n, avg(x) FROM R WHERE day BETWEEN '2006-03-01' AND '2006-04-01'"
    " GROUP BY s HAVING count(*) > 1 AND max(a) IS NOT NULL WINDOW RANGE 5 minutes;"
    "REGISTER QUERY late AS SELECT R.*, coalesce(S.d, 0) + 1 AS d1 FROM R, S AS S"
    " WHERE CAST(R.a AS varchar(5)) LIKE '1%' OR lower(R.s) IN ('a', 'b''c') WINDOW UNBOUNDED;"
    "SHOW QUERIES; DROP QUERY late; EXPLAIN q0; CREATE STREAM z AS SELECT ts AS at, a FROM R WINDOW 1;",
]
TOKEN = re.compile(r"'[^']*'|\"[^\"]*\"|--[^\n]*|\w+|\s+|[<>!]=|<>|.", re.DOTALL)
WORDS = [
    *sorted({token for text in VALID for token in TOKEN.findall(text)}),
    *("ts", "TimeStamp", "'2006-03-01'", "DATE", "1e999", "9" * 30, "0", "-1", "'", '"', "--", ";"),
    *(
        "count",
        "abs",
        "substr",
        "nowhere",
        "\t",
        "\n",
        "minutes",
        "!=",
        "||",
        "%",
        "CAST",
        "é",
        ".",
    ),
]


def test_the_valid_texts_are() -> None:
    """Every text compiles, though some exceed a single device."""
    for text in VALID:
        assert compile_text(text, stop_after="subqueries").normalised


def test_texts_with_known_mistakes_cut_anywhere() -> None:
    chance = random.Random(60)
    for number, mistake in enumerate(m for fixture in FIXTURES for m in mistakes(fixture)):
        text = STREAMS + mistake.text
        survives(text[: chance.randrange(len(STREAMS), len(text) + 1)], 60, number)


@pytest.mark.parametrize("seed", [61, 62])
def test_token_soup(seed: int) -> None:
    chance = random.Random(seed)
    for case in range(500):
        words = chance.choices(WORDS, k=chance.randrange(1, 40))
        start = chance.choice(("", "SELECT ", "SELECT * FROM R WHERE ", STREAMS + "SELECT * FROM "))
        survives(start + chance.choice((" ", "")).join(words), seed, case)


def mutated(chance: random.Random, text: str) -> str:
    tokens = TOKEN.findall(text)
    for _ in range(chance.choice((1, 1, 2, 4, 8))):
        # Change the queries more often than the streams before them.
        at = int(len(tokens) * chance.random() ** 0.4)
        match chance.randrange(6):
            case 0:
                del tokens[at]
            case 1:
                tokens.insert(at, chance.choice(WORDS))
            case 2:
                tokens[at] = chance.choice(WORDS)
            case 3:
                other = chance.randrange(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 4:
                end = min(len(tokens), at + chance.randrange(1, 12))
                tokens[at:at] = tokens[at:end] * chance.choice((1, 1, 3))
            case _:
                token = tokens[at]
                cut = chance.randrange(len(token) + 1)
                tokens[at] = token[:cut] + chance.choice(("", "x", "'", "(", "7")) + token[cut:]
        if not tokens:
            return ""
    return "".join(tokens)


@pytest.mark.parametrize("seed", [71, 72, 73])
def test_mutated_texts(seed: int) -> None:
    chance = random.Random(seed)
    compiled = sum(
        survives(mutated(chance, chance.choice(VALID)), seed, case) for case in range(200)
    )
    assert 5 < compiled < 195


@pytest.mark.parametrize("seed", [81])
def test_random_characters(seed: int) -> None:
    chance = random.Random(seed)
    kinds: tuple[Callable[[], str], ...] = (
        lambda: chr(chance.randrange(0x110000)),
        lambda: chr(chance.randrange(256)),
        lambda: chance.choice("\0\r\n\t\u2028\u00a0\ufeff\ud800\u0130\u017f\u212a\u0661"),
        lambda: chance.choice("()'\";-.,*<>=!|+/%_ aA1"),
    )
    for case in range(500):
        kind = chance.choice(kinds)
        noise = "".join(kind() for _ in range(chance.randrange(1, 60)))
        at = chance.randrange(len(TEXT))
        survives(noise if case % 2 else TEXT[:at] + noise + TEXT[at:], seed, case)


@pytest.mark.parametrize("seed", [91])
def test_random_bytes(seed: int) -> None:
    chance = random.Random(seed)
    for case in range(400):
        noise = chance.randbytes(chance.randrange(200))
        survives(noise.decode(chance.choice(("latin-1", "utf-16", "utf-8")), "replace"), seed, case)
        survives(noise.decode("utf-8", "surrogateescape"), seed, case)


# --- large texts --------------------------------------------------------------

CONDITION = "SELECT R.a FROM R, S WHERE {} WINDOW 1"
LARGE = {
    "ten thousand times the same condition": CONDITION.format(" AND ".join(["R.a = S.d"] * 10_000)),
    "many alternatives": CONDITION.format(" OR ".join(f"R.a = {n}" for n in range(2_000))),
    "a long list": CONDITION.format(f"R.a IN ({', '.join(map(str, range(5_000)))})"),
    "long negations": CONDITION.format("NOT " * 10_000 + "R.a = 1"),
    "open parentheses": "(" * 50_000,
    "closed parentheses": ")" * 50_000,
    "a long sum": CONDITION.format("R.a = 1" + " + 1" * 10_000),
    "a long name": CONDITION.format("R." + "x" * 100_000 + " = 1"),
    "a long string": CONDITION.format("R.s = '" + "x" * 100_000 + "'"),
    "a long number": CONDITION.format("R.a = " + "7" * 100_000),
    "a long window": f"SELECT a FROM R WINDOW {'7' * 100_000}",
    "a long range": f"SELECT a FROM R WINDOW RANGE {'7' * 100_000} days",
    "a long decimal range": f"SELECT a FROM R WINDOW RANGE 0.{'7' * 100_000} days",
    "a long length": f"CREATE STREAM Q (a varchar({'7' * 100_000}))",
    "many statements": "SHOW STREAMS;" * 500,
    "many mistakes": "SELEC;" * 200,
    "many columns": f"CREATE STREAM Q ({', '.join(f'c{n} int' for n in range(2_000))})",
    "many items": f"SELECT {', '.join(f'a AS a{n}' for n in range(2_000))} FROM R WINDOW 1",
    "many streams": f"SELECT * FROM {', '.join(f'R r{n}' for n in range(500))} WINDOW 1",
    "many windows": f"SELECT * FROM R WINDOW {', '.join(['1'] * 2_000)}",
    "a long comment": "--" + "-" * 100_000,
    "an explosion": CONDITION.format(
        " AND ".join(f"(R.a = {n} AND S.d = 1 OR S.e = {n} AND R.b = 2)" for n in range(60))
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_text(name: str) -> None:
    survives(STREAMS + LARGE[name], 0, 0)
