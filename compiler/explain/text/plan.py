"""Normal form, subqueries and join request table as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seustream.compiler.explain.facts.names import marks
from seustream.compiler.explain.facts.plan import (
    AttributeFacts,
    Coded,
    Dnf,
    FactorFacts,
    NormalForm,
    RequestTable,
    SelectionFacts,
    SubqueryFacts,
)
from seustream.compiler.explain.marks import WIDTH, hanging, table


def dnf(found: Dnf) -> list[str]:
    lines: list[str] = []
    for form in found.queries:
        lines += [*_normal_form(form), ""]
    if found.encodings:
        lines += ["codes of the columns compared", *encodings(found.encodings)]
    return _trimmed(lines) or ["no queries"]


def _normal_form(form: NormalForm) -> list[str]:
    lines = hanging(f"{form.query}  ", form.condition, indent=0)
    if not form.on_device:
        return [*lines, f"    not in the device: {form.why}"]
    for number, term in enumerate(form.terms, start=1):
        lines += hanging(f"term {number}    ", " AND ".join(term) or "every combination", indent=4)
    for residual in form.residual:
        lines += hanging("residual  ", f"{residual.condition}   ({residual.why})", indent=4)
    if form.fell_back:
        lines.append("    fallback  the one term is what all terms have in common")
    return lines


def encodings(found: Sequence[Coded]) -> list[str]:
    return table(
        ("column", "type", "code", "decided"),
        [(f"{c.stream}.{c.column}", c.type, c.encoding, _decided(c.exact)) for c in found],
    )


def subqueries(found: Sequence[SubqueryFacts]) -> list[str]:
    return table(
        ("#", "streams", "condition", "window", "asked by", ""),
        [
            (
                s.number,
                ", ".join(s.streams),
                s.condition or "every combination",
                s.window,
                ", ".join(s.parents),
                "shared" if s.shared else "",
            )
            for s in found
        ],
    )


def requests(found: RequestTable) -> list[str]:
    lines = table(
        ("query", "streams", "factors", "selections", "window", "asked by"),
        [
            (
                row.subquery,
                ", ".join(row.streams),
                marks(row.factors) or "–",
                " ".join(row.selections),
                row.window,
                ", ".join(row.parents),
            )
            for row in found.rows
        ],
    )
    lines += ["", "factors", *factors(found.factors)]
    if found.selections:
        lines += ["", "selections", *selections(found.selections)]
    return [*lines, "", "attributes", *attributes(found.attributes)]


def factors(found: Sequence[FactorFacts]) -> list[str]:
    return table(
        ("", "condition", "in"),
        [(f.mark, f.condition, ", ".join(map(str, f.subqueries))) for f in found],
    )


def selections(found: Sequence[SelectionFacts]) -> list[str]:
    return table(
        ("", "stream", "bit", "condition", "on codes", "in"),
        [
            (s.mark, s.stream, s.bit, s.condition, s.codes, ", ".join(map(str, s.subqueries)))
            for s in found
        ],
    )


def attributes(found: Iterable[AttributeFacts]) -> list[str]:
    return table(
        ("stream", "attribute", "column", "type", "code", "decided"),
        [(a.stream, a.attribute, a.column, a.type, a.encoding, _decided(a.exact)) for a in found],
    )


def _decided(exact: bool) -> str:
    """Returns where a comparison of codes is the last word."""
    return "in the device" if exact else "on the host"


def legend(found: RequestTable) -> list[str]:
    """The marks of factors and selections in as few lines as they take."""
    signs = [f"{f.mark} {f.condition}" for f in found.factors]
    signs += [f"{s.mark} {s.condition}" for s in found.selections]
    lines: list[str] = []
    for sign in signs:
        if lines and len(lines[-1]) + len(sign) + 3 <= WIDTH:
            lines[-1] += "   " + sign
        else:
            lines.append("  " + sign)
    return [part for line in lines for part in hanging("", line.strip())]


def _trimmed(lines: list[str]) -> list[str]:
    return lines[:-1] if lines and not lines[-1] else lines
