"""Every limit of a device: its name, the number needed, the query that exceeds it and its place,
and how the query set would fit.

Section 6.8 of the specification lists the limits. Some are reached with the default configuration,
the others with a smaller one.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Sequence

import pytest

from seustream.compiler.errors import CompileError
from seustream.compiler.pipeline import Options
from seustream.compiler.plan.limits import LimitExceeded, first_over, pack, within
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from tests.compiler.plan.cases import STREAMS, compiled_all

AUTO = "--fit auto lets the engine join what has no room"

DEFAULT = CONFIGURATIONS["default"]
JOIN = "SELECT * FROM R, S WHERE R.a = S.d"
WIDE = "CREATE STREAM V (p int, q int); CREATE STREAM W (r int);\n"


def small(**members: int) -> DeviceConfig:
    return dataclasses.replace(DEFAULT, **members)  # type: ignore[arg-type]


def problem(text: str, config: DeviceConfig = DEFAULT, plan: str = "cost") -> dict[str, object]:
    with pytest.raises(CompileError) as caught:
        compiled_all(text, Options(config, plan, fit="strict"))
    (row,) = caught.value.to_json()
    assert row["kind"] == "limit"
    return row


def exceeds(
    text: str,
    name: str,
    limit: str,
    need: int,
    most: int,
    detail: str = "",
    config: DeviceConfig = DEFAULT,
    plan: str = "cost",
) -> dict[str, object]:
    """Asserts that the query of this name is reported at its place."""
    row = problem(text, config, plan)
    shown = f"{limit}: {need} needed, at most {most}{f' ({detail})' if detail else ''}"
    assert row["message"] == f"query {name} exceeds a limit of the device: {shown}"
    statements = [s.strip() for s in text.split(";")]
    number = int(name.removeprefix("q"))
    queries = [s for s in statements if s.startswith("SELECT")]
    assert row["text"] == queries[number]
    before = (STREAMS + text)[: (STREAMS + text).index(queries[number])]
    assert row["line"] == before.count("\n") + 1
    assert row["column"] == len(before) - before.rfind("\n")
    return row


# --- each limit ---------------------------------------------------------------


def test_streams() -> None:
    text = WIDE + f"{JOIN} WINDOW 1;\nSELECT * FROM T, V WHERE T.f = V.p WINDOW 1;\n"
    compiled_all(text)
    text += "SELECT * FROM U, V WHERE U.h = V.p WINDOW 1;"
    exceeds(text, "q2", "streams", 5, 4, "R, S, T, U, V")


def test_copies_of_a_stream_count() -> None:
    text = "SELECT x.a FROM R x, R y, R z WHERE x.a = y.a AND y.a = z.a WINDOW 1;\n"
    compiled_all(text)
    text += "SELECT * FROM S, T WHERE S.e = T.f WINDOW 1"
    exceeds(text, "q1", "streams", 5, 4, "R, R#2, R#3, S, T")


def test_streams_of_a_smaller_device() -> None:
    text = "SELECT * FROM R, S, T WHERE R.a = S.d AND S.e = T.f WINDOW 1"
    exceeds(text, "q0", "streams", 3, 2, "R, S, T", small(streams=2))


def test_attributes() -> None:
    text = f"{JOIN} AND R.b = S.e AND R.c > 5 WINDOW 1;\n  {JOIN} AND R.n > 5 WINDOW 1;\n"
    compiled_all(text)
    exceeds(
        text + f"{JOIN} AND R.m > 5 WINDOW 1", "q2", "attributes used", 5, 4, "R: a, b, c, n, m"
    )


def test_factors() -> None:
    symbols, pairs = ("=", "<", ">", "<>"), ("a", "b", "c", "n")
    factors = [f"R.{column} {symbol} S.d" for column in pairs for symbol in symbols]
    text = "".join(f"SELECT * FROM R, S WHERE {factor} WINDOW 1;\n" for factor in factors)
    compiled_all(text)
    compiled_all(text, Options(plan="thesis"))
    text += "SELECT * FROM R, S WHERE R.a >= S.d WINDOW 1;"
    exceeds(text, "q16", "factors in an area", 17, 16, "area R")


def test_the_register_that_is_always_one_is_a_factor_of_the_thesis() -> None:
    config = small(factors=2)
    text = "SELECT * FROM R, S WHERE R.a = S.d AND R.b < S.e WINDOW 1;\nSELECT * FROM R, S WINDOW 1"
    compiled_all(text, Options(config))
    detail = "area R, one of them true"
    exceeds(text, "q1", "factors in an area", 3, 2, detail, config, "thesis")


def test_scratch_registers() -> None:
    alternatives = [f"R.{x} = S.d AND R.{y} > S.e" for x in "abcn" for y in "abcn"]
    text = "".join(f"SELECT * FROM R, S WHERE {term} WINDOW 1;\n" for term in alternatives)
    compiled_all(text)
    compiled_all(text, Options(plan="thesis"))
    text += "SELECT * FROM R, S WHERE R.a = S.d AND R.b = S.d WINDOW 1"
    exceeds(text, "q16", "scratch registers", 17, 16, "area R")
    exceeds(text, "q16", "scratch registers", 17, 16, "area R", plan="thesis")


def test_scratch_registers_of_a_long_conjunction() -> None:
    text = "SELECT * FROM R, S WHERE R.a = S.d AND R.b = S.d AND R.c = S.d AND R.n = S.d WINDOW 1"
    compiled_all(text, Options(small(scratch_registers=3)))
    exceeds(text, "q0", "scratch registers", 3, 2, "area R", small(scratch_registers=2))


def selecting(count: int) -> str:
    return "".join(f"{JOIN} AND R.b = {number} WINDOW 1;\n" for number in range(count))


def test_selections_in_a_probe() -> None:
    compiled_all(selecting(15))
    exceeds(selecting(16), "q15", "selections in a probe", 16, 15, "stream R")


def test_selections() -> None:
    config = small(selections=3)
    compiled_all(selecting(3), Options(config))
    exceeds(selecting(4), "q3", "selections", 4, 3, "stream R", config)


def picked(count: int) -> str:
    return f"R.b IN ({', '.join(map(str, range(count)))})"


def test_comparisons() -> None:
    """The longest selection of a stream sets the number of rows, however many selections there
    are."""
    compiled_all(f"{JOIN} AND {picked(64)} WINDOW 1")
    text = f"{JOIN} AND {picked(65)} WINDOW 1"
    exceeds(text, "q0", "comparisons", 65 * 16, 1024, "stream R, in rows of 16")
    compiled_all(f"{JOIN} AND {picked(64)} WINDOW 1;\n{JOIN} AND R.c = 1 WINDOW 1;\n")


def test_comparisons_of_a_smaller_device() -> None:
    config = small(comparisons=1, selectors=1)
    compiled_all(f"{JOIN} WINDOW 1", Options(config))
    text = f"{JOIN} AND S.e > 3 WINDOW 1"
    exceeds(text, "q0", "comparisons", 2, 1, "stream S, in rows of 1", config)


def chains(count: int) -> str:
    """Returns queries that share no tag: under the thesis's plan each needs six."""
    where = "R.a = S.d AND S.e = T.f"
    return "".join(
        f"SELECT * FROM R, S, T WHERE {where} WINDOW RANGE {number};\n" for number in range(count)
    )


