"""The split between device and host: reasons, residual work, limits."""

from __future__ import annotations

import pytest

from tests.compiler.explain.programs import facts


def test_a_self_join_is_told_by_its_areas() -> None:
    (query,) = facts("self-join", "split")["queries"]
    assert [(s["alias"], s["area"]) for s in query["sources"]] == [("x", "R"), ("y", "R#2")]
    (factor,) = facts("self-join", "requests")["factors"]
    assert factor["condition"] == "R.a = R#2.b"


@pytest.mark.parametrize(
    ("program", "query", "runs", "why"),
    [
        ("eight", "q0", "device", "joins run in the device"),
        ("eight", "q6", "device", "joins run in the device"),
        ("residuals", "liked", "device, then host", "joins run in the device"),
        ("grouped", "grouped", "device, then host", "joins run in the device"),
        ("host alone", "single", "host", "one stream, nothing to join"),
        ("host alone", "derived", "host", "it reads a derived stream"),
        ("host alone", "never", "nowhere", "its condition is never true"),
    ],
)
def test_where_a_query_runs(program: str, query: str, runs: str, why: str) -> None:
    (found,) = facts(program, "split", query=query)["queries"]
    assert (found["runs"], found["why"]) == (runs, why)


def test_the_host_groups_and_aggregates() -> None:
    (query,) = facts("grouped", "split")["queries"]
    work = [step["work"] for step in query["host"]]
    assert work == ["group by S.e", "compute count(*)", "keep groups with count(*) > 2"]


def test_windows_larger_than_a_buffer_are_noted() -> None:
    (picked,) = facts("selections", "split", query="picked")["queries"]
    assert picked["notes"][0] == (
        "window of R holds 4,000 rows, a buffer 2,032; the host joins the others"
    )


def test_limits_are_those_of_the_device() -> None:
    uses = {use["resource"]: use for use in facts("eight", "split", "thesis")["uses"]}
    assert (uses["route tags"]["used"], uses["route tags"]["limit"]) == (43, 256)
    assert (uses["instructions"]["used"], uses["instructions"]["where"]) == (31, "S")
    assert (uses["factors in an area"]["used"], uses["scratch registers"]["used"]) == (5, 2)
