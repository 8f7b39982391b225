"""The grammar: which texts parse, where an error is reported, and that no text crashes the
parser."""

from __future__ import annotations

import random

import pytest

from seustream.compiler.apas.compile import compile_query
from seustream.compiler.apas.parse import parse
from seustream.compiler.errors import CompileError, SourceText
from tests.compiler.apas.schemas import SECTION_5, VALUES, catalogue, compiled, places

ROAD = """
from
  o1[sektor = 1, avg = agg.avg($I.val),  minmax = (agg.min($I.val)  + agg.max($I.val))  / 2];
  o2[sektor = 2, avg = agg.avg($II.val), minmax = (agg.min($II.val) + agg.max($II.val)) / 2];
  where util.union($o1[T], $o2[T]) select facts[$new[T]];
  where $facts.avg > 70 select result[$facts[T]];
select [$result[T]]
"""
TWO = catalogue(I=[["val", "DOUBLE"]], II=[["val", "DOUBLE"]])

FRAGMENTS = [
    "select O[z[x = 1.1], y = $I.a]",
    "select O[z.x = 1.1, y = $I.a]",
    "select O[a.b = [z = 1, k = $I.a], w = a.b.z * $I.b, $I.c[T]]",
    "select O[$I.c.T, $I[c[T]], d[$I.c[T]], e.f = 1]",
    "select O[c[$I.c[T]], c.T, d[$O.c[T]], c[T]]",
    "select [s = -$I.a + +3, t = not ($I.a > 1), u = 5m + 10ms]",
    "SELECT [x = $I.a] // a comment\n /* and\n another */ ;",
    "select [x = \"it\\\"s\", y = 'a\\'b', z = $I.c.p]",
    "where $I.a > 1 AND $I.b < 2.5e3, true select [x = $I.a]",
    "from select d[x = $I.a]; where $d.x == 1 select e[y = $d.x]; where window.range($e, 10s) select [$e.T]",
    "select [n = agg.count($I), m = agg.count($I[T]), q = agg.sum(value = $I.a)]",
]


@pytest.mark.acceptance(33)
@pytest.mark.parametrize("text", FRAGMENTS)
def test_fragments_compile(text: str) -> None:
    compiled(text, SECTION_5)


@pytest.mark.acceptance(33)
def test_the_road_query_compiles_with_and_without_select() -> None:
    compiled(ROAD, TWO)
    compiled(
        "from where window.range($II, 10) select o2[a = agg.avg($II.val)]; select [$o2[T]]", TWO
    )


REJECTED = {
    "": (1, 1),
    "select []": (1, 9),
    "select [a = ]": (1, 13),
    "select [a == 1]": (1, 11),
    "select [a = 1,]": (1, 15),
    "select [T = 1]": (1, 9),
    "select [from = 1]": (1, 9),
    "select [1a = 2]": (1, 9),
    "select [$I.a]": (1, 13),
    "select [$I.c = 1]": (1, 14),
    "select [$I[T, c[T]]]": (1, 13),
    "from o[a = $I.a];": (1, 18),
    "select [a = 1] ?": (1, 16),
    "select [a = 'x]": (1, 13),
    "select [\n  a = 1\n  b = 2]": (3, 3),
}


@pytest.mark.acceptance(33, 39)
@pytest.mark.parametrize("text", REJECTED)
def test_rejected(text: str) -> None:
    assert places(text, SECTION_5) == [("Syntax", *REJECTED[text])]


def test_hints() -> None:
    for text, hint in {
        "select [a == 1]": "an attribute is assigned with =",
    }.items():
        with pytest.raises(CompileError, match=hint):
            parse(SourceText(text))


PIECES = [
    "from", "select", "where", "T", "[", "]", "(", ")", "{", "$", "$I", "$new", ".", ",", ";", "=", "==",
    "a", "I", "agg.avg", "agg.sum(", "util.union(", "window.range(", "$I.val", "$I[T]", "1", "1.5", "10s",
    "'x'", "not", "and", "<", "+", "-", "/", "//", "/*", "*/", "\"", "\\", "\n", "\u00e9", "\x00", "ts", "te",
]  # fmt: skip


def fuzzed(chance: random.Random) -> str:
    """Returns random pieces of syntax, or a valid query with a few pieces changed."""
    if chance.random() < 0.4:
        return " ".join(chance.choices(PIECES, k=chance.randint(0, 30)))
    text = chance.choice([ROAD, *FRAGMENTS])
    for _ in range(chance.choice((0, 1, 1, 2, 4))):
        at = chance.randint(0, len(text))
        cut = chance.choice((0, 0, 1, 3, 8))
        text = text[:at] + chance.choice(["", *PIECES]) + text[at + cut :]
    return text


def fuzz(seed: int, count: int) -> tuple[int, int]:
    """Returns how many texts compiled, and how many were refused."""
    chance = random.Random(seed)
    good = bad = 0
    for _ in range(count):
        text = fuzzed(chance)
        of = (
            VALUES if chance.random() < 0.2 else {**SECTION_5, **TWO} if "II" in text else SECTION_5
        )
        try:
            compile_query(text, of, "out")
            good += 1
        except CompileError as error:
            bad += bool(error.problems) and bool(str(error))
        except Exception:
            print(f"seed {seed}, text:\n{text}")
            raise
    return good, bad


@pytest.mark.acceptance(40)
@pytest.mark.parametrize("seed", range(4))
def test_no_text_crashes_the_compiler(seed: int) -> None:
    good, bad = fuzz(seed, 250)
    assert good > 20
    assert good + bad == 250


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(100, 120))
def test_no_text_crashes_the_compiler_long(seed: int) -> None:
    fuzz(seed, 5000)
