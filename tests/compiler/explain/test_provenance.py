"""Every part leads back to the text, and every place in the text leads to its parts."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from seustream.compiler.explain.provenance import Provenance, provenance
from seustream.compiler.pipeline import Compilation, Options, compile_text

EIGHT = Path("examples/eight/eight.xsql").read_text(encoding="utf-8")
SELECTIONS = """
CREATE STREAM R (a int, b int); CREATE STREAM S (d int, e int);
SELECT * FROM R, S WHERE a = d AND b > 5 AND (e = 1 OR e = 2) WINDOW RANGE 10;
SELECT * FROM R x, R y WHERE x.a = y.b AND NOT (x.b <= 5) WINDOW RANGE 10;
"""


def of_kind(made: Provenance, kind: str) -> list[str]:
    return [part for part in made.parts if part.startswith(f"{kind}:")]


@pytest.mark.parametrize("plan", ["cost", "thesis"])
@pytest.mark.parametrize("text", [EIGHT, SELECTIONS], ids=["eight", "selections"])
def test_everything_traces_to_the_text_and_back(text: str, plan: str) -> None:
    c = compile_text(text, options=Options(plan=plan))
    made = provenance(c)
    assert len(of_kind(made, "instruction")) == sum(map(len, c.programs))
    assert len(of_kind(made, "factor")) == len(c.requests.factors)
    assert len(of_kind(made, "tag")) == len(c.routes.tags)
    for kind in ("instruction", "tag", "factor", "selection", "subquery", "step", "word"):
        for part in of_kind(made, kind):
            spans = [made.parts[one].spans for one in made.sources(part)]
            assert any(spans), f"{part} comes from no text"
    for kind in ("query", "comparison"):
        for part in of_kind(made, kind):
            for end in ("instruction:", "word:"):
                assert any(one.startswith(end) for one in made.products(part)), part
    for kind in ("instruction", "tag", "factor", "selection", "step"):
        for part in of_kind(made, kind):
            assert any(one.startswith("word:") for one in made.products(part)), part


@pytest.mark.parametrize("text", [EIGHT, SELECTIONS], ids=["eight", "selections"])
def test_a_word_is_the_bytes_that_say_it(text: str) -> None:
    c = compile_text(text)
    made = provenance(c)
    for part in of_kind(made, "word"):
        start = int(part.partition(":")[2])
        for source in (one for one, end in made.links if end == part):
            kind, _, number = source.partition(":")
            if kind == "instruction":
                area, address = map(int, number.split(":"))
                assert c.image[start:][:4] == c.programs[area][address].encode().to_bytes(
                    4, "little"
                )
            if kind == "tag" and "routes" in made.parts[part].label:
                assert c.image[start] == int(number)


def test_a_comparison_is_the_text_that_was_written() -> None:
    made = provenance(compile_text(SELECTIONS))
    written = {made.parts[part].label for part in of_kind(made, "comparison")}
    assert written == {"a = d", "b > 5", "e = 1", "e = 2", "x.a = y.b", "x.b <= 5"}


@pytest.mark.parametrize("text", [EIGHT, SELECTIONS], ids=["eight", "selections"])
def test_a_result_comes_from_its_query(text: str) -> None:
    """Every tag leads to the queries that the routing table delivers it to; a tag that is only
    delivered, neither probing nor stored, leads to no others."""
    c = compile_text(text)
    made = provenance(c)
    for number, route in c.tables.routes.items():
        queries = {c.device_queries[one].division.query.name for one in route.queries}
        sources = {
            one.partition(":")[2] for one in made.sources(f"tag:{number}") if one[:6] == "query:"
        }
        assert queries <= sources
        if not route.probes and not c.routes.tags[number].inserts:
            assert queries == sources, f"tag {number}"


def test_what_is_shared_is_no_source_of_another() -> None:
    """Two queries share a factor; the tag of one query must not lead back to the text of the
    other."""
    text = """
    CREATE STREAM R (a int, b int); CREATE STREAM S (d int, e int);
    SELECT * FROM R, S WHERE a = d AND b = e WINDOW RANGE 10;
    SELECT * FROM R, S WHERE a = d AND b > 3 WINDOW RANGE 20;
    """
    c = compile_text(text)
    made = provenance(c)
    for number, route in c.tables.routes.items():
        if len(route.queries) == 1:
            (only,) = route.queries
            own = f"query:{c.device_queries[only].division.query.name}"
            assert {one for one in made.sources(f"tag:{number}") if one[:6] == "query:"} == {own}
    assert {"query:q0", "query:q1"} <= made.sources("factor:1")


def test_what_the_host_decides_is_traced_too() -> None:
    text = """CREATE STREAM R (a int, b int); CREATE STREAM S (d int, n varchar);
    SELECT * FROM R, S WHERE a = d AND abs(b) > 3 AND n <> 'x' WINDOW RANGE 10;"""
    made = provenance(compile_text(text))
    for part in of_kind(made, "host"):
        assert any(one.startswith("comparison:") for one in made.sources(part))
    hosts = {p: made.products(p) for p in of_kind(made, "comparison")}
    found = {
        made.parts[p].label
        for p, products in hosts.items()
        if any(o[:5] == "host:" for o in products)
    }
    assert found == {"abs(b) > 3", "n <> 'x'"}


def test_random_sets() -> None:
    """Every part of a random query set has a place in the text."""
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    for _ in range(20):
        c = compiled(chance)
        made = provenance(c)
        for part in made.parts.values():
            if not part.spans:
                reached = (made.parts[one].spans for one in made.sources(part.id))
                assert any(reached), f"seed {seed}: {part} of {c.source.text}"


def compiled(chance: random.Random) -> Compilation:
    text = "CREATE STREAM R (a int, b int); CREATE STREAM S (d int, e int); CREATE STREAM T (f int, g int);"
    columns = ("R.a", "R.b", "S.d", "S.e", "T.f", "T.g")
    for _ in range(chance.randint(1, 4)):
        terms = []
        for _ in range(chance.randint(1, 4)):
            left, right = chance.sample(columns, 2)
            other = right if chance.random() < 0.7 else str(chance.randrange(9))
            terms.append(f"{left} {chance.choice(['=', '<', '>='])} {other}")
        where = f" {chance.choice(['AND', 'OR'])} ".join(terms)
        text += f" SELECT * FROM R, S, T WHERE R.a = S.d AND ({where}) WINDOW RANGE 9;"
    return compile_text(text)
