"""The partners a tuple needs, derived from queries."""

from __future__ import annotations

import math

from seustream.compiler.pipeline import compile_text
from seustream.engine.sites.needs import Partner, needs

STREAMS = "CREATE STREAM R (a int, b int); CREATE STREAM S (d int, e varchar(5));"


def of(query: str) -> dict[str, tuple[tuple[Partner, ...], ...]]:
    return needs(compile_text(STREAMS + query).program).ways


def test_a_join() -> None:
    assert of("SELECT * FROM R, S WHERE R.a = S.d AND R.b > 3 WINDOW RANGE 100, RANGE 7;") == {
        "R": ((Partner("a", "S", "d", 7, 100),),),
        "S": ((Partner("d", "R", "a", 100, 7),),),
    }


def test_one_of_several_ways_is_enough() -> None:
    ways = of(
        "SELECT * FROM R x, R y, S WHERE x.a = y.b AND y.b = S.d WINDOW UNBOUNDED, RANGE 5, NOW;"
    )
    assert ways["R"] == (
        (Partner("a", "R", "b", 5, math.inf), Partner("a", "S", "d", 0, math.inf)),
        (Partner("b", "R", "a", math.inf, 5), Partner("b", "S", "d", 0, 5)),
    )


def test_what_is_needed_whole() -> None:
    join = "SELECT * FROM R, S WHERE R.a = S.d WINDOW RANGE 100;"
    assert set(of(join + "SELECT * FROM R WHERE a > 1 WINDOW NOW;")) == {"S"}
    assert of("SELECT * FROM R, S WHERE R.a = S.d OR R.b > 5 WINDOW RANGE 100;") == {}
    assert of("SELECT * FROM R, S WHERE R.a < S.d WINDOW RANGE 100;") == {}
    assert of("SELECT * FROM R, S WHERE R.ts = S.d WINDOW RANGE 100;") == {}
    assert set(of("SELECT * FROM R, S WHERE R.a = S.d WINDOW RANGE 100, ROWS 4;")) == {"R"}


def test_a_stream_that_a_query_defines_is_no_partner() -> None:
    inside = (
        "SELECT * FROM (SELECT a, b FROM R WHERE b > 3) AS c, S WHERE c.a = S.d WINDOW RANGE 7;"
    )
    assert of(inside) == {}
    three = "CREATE STREAM c AS SELECT a FROM R; SELECT S.e FROM S, R, c WHERE S.d = R.b AND S.d = c.a WINDOW RANGE 7;"
    assert of(three) == {"S": ((Partner("d", "R", "b", 7, 7),),)}


def test_what_patterns_and_apas_read_is_needed_whole() -> None:
    join = "SELECT * FROM R, S WHERE R.a = S.d WINDOW RANGE 100;"
    pattern = "PATTERN ANY x; ANY y FROM R WHERE y.a < x.a WITHIN 1 s RETURN x.a"
    assert set(of(join)) == {"R", "S"}
    assert set(of(f"{join} REGISTER QUERY falls AS {pattern};")) == {"S"}
    between = f"CREATE STREAM falls AS {pattern}; SELECT * FROM falls WINDOW 1;"
    assert set(of(join + between)) == {"S"}
    apas = "CREATE STREAM most AS APAS $$ where window.range($S, 10) select most[top = agg.max($S.d)] $$;"
    assert set(of(f"{join} {apas} SELECT top FROM most WINDOW 1;")) == {"R"}


def test_an_equality_in_every_alternative_counts() -> None:
    ways = of(
        "SELECT * FROM R, S WHERE (R.a = S.d AND R.b = 1) OR (R.a = S.d AND R.b = 2) WINDOW RANGE 9;"
    )
    assert set(ways) == {"R", "S"}


def test_a_table_is_no_partner() -> None:
    table = "CREATE TABLE T (f int);"
    query = "SELECT * FROM R, S, T WHERE R.a = S.d AND S.d = T.f WINDOW RANGE 100, RANGE 7;"
    assert of(table + query) == {
        "R": ((Partner("a", "S", "d", 7, 100),),),
        "S": ((Partner("d", "R", "a", 100, 7),),),
    }
    assert of(f"{table} SELECT * FROM R, T WHERE R.a = T.f WINDOW RANGE 100;") == {}


def test_among_some_streams() -> None:
    """What needs a stream of which nothing is known is needed whole, unless it needs others, too."""
    third = "CREATE STREAM T (f int);"
    query = "SELECT * FROM R, S, T WHERE R.a = S.d AND R.b = T.f WINDOW RANGE 7;"
    found = needs(compile_text(STREAMS + third + query).program)
    assert set(found.ways) == {"R", "S", "T"}
    assert found.among(["R", "S"]).ways == {
        "R": ((Partner("a", "S", "d", 7, 7),),),
        "S": ((Partner("d", "R", "a", 7, 7),),),
    }
    assert found.among(["S", "T"]).ways == {}
