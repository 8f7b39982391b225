"""A query as a join across sites: each site's rows, the join columns, and where conditions are
evaluated. For a recorded run, also the order of each block, and its predicted and actual cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from seustream.compiler.explain.marks import plural
from seustream.compiler.explain.picture.diagram import Bars
from seustream.compiler.explain.text import Columns, NamedLines
from seustream.compiler.language import expressions as x
from seustream.compiler.logical.program import Query
from seustream.engine.sites.explain import Block
from seustream.engine.sites.query import Where, join_of

MOST = 40
"""The most blocks in a text or a picture; JSON has all."""


@dataclass(frozen=True, slots=True)
class SiteFacts:
    COLUMNS: ClassVar[Columns] = (
        ("site", "alias"),
        ("stream", "stream"),
        ("joined by", "keys"),
        ("window", "window"),
        ("sent along", "carried"),
    )

    site: int
    alias: str
    stream: str
    window: str
    keys: tuple[str, ...]
    carried: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SiteCondition:
    condition: str
    where: str


@dataclass(frozen=True, slots=True)
class WayTaken:
    """A way that was chosen for some blocks: their rows, and their predicted and actual cost."""

    COLUMNS: ClassVar[Columns] = (
        ("way", "way"),
        ("blocks", lambda one: len(one.blocks)),
        ("rows sent", "rows"),
        ("predicted", "predicted"),
        ("actual", lambda one: f"{sum(b.actual for b in one.blocks):g}"),
    )

    way: str
    blocks: tuple[Block, ...]

    @property
    def rows(self) -> str:
        return f"{sum(b.sent for b in self.blocks):,} of {sum(b.rows for b in self.blocks):,}"

    @property
    def predicted(self) -> str:
        at_hub = self.blocks[0].hub is not None
        return "-" if at_hub else f"{sum(b.predicted for b in self.blocks):g}"


@dataclass(frozen=True, slots=True)
class SitesFacts:
    BELOW: ClassVar = (("", "sites"), ("", "known"))
    SECTIONS: ClassVar = (("Ways taken", "ways"), ("Blocks", "last"))

    query: str
    sites: tuple[SiteFacts, ...]
    classes: tuple[tuple[str, ...], ...]
    conditions: tuple[SiteCondition, ...]
    blocks: tuple[Block, ...] | None

    @property
    def title(self) -> str:
        return f"Query {self.query} across {plural(len(self.sites), 'site')}"

    @property
    def known(self) -> NamedLines:
        return NamedLines("", tuple(self._known()))

    def _known(self) -> Iterator[tuple[str, str]]:
        for columns in self.classes:
            yield "equal", " = ".join(columns)
        for one in self.conditions:
            yield "condition", f"{one.condition}, {one.where}"
        if self.blocks is None:
            yield (
                "orders",
                "are chosen for each block, from synopses; --record shows those of a run",
            )
        elif len(self.blocks) > MOST:
            yield "blocks", f"the last {MOST} of {len(self.blocks):,} are shown"

    @property
    def ways(self) -> tuple[WayTaken, ...]:
        found: dict[str, list[Block]] = {}
        for block in self.blocks or ():
            found.setdefault(block.taken, []).append(block)
        return tuple(WayTaken(way, tuple(some)) for way, some in sorted(found.items()))

    @property
    def last(self) -> tuple[Block, ...]:
        return (self.blocks or ())[-MOST:]

    @property
    def bars(self) -> Bars:
        """Draws a line per block: its way, its predicted and its actual cost."""
        title = f"{self.query}: the way of each block, predicted and actual cost"
        rows = [
            (
                (f"{block.tau:g}", block.taken),
                (block.predicted, block.actual),
                f"{block.actual:g}"
                if block.hub is not None
                else f"{block.predicted:g} / {block.actual:g}",
            )
            for block in self.last
        ]
        return Bars(title, ("time", "way"), ("predicted", "actual"), rows)


def outline(query: Query, blocks: Sequence[Block] | None = None) -> SitesFacts:
    """Returns the facts known before anything runs, and with `blocks` those of a run."""
    join = join_of(query)
    names = [stream.name for stream in join.streams]

    def where(one: Where) -> str:
        met = [names[k] for k in one.streams]
        return f"at the source {met[0]}" if len(met) == 1 else f"where {' and '.join(met)} meet"

    return SitesFacts(
        query.name,
        tuple(
            SiteFacts(
                k,
                source.alias,
                source.stream.name,
                str(source.window),
                tuple(join.streams[k].columns),
                tuple(join.streams[k].carried),
            )
            for k, source in enumerate(query.sources)
        ),
        tuple(tuple(f"{names[k]}.{name}" for k, name in sorted(one)) for one in join.classes),
        tuple(
            SiteCondition(x.show(residual.condition), where(residual))
            for residual in join.residuals
            if isinstance(residual, Where)
        ),
        None if blocks is None else tuple(blocks),
    )
