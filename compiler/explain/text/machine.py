"""Routes, join areas and programs as text."""

from __future__ import annotations

from collections.abc import Sequence

from seustream.compiler.explain.facts.machine import AreaFacts, CombinationFacts, Listing
from seustream.compiler.explain.facts.names import marks
from seustream.compiler.explain.facts.routes import CrossProduct, Routes, StepFacts, TagFacts
from seustream.compiler.explain.marks import WIDTH, branches, circled, hanging, plural, table, wrap
from seustream.compiler.explain.text.plan import selections


def routes(found: Routes) -> list[str]:
    rows = [
        (
            tag.tag,
            ", ".join(tag.carries),
            tag.carries[0] if tag.inserts else "",
            ", ".join(tag.probes),
            ", ".join(tag.queries),
            ", ".join(map(str, tag.subqueries)),
        )
        for tag in found.tags
    ]
    head = ("tag", "carries", "insert", "probe", "queries", "subqueries")
    lines = [*table(head, rows), "", *graph(found, with_legend=True)]
    if found.cross_products:
        lines += ["", *cross_products(found.cross_products)]
    return lines


def graph(found: Routes, with_legend: bool = False) -> list[str]:
    """For every arriving stream, what its tuples go through. Where that is too wide, conditions
    are shown by their marks, then tags without what they carry."""
    lines = _graph(found, brief=False, carried=True)
    if _is_wide(lines):
        lines = _graph(found, brief=True, carried=True)
        if _is_wide(lines):
            lines = _graph(found, brief=True, carried=False)
        if with_legend:
            lines += ["", *_legend(found.steps)]
    return lines or ["  no stream is joined"]


def _is_wide(lines: Sequence[str]) -> bool:
    return any(len(line) > WIDTH for line in lines)


def _graph(found: Routes, brief: bool, carried: bool) -> list[str]:
    """Below a tag already shown for the same stream stands nothing but a hint."""
    lines: list[str] = []
    tags = {tag.tag: tag for tag in found.tags}
    for raw in (tag for tag in found.tags if tag.inserts):
        rows: list[tuple[int, StepFacts, str]] = []
        _follow(found.steps, tags, raw.tag, 1, rows, set())
        leads = branches([0, *(depth for depth, _, _ in rows)])[1:]
        names = [_tag(tags[step.post], carried) for _, step, _ in rows]
        checks = [
            f"{lead}probe {step.area}  {checked(step, brief)}"
            for lead, (_, step, _) in zip(leads, rows, strict=True)
        ]
        width, widest = (max(map(len, cells), default=0) for cells in (checks, names))
        lines.append(f"  {raw.carries[0]} arrives")
        for lead, check, name, (_, _, end) in zip(leads, checks, names, rows, strict=True):
            first, *more = wrap(end, max(WIDTH - width - widest - 8, 20))
            lines.append(f"  {check:<{width}}  → {name:<{widest}}  {first}".rstrip())
            stems = lead.replace("├─", "│ ").replace("└─", "  ")
            lines += [f"  {stems:<{width + widest + 6}}  {rest}" for rest in more]
        lines.append("")
    return lines[:-1]


def _follow(
    steps: Sequence[StepFacts],
    tags: dict[int, TagFacts],
    pre: int,
    depth: int,
    rows: list[tuple[int, StepFacts, str]],
    shown: set[int],
) -> None:
    for step in sorted((s for s in steps if s.pre == pre), key=lambda s: (s.area, s.post)):
        queries = tags[step.post].queries
        end = f"⇒ {', '.join(queries)}" if queries else ""
        again = step.post in shown and any(s.pre == step.post for s in steps)
        rows.append((depth, step, f"{end}  (goes on as above)".lstrip() if again else end))
        if not again:
            shown.add(step.post)
            _follow(steps, tags, step.post, depth + 1, rows, shown)


def checked(step: StepFacts, brief: bool) -> str:
    """Returns what a step checks, in words or by marks."""
    if brief:
        return " ".join((marks(step.factors) or "×", *step.selections))
    conditions = ", ".join(step.conditions)
    return " ".join(("× any tuple", conditions)).rstrip() if step.cross_product else conditions


def _legend(steps: Sequence[StepFacts]) -> list[str]:
    """The marks of all steps: factors, then selections, each by number."""
    signs: dict[str, str] = {}
    for step in steps:
        signs |= zip((*map(circled, step.factors), *step.selections), step.conditions, strict=True)
    order = sorted(signs, key=lambda mark: ("σ" in mark, len(mark), mark))
    return [line for mark in order for line in hanging(f"{mark} ", signs[mark])]


