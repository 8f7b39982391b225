"""Pictures of a pattern: its automaton, and its ordered lists."""

from __future__ import annotations

from collections.abc import Sequence

from seustream.compiler.explain.marks import clip
from seustream.compiler.explain.picture.draw import document, path, rectangle, text, width_of
from seustream.compiler.pattern import ir
from seustream.engine.pattern.explain import Facts, facts

_GAP = 150.0
_BOX = 46.0
_LEFT = 60.0


def picture(query: ir.MatchQuery, stage: str) -> str:
    of = facts(query)
    return _automaton(of) if stage == "automaton" else _lists(of)


def _automaton(of: Facts) -> str:
    """States from left to right; begin and proceed go on, take and ignore come back."""
    automaton = of["automaton"]
    states: list[str] = automaton["states"]
    widths = {state: max(width_of(state) + 24, 56.0) for state in states}
    centre: dict[str, float] = {"": 24.0}
    x = _LEFT
    for state in states:
        centre[state] = x + _GAP * 0.6 + widths[state] / 2
        x = centre[state] + widths[state] / 2
    y = 170.0
    body = [text(24, 30, f"{of['name']}: automaton", "title")]
    body.append(text(24, 54, clip(of["text"], 120), "small soft"))
    for number, edge in enumerate(automaton["edges"]):
        body += _edge(edge, centre, widths, states, y, number)
    body.append(f'<circle class="box" cx="24" cy="{y:.1f}" r="7"/>')
    for state in states:
        kind = "result" if state == states[-1] else "box"
        width = widths[state]
        body.append(rectangle(centre[state] - width / 2, y - _BOX / 2, width, _BOX, kind))
        body.append(text(centre[state], y, state, "strong", "middle"))
    bottom = y + 92
    rows = [
        f"{e['kind']} {e['from'] or 'start'} → {e['to']}: {' and '.join(e['conditions'])}"
        for e in automaton["edges"]
        if e["conditions"] and e["kind"] != "ignore"
    ]
    rows += [f"on a match: {absence}" for absence in automaton["on_match"]]
    for row in rows:
        body.append(text(24, bottom, clip(row, 140), "small"))
        bottom += 18
    widest = max([x + 40, *(width_of(clip(row, 140), 11) + 48 for row in rows), 420.0])
    return document(widest, bottom + 8, f"automaton of {of['name']}", body)


def _edge(
    edge: Facts,
    centre: dict[str, float],
    widths: dict[str, float],
    states: Sequence[str],
    y: float,
    number: int,
) -> list[str]:
    kind, source, target = edge["kind"], edge["from"], edge["to"]
    a, b = centre[source], centre[target]
    if source == target:
        up = -1 if kind == "take" else 1
        top = y + up * _BOX / 2
        loop = f"M {a - 14:.1f} {top:.1f} C {a - 30:.1f} {top + up * 42:.1f} {a + 30:.1f} {top + up * 42:.1f} {a + 14:.1f} {top:.1f}"
        crossed = "edge crossed" if kind == "ignore" else "edge"
        return [path(loop, crossed), text(a, top + up * 42, kind, "small soft", "middle")]
    near = source == "" or states.index(target) - states.index(source) == 1
    if near:
        begin = a + (widths[source] / 2 if source else 7)
        end = b - widths[target] / 2
        return [
            path(f"M {begin:.1f} {y:.1f} L {end - 8:.1f} {y:.1f}", "edge"),
            _arrow(end, y),
            text((begin + end) / 2, y - 10, kind, "small soft", "middle"),
        ]
    # Past the loop state of a group.
    top = y - _BOX / 2
    height = top - 70
    curve = f"M {a:.1f} {top:.1f} C {a:.1f} {height:.1f} {b:.1f} {height:.1f} {b:.1f} {top - 8:.1f}"
    label = text((a + b) / 2, height + 14, kind, "small soft", "middle")
    return [path(curve, "edge"), _down(b, top), label]


def _arrow(x: float, y: float) -> str:
    return path(f"M {x - 8:.1f} {y - 4:.1f} L {x:.1f} {y:.1f} L {x - 8:.1f} {y + 4:.1f}", "edge")


def _down(x: float, y: float) -> str:
    return path(f"M {x - 4:.1f} {y - 8:.1f} L {x:.1f} {y:.1f} L {x + 4:.1f} {y - 8:.1f}", "edge")


def _lists(of: Facts) -> str:
    """One row a list: what it keeps on the left, what is tested later on the right."""
    lists = of["lists"]["elements"]
    body = [text(24, 30, f"{of['name']}: ordered lists", "title")]
    body.append(text(24, 54, clip(of["text"], 120), "small soft"))
    y = 100.0
    widest = 420.0
    for one in lists:
        kept = " and ".join(one["filter"]) or "every event"
        then = " and ".join(one["then"])
        name_width = max(width_of(one["name"]) + 24, 70.0)
        kind = "result" if one["role"] == "anchor" else "box"
        body.append(rectangle(24, y - 18, name_width, 36, kind))
        body.append(text(24 + name_width / 2, y, one["name"], "strong", "middle"))
        at = 24 + name_width + 18
        body.append(text(at, y - 9, f"{one['role']}; keeps {clip(kept, 110)}", "small"))
        if then:
            body.append(text(at, y + 9, f"then {clip(then, 110)}", "small soft"))
        widest = max(widest, at + width_of(clip(f"anchor; keeps {kept} {then}", 120), 11) + 24)
        for tick in range(9):
            body.append(path(f"M {24 + name_width * tick / 8:.1f} {y + 18:.1f} v 5", "edge"))
        y += 58
    span = of["lists"]["horizon_ms"]
    reach = "everything" if span is None else f"{span:,} ms"
    body.append(text(24, y, f"kept: {reach}; certain {of['lists']['certain']}", "small soft"))
    return document(widest, y + 24, f"ordered lists of {of['name']}", body)
