"""An APAS query, moment by moment: the output of the network is the product's, and every edge
carries its part of the flow."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import seustream as ss
from seustream.compiler.pipeline import Compilation
from seustream.errors import InputError, UserError
from seustream.studio.compiled import Settings, compilation
from seustream.studio.data import rows
from seustream.studio.intervals import flowing
from seustream.studio.server import gallery

TEXT = next(one["text"] for one in gallery() if one["name"] == "intervals")
TWO = """CREATE STREAM P (speed int);
CREATE STREAM means AS APAS $$ where window.range($P, 10) select means[n = agg.count($P)] $$;
REGISTER QUERY late AS APAS $$ where $means.n > 1 select late[$means[T]] $$;
REGISTER QUERY ever AS APAS $$ where window.unbounded($P) select ever[top = agg.max($P.speed)] $$;"""


def given(text: str, seed: int, count: int = 60) -> tuple[Compilation, dict[str, Any]]:
    c = compilation(text, Settings())
    return c, rows(c.program.base, seed, count)


@pytest.mark.parametrize("seed", range(3))
def test_what_leaves_the_network_is_what_a_run_gives(seed: int) -> None:
    c, some = given(TEXT, seed)
    found = flowing(c, some, "busy")
    last = next(i for i, edge in enumerate(found["edges"]) if edge["to"] == -1)
    out = [tuple(row) for step in found["steps"] for row in step["edges"][last]]
    assert Counter(out) == Counter(ss.run(TEXT, **some)["busy"].rows())
    assert out, f"seed {seed} gives nothing"
    assert found["refused"] == 0


def test_every_edge_has_what_its_node_gave() -> None:
    """For a stream the edge carries its rows at their times; for a union the rows of both sides."""
    c, some = given(TEXT, 1)
    found = flowing(c, some, "")
    named = [node["title"] for node in found["nodes"]]
    union = next(n for n, title in enumerate(named) if title.startswith("union"))
    flowed: dict[tuple[int, int], list[Any]] = {}
    for i, edge in enumerate(found["edges"]):
        flowed[edge["from"], edge["to"]] = [
            (step["at"], *row) for step in found["steps"] for row in step["edges"][i]
        ]
    north = named.index("stream North")
    ((_, came),) = [(ends, rows) for ends, rows in flowed.items() if ends[0] == north]
    rows_of = [(row["ts"], row["ts"], row["te"], row["speed"]) for row in some["North"]]
    assert sorted(came) == sorted(rows_of)
    sides = [rows for (_, to), rows in flowed.items() if to == union]
    assert len(sides) == 2
    (both,) = [rows for (start, _), rows in flowed.items() if start == union]
    assert Counter(row[1:] for row in both) == Counter(row[1:] for side in sides for row in side)
    assert found["steps"][-1]["at"] is None


def test_what_never_ends_has_no_end() -> None:
    c, some = given(TWO, 2)
    found = flowing(c, some, "ever")
    ends = {row[1] for step in found["steps"] for edge in step["edges"] for row in edge}
    assert None in ends
    assert found["queries"] == ["ever", "means"]  # without the query that reads results


@pytest.mark.filterwarnings("ignore:stream P. 1 late row")
def test_late_rows_and_values_are_those_of_a_run() -> None:
    text = TWO.replace("speed int", "speed double precision")
    c = compilation(text, Settings())
    some = {"ts": [5, 2, 9], "speed": [1.0, 4.0, float("inf")]}
    found = flowing(c, {"P": some}, "ever")
    out = [row for step in found["steps"] for row in step["edges"][-1]]
    assert [row[2:] for row in out] == [[1], ["Infinity"]]
    assert len(ss.run(text, P=some)["ever"].rows()) == 2
    assert found["left_out"]["P"]["rows"] == [[2, 4]]


def test_what_cannot_be_shown() -> None:
    c, some = given(TWO, 1)
    with pytest.raises(UserError, match="no APAS query 'evver'") as refused:
        flowing(c, some, "evver")
    assert refused.value.hint == "did you mean ever?"
    with pytest.raises(InputError, match="no rows for stream P"):
        flowing(c, {}, "ever")
    none = compilation("CREATE STREAM R (a int); SELECT a FROM R WINDOW NOW;", Settings())
    with pytest.raises(UserError, match="no APAS query reads"):
        flowing(none, {}, "")