def test_route_tags() -> None:
    compiled_all(chains(42), Options(plan="thesis"))
    exceeds(chains(43), "q42", "route tags", 3 + 43 * 6, 256, plan="thesis")
    compiled_all(chains(43))  # the cost plan shares tags


def test_route_tags_of_the_cost_plan() -> None:
    config = small(tags=6)
    compiled_all(f"{JOIN} WINDOW 1; {JOIN} AND R.b > 1 WINDOW 1", Options(config))
    text = "".join(f"{JOIN} AND R.b > {number} WINDOW 1;\n" for number in range(5))
    exceeds(text, "q4", "route tags", 7, 6, config=config)


def test_instructions() -> None:
    text = "SELECT * FROM R, S WHERE R.a = S.d AND R.b = S.e WINDOW 1;\n"
    # CMP CMP AND JMPCT JOIN NOP, and JMPLI
    compiled_all(text, Options(small(instructions=7)))
    exceeds(text, "q0", "instructions", 7, 6, "area R", small(instructions=6))
    exceeds(text, "q0", "instructions", 7, 6, "area R", small(instructions=6), "thesis")


def test_instructions_of_the_largest_programs() -> None:
    """The tags run out before 1,024 instructions do; a smaller memory shows that the jump over each
    group counts."""
    text = chains(20)
    c = compiled_all(text, Options(plan="thesis"))
    longest = max(len(program) for program in c.programs)
    compiled_all(text, Options(small(instructions=longest), "thesis"))
    row = problem(text, small(instructions=longest - 1), "thesis")
    assert f"instructions: {longest} needed, at most {longest - 1}" in str(row["message"])
    assert str(row["message"]).startswith("query q19 ")


