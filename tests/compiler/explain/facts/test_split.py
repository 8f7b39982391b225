"""The split between device and host: reasons, residual work, limits."""

from __future__ import annotations

import json

import pytest

from seustream.compiler.explain import explain
from seustream.compiler.pipeline import Options, compile_text
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
        ("host alone", "single", "device", "its selection runs in the device"),
        ("host alone", "derived", "host", "it reads a derived stream"),
        ("host alone", "never", "nowhere", "its condition is never true"),
    ],
)
def test_where_a_query_runs(program: str, query: str, runs: str, why: str) -> None:
    (found,) = facts(program, "split", query=query)["queries"]
    assert (found["runs"], found["why"]) == (runs, why)


def test_queries_of_other_devices_run_there() -> None:
    """Each of six joins reads two streams. A device holds four streams, so the third join is on the
    second device."""
    streams = "".join(f"CREATE STREAM s{n} (a int, b varchar(9));" for n in range(7))
    queries = "".join(
        f"REGISTER QUERY q{n} AS SELECT s{n}.a FROM s{n}, s{n + 1} WHERE s{n}.a = s{n + 1}.a"
        f"{' AND lower(s3.b) > s4.b' if n == 3 else ''} WINDOW RANGE 5;"
        for n in range(6)
    )
    c = compile_text(streams + queries, options=Options(devices=None))
    shown = {one["query"]: one for one in json.loads(explain(c, "split", "json"))["queries"]}
    devices = {
        one.division.query.name: f"device {made.number + 1}" if made.number else "device"
        for made in c.devices
        for one in made.device_queries
    }
    assert len({*devices.values()}) > 1
    assert devices["q3"] != "device"
    assert {name: one["runs"].removesuffix(", then host") for name, one in shown.items()} == devices
    assert shown["q3"]["runs"].endswith(", then host")
    assert [work["work"] for work in shown["q3"]["host"]] == ["check lower(s3.b) > s4.b"]
    assert not shown["q4"]["host"]
    for name, device in devices.items():
        (alone,) = json.loads(explain(c, "split", "json", name))["queries"]
        assert alone == shown[name]
        assert [part["parents"] for part in json.loads(explain(c, "subqueries", "json", name))] == [
            [name]
        ]
        areas = {area["area"] for area in json.loads(explain(c, "areas", "json", name))}
        assert areas == {f"s{name[1]}", f"s{int(name[1]) + 1}"}
        number = device.removeprefix("device").strip() or "1"
        assert f"on device {number} of {len(c.devices)}\n" in explain(c, None, "text", name)
    assert "on device 1 of 2: --query shows" in explain(c, None, "text")


def test_queries_without_a_common_key_are_shown_each_with_its_own() -> None:
    text = """
        CREATE STREAM R (a int, b int); CREATE STREAM S (d int, e int);
        REGISTER QUERY one AS SELECT R.b FROM R, S WHERE R.a = S.d WINDOW RANGE 9;
        REGISTER QUERY two AS SELECT R.b FROM R, S WHERE R.b = S.e WINDOW RANGE 9;
        REGISTER QUERY three AS SELECT R.b FROM R, S WHERE R.b < S.e WINDOW RANGE 9;
    """
    shown = " ".join(explain(compile_text(text), "split", "text").split())
    assert "no key query three does not equate a column of each of its streams" in shown
    assert "one alone by key R by a, S by d: every join equates them" in shown
    assert "two alone by key R by b, S by e: every join equates them" in shown
    assert "three alone no key query three" in shown
    two = " ".join(
        explain(compile_text(text.partition("REGISTER QUERY two")[0]), "split", "text").split()
    )
    assert "by key R by a, S by d" in two
    assert "alone" not in two


def test_the_host_groups_and_aggregates() -> None:
    (query,) = facts("grouped", "split")["queries"]
    work = [step["work"] for step in query["host"]]
    assert work == ["group by S.e", "compute count(*)", "keep groups with count(*) > 2"]


def test_windows_larger_than_a_buffer_are_noted() -> None:
    (picked,) = facts("selections", "split", query="picked")["queries"]
    assert picked["notes"][0] == (
        "window of R holds 4,000 rows, a buffer 1,952; the host joins the others"
    )


def test_limits_are_those_of_the_device() -> None:
    uses = {use["resource"]: use for use in facts("eight", "split", "thesis")["uses"]}
    assert (uses["route tags"]["used"], uses["route tags"]["limit"]) == (43, 256)
    assert (uses["instructions"]["used"], uses["instructions"]["where"]) == (31, "S")
    assert (uses["factors in an area"]["used"], uses["scratch registers"]["used"]) == (5, 2)
