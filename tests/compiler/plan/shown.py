"""Writes the results of the passes as the lines of their fixtures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seustream.compiler.language import expressions as x
from seustream.compiler.plan.decompose import Subquery
from seustream.compiler.plan.divide import (
    Any,
    Attribute,
    Division,
    Every,
    Formula,
    JoinFactor,
    SelectionTerm,
)
from seustream.compiler.plan.layout import Layout
from seustream.compiler.plan.normalise import Normalised, Term
from seustream.compiler.plan.partial import GroupPlan
from seustream.compiler.plan.requests import Requests
from seustream.compiler.plan.routes import RoutePlan
from seustream.hdl.device import Tables


class Shower:
    """Writes results with the names of the slots."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.names = [slot.name for slot in layout.slots]

    def attribute(self, of: Attribute) -> str:
        return f"{self.names[of.slot]}.{of.column}"

    def formula(self, f: Formula) -> str:
        """Writes a formula: selections in brackets, their codes without the offset that keeps
        signed values in order."""
        match f:
            case JoinFactor():
                left, right = self.attribute(f.left), self.attribute(f.right)
                return f"{left} {f.condition.symbol} {right}"
            case SelectionTerm():
                joint = " and " if f.every else " or "
                tests = joint.join(
                    f"{t.column} {t.condition.symbol} {self._constant(f.slot, t.column, t.code)}"
                    for t in f.tests
                )
                return f"{self.names[f.slot]}[{tests}]"
            case Every(parts):
                return " AND ".join(map(self._inner, parts)) or "always"
            case Any(parts):
                return " OR ".join(map(self._inner, parts))

    def _inner(self, f: Formula) -> str:
        return f"({self.formula(f)})" if isinstance(f, (Every, Any)) else self.formula(f)

    def _constant(self, slot: int, column: str, code: int) -> str:
        encoding = self.layout.encodings[self.layout.slots[slot].stream.name, column]
        if encoding.codec.name == "INTEGER":
            return str(code - (1 << (encoding.width - 1)))
        return f"{code:0{encoding.width // 4}x}"

    # --- passes ---------------------------------------------------------------

    def division(self, division: Division) -> list[str]:
        lines = []
        for part in division.parts:
            lines.append(f"{x.show(part.condition)} -> {self.formula(part.device)}")
            if part.why is not None:
                lines.append(f"  residual: {part.why}")
        return lines if division.on_device else [f"software: {division.why}"]

    def term(self, term: Term) -> str:
        return " AND ".join(map(self.formula, term)) or "always"

    def normalised(self, one: Normalised) -> list[str]:
        lines = [self.term(term) for term in one.terms]
        if one.fell_back:
            lines.append("fell back")
        return lines + [f"residual: {x.show(e)}" for e in one.residual]

    def subquery(self, s: Subquery) -> str:
        windows = list(dict.fromkeys(map(str, s.windows)))
        return (
            f"{s.number}: {self._slots(s.slots)} | {self.term(s.leaves)}"
            f" | {', '.join(windows if len(windows) == 1 else map(str, s.windows))}"
            f" | {_numbers(s.parents)}"
        )

    def _slots(self, slots: Iterable[int]) -> str:
        return ",".join(self.names[slot] for slot in sorted(slots))

    def requests(self, requests: Requests) -> list[str]:
        lines = [f"factor {i}: {self.formula(f)}" for i, f in enumerate(requests.factors)]
        for slot, terms in enumerate(requests.selections):
            lines += [f"selection {i}: {self.formula(term)}" for i, term in enumerate(terms)]
            lines.append(f"attributes {self.names[slot]}: {', '.join(requests.attributes[slot])}")
        for row in requests.rows:
            bits = [f"{self.names[slot]}{bit}" for slot, bit in row.selections]
            lines.append(
                f"row {row.subquery.number}: factors {_numbers(row.factors)},"
                f" selections {' '.join(bits) or '-'}"
            )
        return lines

    def partials(self, plan: GroupPlan, requests: Requests) -> list[str]:
        lines = {}
        for one in plan.groups:
            key, value = ("-" if of is None else self.attribute(of) for of in (one.key, one.value))
            lines[one.name] = f"key {key}, value {value}, periods of {one.period} from {one.offset}"
        shown = [f"{name}: {line}" for name, line in sorted((lines | plan.left).items())]
        for name, attributes in zip(self.names, requests.attributes, strict=True):
            shown.append(f"attributes {name}: {', '.join(attributes)}")
        return shown

    def routes(self, plan: RoutePlan) -> list[str]:
        lines = []
        for tag in plan.tags:
            parts = [f"tag {tag.number}: {self._slots(tag.bound)}"]
            if tag.inserts:
                parts.append("inserts")
            if tag.probes:
                parts.append(f"probes {self._slots(tag.probes)}")
            if tag.queries:
                parts.append(f"queries {_numbers(sorted(tag.queries))}")
            lines.append(", ".join(parts))
        for step in sorted(plan.steps, key=lambda s: (s.area, s.pre, s.post)):
            bits = [f"w{bit}" for bit in step.window_selections]
            bits += [f"p{bit}" for bit in step.probe_selections]
            needs = " ".join([*map(str, step.factors), *bits]) or "-"
            lines.append(f"area {self.names[step.area]}: {step.pre} [{needs}] {step.post}")
        return lines

    def tables(self, tables: Tables) -> list[str]:
        lines = [f"groups {_numbers(tables.groups)}"]
        for slot, area in enumerate(tables.areas):
            name = self.names[slot]
            for selection in tables.selections[slot]:
                tests = (f"{c.attribute}{c.condition.symbol}" for c in selection.comparisons)
                joint = " and " if selection.every else " or "
                lines.append(f"{name} selection {joint.join(tests)}")
            lines.append(
                f"{name} admits {' '.join(f'{mask:b}' for mask in tables.admission[slot])}"
            )
            for factor in area.factors:
                probe = f"{self.names[factor.probe_stream]}{factor.probe_attribute}"
                lines.append(
                    f"{name} factor {probe} {factor.condition.symbol} {factor.window_attribute}"
                )
            for row in area.combinations:
                needs = [*map(str, row.factors), *(f"w{bit}" for bit in row.window_selections)]
                needs += [f"p{bit}" for bit in row.probe_selections]
                lines.append(f"{name} {row.pre_tag} [{' '.join(needs) or '-'}] {row.post_tag}")
            lines.append(f"{name} keeps range {area.retention.range}, rows {area.retention.rows}")
        for number, windows in enumerate(tables.windows):
            lines.append(f"query {number}: {', '.join(map(str, windows))}")
        return lines

    def guards(self, tables: Tables) -> list[str]:
        """Writes tag and equality of every guard, then the tags without a guard."""
        lines = []
        for name, area in zip(self.names, tables.areas, strict=True):
            for tag, index in area.guards.items():
                factor = area.factors[index]
                probe = f"{self.names[factor.probe_stream]}{factor.probe_attribute}"
                lines.append(f"{name} {tag}: {probe} = {factor.window_attribute}")
            if scanned := {row.pre_tag for row in area.combinations} - area.guards.keys():
                lines.append(f"{name} scans {_numbers(sorted(scanned))}")
        return lines


def _numbers(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers)) or "-"