def test_queries() -> None:
    text = "".join(f"{JOIN} WINDOW RANGE {number};\n" for number in range(64))
    compiled_all(text)
    compiled_all(text + "SELECT a FROM R WINDOW 1;")  # software uses no device
    exceeds(text + f"{JOIN} WINDOW 3;", "q64", "queries", 65, 64)


def test_range_ticks() -> None:
    most = (1 << 47) - 1
    compiled_all(f"{JOIN} WINDOW RANGE {most}")
    compiled_all(f"{JOIN} WINDOW UNBOUNDED")
    row = exceeds(
        f"{JOIN} WINDOW 1;\n{JOIN} WINDOW 1, RANGE {most + 1}",
        "q1",
        "ticks of a RANGE window",
        most + 1,
        most,
        "48-bit timestamps; UNBOUNDED has no such limit",
    )
    assert "no device of configuration 'default' holds q1 alone" in str(row["hint"])


def test_rows_of_a_window() -> None:
    most = (1 << 31) - 1
    compiled_all(f"{JOIN} WINDOW {most}")
    detail = "32-bit sequence numbers; UNBOUNDED has no such limit"
    text = f"{JOIN} WINDOW UNBOUNDED;\n{JOIN} WINDOW RANGE 5, ROWS {most + 1}"
    row = exceeds(text, "q1", "rows of a ROWS window", most + 1, most, detail)
    assert "no device of configuration 'default' holds q1 alone" in str(row["hint"])
    detail = "8-bit sequence numbers; UNBOUNDED has no such limit"
    config = small(sequence_width=8)
    compiled_all(f"{JOIN} WINDOW 127", Options(config))
    exceeds(f"{JOIN} WINDOW 128", "q0", "rows of a ROWS window", 128, 127, detail, config)


def test_every_limit_of_a_configuration_is_tried() -> None:
    """Every limit of the device is listed here; a limit that is missing has no test."""
    limits = {
        "streams": "streams",
        "attributes": "attributes used",
        "factors": "factors in an area",
        "scratch_registers": "scratch registers",
        "selections": "selections",
        "probe_selections": "selections in a probe",
        "tags": "route tags",
        "instructions": "instructions",
        "queries": "queries",
        "comparisons": "comparisons",
        "timestamp_width": "ticks of a RANGE window",
        "sequence_width": "rows of a ROWS window",
    }
    shapes = {"name", "attribute_width", "depth", "lanes", "indexes", "comparators"}
    shapes |= {"selectors", "probe_fifo_depth", "output_fifo_depth", "groups"}
    assert {field.name for field in dataclasses.fields(DeviceConfig)} == set(limits) | shapes


# --- which query, and what to do ----------------------------------------------


def test_the_first_query_that_does_not_fit_is_named_with_its_own_limit() -> None:
    """The whole set exceeds another limit as well."""
    text = (
        WIDE
        + f"{JOIN} AND R.b = S.e AND R.c = S.e AND R.n = S.e AND R.m = S.e WINDOW 1;\n"
        + "SELECT * FROM T, U, V WHERE T.f = V.p AND T.g = U.i WINDOW 1;\n"
        + "SELECT * FROM U, W WHERE U.h = W.r WINDOW 1;\n"
    )
    row = exceeds(text, "q0", "attributes used", 5, 4, "R: a, b, c, n, m")
    assert row["hint"] == (
        "the others need 1 device: device 1: q1, q2;"
        f" no device of configuration 'default' holds q0 alone; {AUTO}"
    )


def test_how_many_devices_the_set_needs() -> None:
    text = WIDE + "".join(
        f"REGISTER QUERY {name} AS SELECT * FROM {x}, {y} WHERE {x}.{a} = {y}.{b} WINDOW 1;\n"
        for name, x, a, y, b in (
            ("rs", "R", "a", "S", "d"),
            ("tu", "T", "f", "U", "h"),
            ("vw", "V", "p", "W", "r"),
            ("st", "S", "e", "T", "f"),
            ("rv", "R", "a", "V", "p"),
        )
    )
    row = problem(text)
    assert str(row["message"]).startswith("query vw exceeds a limit of the device: streams: 6")
    assert row["hint"] == (
        "the set needs 2 devices: device 1: rs, tu, st; device 2: vw, rv; --devices 2 gives so many, "
        + AUTO
    )
    assert str(row["text"]).startswith("REGISTER QUERY vw AS")


