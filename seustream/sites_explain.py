"""A query as a join across sites, for `seustream explain --stage sites`: which site keeps what, what
joins them, where conditions are looked at; of a run that was recorded the order of each block, and its
predicted and actual cost."""

from __future__ import annotations

from collections.abc import Sequence

from seustream.compiler.explain.marks import hanging, plural, section, table
from seustream.compiler.explain.picture import draw
from seustream.compiler.language import expressions as x
from seustream.compiler.logical.program import Query
from seustream.engine.sites.explain import HEAD, Block, facts, rows
from seustream.engine.sites.model import EquiJoin
from seustream.engine.sites.query import Where, join_of

MOST = 40
"""Blocks in a text or a picture; JSON has all."""

Facts = dict[str, object]


def outline(query: Query) -> Facts:
    """The facts known before anything runs."""
    join = join_of(query)
    return {
        "query": query.name,
        "sites": [
            {
                "site": k,
                "alias": source.alias,
                "stream": source.stream.name,
                "window": str(source.window),
                "keys": list(join.streams[k].columns),
                "carried": list(join.streams[k].carried),
            }
            for k, source in enumerate(query.sources)
        ],
        "classes": [_class(join, c) for c in range(len(join.classes))],
        "conditions": [
            {"condition": x.show(residual.condition), "where": _where(join, residual)}
            for residual in join.residuals
            if isinstance(residual, Where)
        ],
    }


def _class(join: EquiJoin, c: int) -> list[str]:
    return [f"{join.streams[k].name}.{name}" for k, name in sorted(join.classes[c])]


def _where(join: EquiJoin, residual: Where) -> str:
    names = [join.streams[k].name for k in residual.streams]
    return f"at the source {names[0]}" if len(names) == 1 else f"where {' and '.join(names)} meet"


def by_order(blocks: Sequence[Block]) -> list[tuple[object, ...]]:
    """For each way that was chosen: blocks, rows, cost as predicted and as it was."""
    found: dict[str, list[Block]] = {}
    for block in blocks:
        found.setdefault(block.way if block.sent else f"{block.stream} stays", []).append(block)
    return [
        (
            way,
            len(some),
            f"{sum(b.sent for b in some):,} of {sum(b.rows for b in some):,}",
            "-" if some[0].hub is not None else f"{sum(b.predicted for b in some):g}",
            f"{sum(b.actual for b in some):g}",
        )
        for way, some in sorted(found.items())
    ]


def as_json(query: Query, blocks: Sequence[Block] | None) -> Facts:
    found = outline(query)
    if blocks is not None:
        found["blocks"] = facts(blocks)
    return found


def as_text(query: Query, blocks: Sequence[Block] | None) -> list[str]:
    known = outline(query)
    sites = [
        (s["alias"], s["stream"], ", ".join(s["keys"]), s["window"], ", ".join(s["carried"]))
        for s in known["sites"]  # type: ignore[attr-defined]  # JSON
    ]
    out = section(
        f"Query {query.name} across {plural(len(sites), 'site')}",
        table(("site", "stream", "joined by", "window", "sent along"), sites),
    )
    for columns in known["classes"]:  # type: ignore[attr-defined]  # JSON
        out += hanging("equal      ", " = ".join(columns))
    for one in known["conditions"]:  # type: ignore[attr-defined]  # JSON
        out += hanging("condition  ", f"{one['condition']}, {one['where']}")
    out.append("")
    if blocks is None:
        out += hanging(
            "orders     ", "are chosen for each block, from synopses; --record shows a run's"
        )
        return out
    head = ("way", "blocks", "rows sent", "predicted", "actual")
    out += section("Ways taken", table(head, by_order(blocks)))
    last = blocks[-MOST:]
    title = "Blocks" if len(last) == len(blocks) else f"Blocks, the last {MOST} of {len(blocks):,}"
    return out + section(title, table(HEAD, rows(last)))


# --- as a picture ---------------------------------------------------------------

_LINE, _TOP, _LEFT, _BARS = 22, 74, 300, 380


def as_picture(query: Query, blocks: Sequence[Block]) -> str:
    """A line a block: its way, and two bars, what it was to cost and what it did."""
    shown = blocks[-MOST:]
    most = max((max(b.predicted, b.actual) for b in shown), default=0) or 1
    title = f"{query.name}: the way of each block, predicted and actual cost"
    out = [
        draw.text(16, 24, title, "title"),
        draw.text(16, 50, "time", "soft"),
        draw.text(60, 50, "way", "soft"),
    ]
    for at, name in ((_LEFT, "predicted"), (_LEFT + 100, "actual")):
        out += [draw.rectangle(at, 45, 12, 10, name, 0), draw.text(at + 18, 50, name, "soft")]
    for number, block in enumerate(shown):
        y = _TOP + _LINE * number
        out += [
            draw.text(16, y + 8, f"{block.tau:g}", "soft"),
            draw.text(60, y + 8, block.way if block.sent else f"{block.stream} stays"),
        ]
        for name, cost, down in (("predicted", block.predicted, 0), ("actual", block.actual, 9)):
            out.append(draw.rectangle(_LEFT, y + down, _BARS * cost / most, 8, name, 0))
        said = (
            f"{block.actual:g}"
            if block.hub is not None
            else f"{block.predicted:g} / {block.actual:g}"
        )
        end = _LEFT + _BARS * max(block.predicted, block.actual) / most
        out.append(draw.text(end + 6, y + 8, said, "soft"))
    return draw.document(_LEFT + _BARS + 80, _TOP + _LINE * len(shown) + 16, title, out)
