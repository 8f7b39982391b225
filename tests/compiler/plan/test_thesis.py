"""The worked example, word for word; and that the thesis's plan delivers the requested results.

The words of S's area are those of the specification (section 7). Those of R's and T's areas were
worked out by hand from the same rules: factors in the order of the request table, then the register
that is always 1, JMPLI, the ANDs in the order of post-tags, a group for each pre-tag, NOP.
"""

from __future__ import annotations

import random

import pytest

from seustream.compiler.pipeline import Options
from seustream.compiler.wjasip.assembler import disassemble
from tests.compiler.plan.cases import Case, cases, compiled_all
from tests.compiler.plan.eight import compiled_eight
from tests.compiler.plan.random_queries import query
from tests.compiler.plan.shown import Shower
from tests.compiler.plan.walk import check_plan, deliveries, truths

EIGHT = compiled_eight("thesis")
NAMES = ["R", "S", "T"]


@pytest.mark.parametrize("case", cases("thesis"), ids=str)
def test_case(case: Case) -> None:
    c = compiled_all("\n".join(case.before), Options(plan="thesis"))
    assert Shower(c.layout).routes(c.routes) == list(case.after)
    check_plan(c.routes, c.requests)


def test_random_plans_deliver_what_was_asked() -> None:
    chance = random.Random(21)
    checked = 0
    while checked < 25:
        text = "\n".join(query(chance) for _ in range(chance.choice((1, 2, 3))))
        c = compiled_all(text, Options(plan="thesis"), stop_after="routes")
        if len(c.requests.factors) + sum(map(len, c.requests.selections)) <= 7:
            check_plan(c.routes, c.requests)
            checked += 1


def test_every_subquery_has_its_own_tags() -> None:
    rows = [len(row.slots) for row in EIGHT.requests.rows]
    assert len(EIGHT.routes.tags) == 3 + sum(n * (n - 1) for n in rows)
    assert all(len(tag.subqueries) == 1 for tag in EIGHT.routes.tags[3:])


# --- tables of the worked example ---------------------------------------------


def test_streams_and_attributes() -> None:
    assert [slot.name for slot in EIGHT.layout.slots] == NAMES
    assert EIGHT.requests.attributes == (("a", "b", "c"), ("d", "e"), ("f",))


def test_factors() -> None:
    shower = Shower(EIGHT.layout)
    assert [shower.formula(factor) for factor in EIGHT.requests.factors] == [
        "R.a = S.d",
        "S.e = T.f",
        "R.b > S.e",
        "R.c = S.e",
    ]


def test_subqueries() -> None:
    rows = [
        (
            row.subquery.number,
            "".join(NAMES[slot] for slot in row.slots),
            "".join("①②③④"[number] for number in row.factors),
            {window.size for window in row.subquery.windows},
            row.subquery.parents,
        )
        for row in EIGHT.requests.rows
    ]
    assert rows == [
        (0, "RS", "①", {100}, (0, 4)),
        (1, "RST", "①②", {200}, (1,)),
        (2, "ST", "②", {100}, (2,)),
        (3, "RS", "③", {200}, (3,)),
        (4, "RS", "④", {100}, (4,)),
        (5, "RS", "①④", {200}, (5,)),
        (6, "RST", "①", {100}, (6,)),
        (7, "RST", "②", {100}, (6,)),
        (8, "RST", "①④", {300}, (7,)),
        (9, "RST", "①②", {300}, (7,)),
    ]


ROUTES = """\
0 R ST -
1 S RT -
2 T S -
3 - - 0,4
4 - - 0,4
5 - T -
6 - - 1
7 - R -
8 - - 1
9 - S -
10 - - 1
11 - - 2
12 - - 2
13 - - 3
14 - - 3
15 - - 4
16 - - 4
17 - - 5
18 - - 5
19 - T -
20 - - 6
21 - R -
22 - - 6
23 - S -
24 - - 6
25 - T -
26 - - 6
27 - R -
28 - - 6
29 - S -
30 - - 6
31 - T -
32 - - 7
33 - R -
34 - - 7
35 - S -
36 - - 7
37 - T -
38 - - 7
39 - R -
40 - - 7
41 - S -
42 - - 7
"""
"""Tag, stream to insert into, areas to probe, queries satisfied."""


def test_routes() -> None:
    rows = []
    for tag, route in sorted(EIGHT.tables.routes.items()):
        insert = NAMES[tag] if route.insert else "-"
        probes = "".join(NAMES[area] for area in sorted(route.probes)) or "-"
        queries = ",".join(map(str, sorted(route.queries))) or "-"
        rows.append(f"{tag} {insert} {probes} {queries}\n")
    assert "".join(rows) == ROUTES