def test_the_advice_is_sound() -> None:
    """Each device in the advice holds its queries, and no device holds those said to fit none."""
    bad = [f"{JOIN} AND R.b = S.e AND R.c = S.e AND R.n = S.e AND R.m = S.e WINDOW 1"]
    good = [
        f"SELECT * FROM {x}, {y} WHERE {x}.{a} = {y}.{b} WINDOW 1"
        for x, a in (("R", "a"), ("S", "d"), ("T", "f"))
        for y, b in (("U", "h"), ("V", "p"), ("W", "r"))
    ]
    queries = dict(zip("abcdefghij", good[:4] + bad + good[4:], strict=True))
    text = WIDE + "".join(f"REGISTER QUERY {n} AS {q};\n" for n, q in queries.items())
    hint = str(problem(text)["hint"])
    groups = [group.split(", ") for group in re.findall(r"device \d+: ([a-z, ]+)", hint)]
    alone = re.findall(r"holds ([a-z, ]+) alone", hint)
    assert alone == ["e"]
    assert sorted(itertools.chain.from_iterable(groups)) == sorted(set(queries) - {"e"})
    assert f"the others need {len(groups)} devices: " in hint
    for group in groups:
        compiled_all(WIDE + ";".join(queries[name] for name in group))
    for one, other in itertools.pairwise(groups):
        together = WIDE + ";".join(queries[name] for name in (*one, other[0]))
        with pytest.raises(CompileError, match="exceeds a limit"):
            compiled_all(together, Options(fit="strict"))


def test_a_query_that_fits_with_its_alternatives_in_software() -> None:
    terms = [f"R.{x} = S.d AND R.{y} > S.e" for x in "abcn" for y in "abcn"]
    text = f"SELECT * FROM R, S WHERE {' OR '.join(terms)} OR R.a = S.d AND R.b = S.d WINDOW 1"
    row = problem(text)
    assert "scratch registers: 17 needed" in str(row["message"])
    fits = "with --max-terms 1 it would: the host then decides its alternatives"
    assert row["hint"] == f"no device of configuration 'default' holds q0 alone; {fits}; {AUTO}"
    compiled_all(text, Options(max_terms=1))
    # There are no alternatives to give up.
    row = problem(f"{JOIN} AND R.b = S.d AND R.c = S.d AND R.n = S.d AND R.m = S.d WINDOW 1")
    assert row["hint"] == f"no device of configuration 'default' holds q0 alone; {AUTO}"


def test_a_limit_is_one_problem_among_no_others() -> None:
    """Mistakes in the text are reported instead of the limit."""
    with pytest.raises(CompileError) as caught:
        compiled_all(selecting(16) + "SELECT nope FROM R WINDOW 1")
    assert [p.kind for p in caught.value.problems] == ["unknown-column"]


# --- the parts ----------------------------------------------------------------


def test_within() -> None:
    within("things", 5, 5)
    with pytest.raises(LimitExceeded) as caught:
        within("things", 6, 5)
    assert str(caught.value) == "things: 6 needed, at most 5"
    with pytest.raises(LimitExceeded, match=r"things: 6 needed, at most 5 \(of mine\)"):
        within("things", 6, 5, "of mine")
    assert (caught.value.limit, caught.value.need, caught.value.most) == ("things", 6, 5)


def weight(most: int, tried: list[int] | None = None) -> Callable[[Sequence[int]], bool]:
    def fits(items: Sequence[int]) -> bool:
        if tried is not None:
            tried.append(len(items))
        return sum(items) <= most

    return fits


@pytest.mark.parametrize("most", range(10))
def test_first_over(most: int) -> None:
    items = [1] * 10
    tried: list[int] = []
    assert first_over(items, weight(most, tried)) == most
    assert len(tried) <= 4


def test_first_over_a_single_item() -> None:
    assert first_over([5], weight(1)) == 0


@pytest.mark.parametrize(
    ("items", "devices", "alone"),
    [
        ([], [], []),
        ([3], [[3]], []),
        ([6, 5, 4, 3], [[6, 4], [5, 3]], []),
        ([11, 5, 12], [[5]], [11, 12]),
        ([9, 9, 1, 1], [[9, 1], [9, 1]], []),
    ],
)
def test_pack(items: list[int], devices: list[list[int]], alone: list[int]) -> None:
    assert pack(items, weight(10)) == (devices, alone)
