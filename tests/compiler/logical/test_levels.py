"""Levels of queries in all languages: each query comes after the ones it reads."""

from __future__ import annotations

import random

import pytest

from seustream.compiler.apas.compile import Compiled
from seustream.compiler.logical.levels import definitions, level, levels, nodes, part, reads, used
from seustream.compiler.pipeline import compile_text

TEXT = """
CREATE STREAM R (a int, b int); CREATE STREAM S (d int, e int);
CREATE STREAM J AS SELECT R.a, S.e FROM R, S WHERE R.a = S.d WINDOW RANGE 5 s;
CREATE STREAM F AS APAS $$ where $J.a > 3 select [a = $J.a] $$;
CREATE STREAM P AS PATTERN ANY x; ANY y FROM F WITHIN 9 ms RETURN x.a AS a;
REGISTER QUERY top AS SELECT P.a, R.b FROM P, R WHERE P.a = R.a WINDOW RANGE 5 s;
REGISTER QUERY base AS SELECT a FROM R WHERE a > 1;
"""


def test_a_level_is_one_above_the_highest_that_is_read() -> None:
    program = compile_text(TEXT, stop_after="tree").program
    assert levels(program) == {"J": 1, "F": 2, "P": 3}
    by_name = {q.name: level(q, levels(program)) for q in program.asked}
    assert by_name == {"top": 3, "base": 0}


def test_definitions_of_three_languages_are_edges() -> None:
    program = compile_text(TEXT, stop_after="tree").program
    found = {name: reads(node) for name, node in definitions(program).items()}
    assert found == {"J": {"R", "S"}, "F": {"J"}, "P": {"F"}}


def test_streams_that_are_used_through_others() -> None:
    program = compile_text(TEXT, stop_after="tree").program
    defined = {name.lower(): node for name, node in definitions(program).items()}
    asked = {q.name: q for q in program.asked}
    assert used([asked["top"]], defined) == {"j", "f", "p"}
    assert used([asked["base"]], defined) == set()


@pytest.mark.parametrize("seed", range(10))
def test_a_chain_of_any_shape_is_layered_by_definition(seed: int) -> None:
    """Compares with the longest path down, found by plain recursion."""
    chance = random.Random(seed)
    texts, made = ["CREATE STREAM S0 (a int);"], ["S0"]
    for number in range(1, 12):
        one, other = chance.choice(made), chance.choice(made)
        texts.append(
            f"CREATE STREAM S{number} AS SELECT x.a FROM {one} x, {other} y"
            " WHERE x.a = y.a WINDOW RANGE 1 s;"
        )
        made.append(f"S{number}")
    texts.append("REGISTER QUERY q AS SELECT * FROM " + ", ".join(made[1:]) + " WINDOW RANGE 1 s;")
    program = compile_text("".join(texts), stop_after="tree").program
    defined = definitions(program)

    def deep(name: str) -> int:
        return 1 + max(map(deep, reads(defined[name]))) if name in defined else 0

    assert levels(program) == {name: deep(name) for name in defined}
    assert not any(isinstance(node, Compiled) for node in nodes(program))


def test_candidates_come_before_the_pattern_that_reads_them() -> None:
    """The join of a pattern's candidates is added behind all streams, so also behind those that
    read the pattern's."""
    text = """
        CREATE STREAM s (type varchar, k int);
        CREATE STREAM m AS PATTERN A a; A b FROM s PARTITION BY k WITHIN 6 ms RETURN a.k AS k;
        CREATE STREAM n AS SELECT k FROM m WINDOW NOW;
        REGISTER QUERY q AS SELECT k FROM n WINDOW NOW;
    """
    program = compile_text(text).program
    assert program.streams[-1].name == "m#1"
    assert levels(program) == {"m#1": 1, "m": 2, "n": 3}


def test_a_part_is_a_query_with_what_it_reads() -> None:
    program = compile_text(
        "CREATE STREAM R (a int); CREATE STREAM S (a int); CREATE STREAM T (a int);"
        "CREATE STREAM one AS SELECT a FROM R WINDOW NOW;"
        "CREATE STREAM two AS SELECT one.a FROM one, S WHERE one.a = S.a WINDOW NOW;"
        "CREATE STREAM three AS SELECT a FROM T WINDOW NOW;"
        "REGISTER QUERY p AS SELECT a FROM two WINDOW NOW;"
        "REGISTER QUERY q AS SELECT a FROM one WINDOW NOW UNION ALL SELECT a FROM three WINDOW NOW;"
    ).program
    found = part(program, "p")
    assert found.names == ["p"]
    assert [stream.name for stream in found.streams] == ["R", "S", "one", "two"]
    assert {query.defines for query in found.queries} == {None, "one", "two"}
    assert not found.operations
    union = part(program, "q")
    assert [stream.name for stream in union.base] == ["R", "T"]
    assert [operation.name for operation in union.operations] == ["q"]