def _tag(tag: TagFacts, carried: bool) -> str:
    return f"tag {tag.tag}" + (f" ({','.join(tag.carries)})" if carried else "")


def cross_products(found: Sequence[CrossProduct]) -> list[str]:
    lines = []
    for one in found:
        label = f"× {one.query}, subquery {one.subquery}: "
        lines += hanging(label, one.text)
    return lines


# --- areas --------------------------------------------------------------------


def areas(found: Sequence[AreaFacts]) -> list[str]:
    lines: list[str] = []
    for area in found:
        lines += [*_area(area), ""]
    return lines[:-1] or ["no join areas: no query joins streams in the device"]


def _area(area: AreaFacts) -> list[str]:
    columns = ", ".join(f"{a.attribute} = {a.column}" for a in area.attributes) or "none"
    lines = [
        f"area {area.area}" + (f", {area.instructions} instructions" if area.instructions else ""),
        *hanging("attributes  ", columns),
        f"  keeps       {area.keeps}, in a buffer of {area.capacity:,} tuples",
        *hanging("admits      ", " or ".join(area.admits) or "every tuple"),
        *_looked_up(area),
    ]
    if area.factors:
        rows = [(f"r{f.register}", f.mark, f.condition, f.compares) for f in area.factors]
        lines += ["", *table(("register", "", "factor", "compares"), rows)]
    if area.selections:
        lines += ["", *selections(area.selections)]
    head = ("tag", "carries", "factors", "selections", "becomes", "then")
    return [*lines, "", *table(head, map(_combination, area.combinations))]


def _looked_up(area: AreaFacts) -> list[str]:
    """Returns which tags find their window tuples by an index, and which look at all of them."""
    lines = []
    for index in area.indexes:
        found = ", ".join(f"{lookup.tag} ({lookup.mark})" for lookup in index.lookups)
        lines += hanging(
            "indexed     ", f"by {index.column} for {_tags(len(index.lookups))} {found}"
        )
    for scan in area.scans:
        tags = ", ".join(map(str, scan.tags))
        lines += hanging("scanned     ", f"for {_tags(len(scan.tags))} {tags}: {scan.why}")
    if area.row and area.row.cycles > 1:
        row = area.row
        lines += hanging(
            "a row       ",
            f"of {row.lanes} tuples takes {row.cycles} cycles: {row.factors} factors of"
            f" {', '.join(row.columns)}, {row.comparators} compared at once",
        )
    return lines


def _tags(count: int) -> str:
    return "tag" if count == 1 else "tags"


def _combination(row: CombinationFacts) -> tuple[object, ...]:
    carried = ",".join(row.carries)
    return (row.pre, carried, factor_marks(row), " ".join(row.selections), row.post, after(row))


def factor_marks(row: CombinationFacts) -> str:
    return marks(row.factors) or "×"


def after(row: CombinationFacts) -> str:
    ways = []
    if row.queries:
        ways.append(f"⇒ {', '.join(row.queries)}")
    if row.probes:
        ways.append(f"→ probe {', '.join(row.probes)}")
    return " ".join(ways)


def area_summary(found: Sequence[AreaFacts]) -> list[str]:
    return table(
        (
            "area",
            "attributes",
            "factors",
            "combinations",
            "index",
            "scans",
            "instructions",
            "keeps",
            "admits",
        ),
        [
            (
                area.area,
                ", ".join(a.column for a in area.attributes),
                " ".join(f.mark for f in area.factors),
                len(area.combinations),
                ", ".join(index.column for index in area.indexes),
                "; ".join(
                    f"{_tags(len(scan.tags))} {', '.join(map(str, scan.tags))}"
                    for scan in area.scans
                ),
                area.instructions or "",
                area.keeps,
                " or ".join(area.admits) or "every tuple",
            )
            for area in found
        ],
    )


# --- listing ------------------------------------------------------------------


def listings(found: Sequence[Listing]) -> list[str]:
    lines: list[str] = []
    for listing in found:
        size = plural(len(listing.lines), "instruction")
        lines.append(f"area {listing.area}: {size} of {listing.limit:,}")
        for r in listing.registers:
            lines += hanging(f"r{r.register} reads {r.mark} of the {r.of}: ", r.condition)
        width = max(len(line.instruction) for line in listing.lines)
        for line in listing.lines:
            code = f"{line.address:>4}  {line.word}  {line.instruction:<{width}}"
            lines += hanging(f"{code}  ; ", line.comment, indent=0)
        lines.append("")
    return lines[:-1] or ["no programs: no query joins streams in the device"]