def test_windows_of_the_output() -> None:
    sizes = [100, 200, 100, 200, 100, 200, 100, 300]
    streams = ["RS", "RST", "ST", "RS", "RS", "RS", "RST", "RST"]
    shown = [[str(window) for window in windows] for windows in EIGHT.tables.windows]
    assert shown == [
        [f"RANGE {size}" if name in used else "UNUSED" for name in NAMES]
        for size, used in zip(sizes, streams, strict=True)
    ]


# --- programs -----------------------------------------------------------------

PROGRAM_OF_S = """\
CMP 0,R0,=,0      30080
CMP 1,T0,=,1      36082
CMP 1,R1,>,2      34504
CMP 1,R2,=,3      34886
CMP 0,R0,true,4   30308
JMPLI             10000
AND 0,1,16        80050
AND 0,3,17        800D1
JMPCT 0,13        4000D
JOIN 0,4          20010
JOIN 2,14         20838
JOIN 3,16         20C40
JOIN 17,18        24448
JMPCT 2,20        40814
JOIN 1,7          2041C
JOIN 1,11         2042C
JOIN 4,21         21054
JOIN 1,27         2046C
JOIN 4,33         21084
JOIN 1,39         2049C
JMPCT 9,22        42416
JOIN 16,10        24028
JMPCT 23,24       45C18
JOIN 0,24         20060
JMPCT 29,26       4741A
JOIN 1,30         20478
JMPCT 35,28       48C1C
JOIN 17,36        24490
JMPCT 41,30       4A41E
JOIN 16,42        240A8
NOP               00000
"""

# Factors 1, 3, 4 in registers 0, 1, 2; register 3 is always 1; register 16 is 1 AND 4.
PROGRAM_OF_R = """\
CMP 0,S0,=,0      31080
CMP 1,S1,<,1      35402
CMP 2,S1,=,2      39484
CMP 0,R0,true,3   30306
JMPLI             10000
AND 0,2,16        80090
JMPCT 1,16        40410
JOIN 0,3          2000C
JOIN 0,5          20014
JOIN 1,13         20434
JOIN 2,15         2083C
JOIN 16,17        24044
JOIN 0,19         2004C
JOIN 3,25         20C64
JOIN 16,31        2407C
JOIN 0,37         20094
JMPCT 7,18        41C12
JOIN 0,8          20020
JMPCT 21,20       45414
JOIN 0,22         20058
JMPCT 27,22       46C16
JOIN 3,28         20C70
JMPCT 33,24       48418
JOIN 16,34        24088
JMPCT 39,26       49C1A
JOIN 0,40         200A0
NOP               00000
"""

# Factor 2 in register 0; register 1 is always 1.
PROGRAM_OF_T = """\
CMP 0,S1,=,0      31480
CMP 0,R0,true,1   30302
JMPLI             10000
JMPCT 0,9         40009
JOIN 1,9          20424
JOIN 1,23         2045C
JOIN 1,29         20474
JOIN 1,35         2048C
JOIN 1,41         204A4
JMPCT 1,11        4040B
JOIN 0,12         20030
JMPCT 5,13        4140D
JOIN 0,6          20018
JMPCT 19,15       44C0F
JOIN 1,20         20450
JMPCT 25,17       46411
JOIN 0,26         20068
JMPCT 31,19       47C13
JOIN 1,32         20480
JMPCT 37,21       49415
JOIN 0,38         20098
NOP               00000
"""


@pytest.mark.parametrize(
    ("area", "length", "listing"),
    [(0, 27, PROGRAM_OF_R), (1, 31, PROGRAM_OF_S), (2, 22, PROGRAM_OF_T)],
    ids=NAMES,
)
def test_program(area: int, length: int, listing: str) -> None:
    lines = [line.rsplit(maxsplit=1) for line in listing.splitlines()]
    words = EIGHT.tables.areas[area].program
    assert len(words) == length
    assert [f"{word:05X}" for word in words] == [word for _, word in lines]
    assert disassemble(words, NAMES).split("\n") == [text.strip() for text, _ in lines]


def test_no_combination_is_lost_by_the_thesiss_own_plan() -> None:
    for truth in truths(EIGHT.requests):
        for raw in range(3):
            told = deliveries(EIGHT.routes, EIGHT.requests, raw, truth)
            assert set(told.values()) <= {1, 2}  # two terms of one query may both hold
