"""The pictures show every part, and no two parts overlap."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree

import pytest

from seustream.compiler.explain import explain
from tests.compiler.explain.programs import CASES, compiled

SVG = "{http://www.w3.org/2000/svg}"
Box = tuple[float, float, float, float]


def drawn(name: str, plan: str, stage: str | None = None) -> ElementTree.Element:
    return ElementTree.fromstring(explain(compiled(name, plan), stage, "svg"))


def boxes(root: ElementTree.Element) -> dict[str, Box]:
    """Returns the rectangle of every group by its id: left, top, right, bottom."""
    found = {}
    for group in root.iter(f"{SVG}g"):
        rect = group.find(f"{SVG}rect")
        assert rect is not None
        x, y, width, height = (float(rect.attrib[a]) for a in ("x", "y", "width", "height"))
        found[group.attrib["id"]] = (x, y, x + width, y + height)
    return found


@pytest.mark.parametrize(("name", "plan"), CASES)
def test_every_tag_step_and_query_is_there_once(name: str, plan: str) -> None:
    c = compiled(name, plan)
    root = drawn(name, plan)
    ids = [group.attrib["id"] for group in root.iter(f"{SVG}g")]
    assert len(set(ids)) == len(ids)
    assert {i for i in ids if i.startswith("tag-")} == {f"tag-{t.number}" for t in c.routes.tags}
    assert sum(i.startswith("step-") for i in ids) == len(c.routes.steps)
    assert sum(i.startswith("query-") for i in ids) == len(c.program.queries)


def test_an_arrow_says_between_which_boxes_it_goes() -> None:
    root = drawn("eight", "cost")
    ids = {group.attrib["id"] for group in root.iter(f"{SVG}g")}
    arrows = {
        (one.attrib["data-from"], one.attrib["data-to"])
        for one in root.iter()
        if "data-from" in one.attrib
    }
    steps = compiled("eight", "cost").routes.steps
    assert {(f"tag-{s.pre}", f"tag-{s.post}") for s in steps} <= arrows
    assert {end for arrow in arrows for end in arrow} <= ids
    shapes = [one for one in root.iter(f"{SVG}path") if "edge" in one.attrib["class"]]
    assert sum("data-from" in one.attrib for one in shapes) >= len(arrows)


@pytest.mark.parametrize("stage", ["routes", "tree"])
@pytest.mark.parametrize(("name", "plan"), CASES)
def test_nothing_overlaps_and_all_is_on_the_paper(name: str, plan: str, stage: str) -> None:
    root = drawn(name, plan, stage)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    found = boxes(root)
    for left, top, right, bottom in found.values():
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
    for (one, a), (other, b) in combinations(found.items(), 2):
        apart = a[2] <= b[0] + 0.2 or b[2] <= a[0] + 0.2 or a[3] <= b[1] or b[3] <= a[1]
        assert apart, f"{one} lies on {other}"


@pytest.mark.parametrize("plan", ["cost", "thesis"])
def test_cross_products_are_dashed(plan: str) -> None:
    crossed = {
        f"step-{s.pre}-{s.post}-{compiled('eight').slot_names[s.area]}"
        for s in compiled("eight", plan).routes.steps
        if s.is_cross_product
    }
    dashed = set()
    for group in drawn("eight", plan).iter(f"{SVG}g"):
        rect = group.find(f"{SVG}rect")
        if rect is not None and "cross crossed" in rect.attrib["class"]:
            dashed.add(group.attrib["id"])
    assert dashed == crossed
    assert crossed


def test_steps_say_how_they_find_their_tuples() -> None:
    titles = {
        group.attrib["id"]: group.findtext(f"{SVG}title") or ""
        for group in drawn("eight", "cost").iter(f"{SVG}g")
    }
    assert titles["step-2-9-S"] == "probe S: S.e = T.f; looked up by e"
    assert titles["step-2-10-R"].startswith("probe R: any tuple; all are looked at: no equality")
    assert titles["step-0-3-S"].endswith("no equality common to all combinations")
    texts = [text.text for text in drawn("eight", "cost").iter(f"{SVG}text")]
    assert "probes area S, indexed by d, e" in texts
    assert "probes area R" in texts


def test_the_picture_of_the_routes_knows_no_index_yet() -> None:
    assert "indexed by" not in explain(compiled("eight"), "routes", "svg")
