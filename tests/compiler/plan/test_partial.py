"""The groups that a device forms for a query, and the reasons why it forms none."""

from __future__ import annotations

import dataclasses

import pytest

from seustream.compiler.explain.facts.names import View
from seustream.compiler.explain.facts.split import queries
from seustream.compiler.pipeline import Options
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.device import Grouped
from tests.compiler.plan.cases import Case, cases, compiled_all
from tests.compiler.plan.shown import Shower

MINUTE = "TUMBLE(ts_newest, INTERVAL 1 minute)"
JOIN = f"SELECT R.a, sum(S.e) AS s FROM R, S WHERE R.a = S.d GROUP BY R.a, {MINUTE} WINDOW 500;"


@pytest.mark.parametrize("case", cases("partial"), ids=str)
def test_case(case: Case) -> None:
    c = compiled_all("\n".join(case.before))
    assert Shower(c.layout).partials(c.partials, c.requests) == list(case.after)


def test_each_tag_of_a_query_is_grouped_for_the_first_that_can_be() -> None:
    c = compiled_all(JOIN + JOIN.replace("sum", "max").replace("500", "900"))
    tags = {tag.number for tag in c.routes.tags if 0 in tag.queries}
    assert tags
    assert [one.query for one in c.partials.groups] == [0, 1]
    assert c.tables.grouped == dict.fromkeys(tags, Grouped(0, (0, 0), (1, 1), 60_000))


def test_a_configuration_without_the_unit_forms_none() -> None:
    options = Options(config=dataclasses.replace(CONFIGURATIONS["default"], groups=0))
    c = compiled_all(JOIN, options=options)
    assert c.tables.grouped == {}
    assert c.requests.attributes == (("a",), ("d",))
    assert c.partials.left == {"q0": "configuration 'default' has no grouping unit"}


def test_explain_says_which_of_two_queries_is_counted() -> None:
    """The queries share a route tag, which is grouped for the first."""
    c = compiled_all(JOIN + JOIN.replace("sum", "max"))
    first, second = (one.groups for one in queries(View(c)))
    assert (
        first
        == "counted in the device by R.a, with sum, least and greatest S.e, 60,000 ms at a time"
    )
    assert second == "in software   (its results are those of another query that is counted)"
