"""Text elements shared by all stages: numbers, tables, bars, trees of lines."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from seustream.compiler.cells import padded, width_of

WIDTH = 80
"""Columns a line may take; wider cells are wrapped."""

_NARROWEST = 12
_WORD = 26
_COMPARISON = re.compile(r"(\S+) (=|<>|<=|>=|<|>|LIKE) (\S+)")
GLUE = "\u00a0"
"""A space at which no line breaks."""
_PICTURES = {code: 0x2400 + code for code in range(32)} | {
    0x7F: 0x2421,
    0xFFFE: 0xFFFD,
    0xFFFF: 0xFFFD,
}


def circled(number: int) -> str:
    """Returns the mark of a join factor, ① for 1."""
    return chr(ord("①") + number - 1) if 1 <= number <= 20 else f"({number})"


def sigma(number: int) -> str:
    """Returns the mark of a selection, σ₁ for 1."""
    return "σ" + "".join(chr(ord("₀") + int(digit)) for digit in str(number))


def plural(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def printable(text: str) -> str:
    """Puts a text on one line, with a sign for every character that a terminal would act on or XML
    does not allow."""
    return text.translate(_PICTURES)


def wrap(text: str, width: int) -> list[str]:
    """Breaks a text into lines of at most `width` columns; keeps a comparison on one line if
    possible."""

    def glued(found: re.Match[str]) -> str:
        whole = found.group()
        return whole.replace(" ", GLUE) if len(whole) <= width else whole

    text = _COMPARISON.sub(glued, printable(text))
    lines = textwrap.wrap(text, max(width, 1), break_on_hyphens=False)
    return [line.replace(GLUE, " ") for line in lines] or [""]


def clip(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def table(
    head: Sequence[str], rows: Iterable[Sequence[object]], indent: int = 2, gap: int = 3
) -> list[str]:
    """Lays out rows under a ruled head. Numbers are right-aligned; a table that is too wide is
    wrapped in its widest columns; a column without content is left out."""
    cells = [[str(cell) for cell in row] for row in rows]
    if not cells:
        return [" " * indent + "none"]
    headed = any(head)
    kept = [i for i in range(len(head)) if any(row[i] for row in cells)]
    cells = [[row[i] for i in kept] for row in cells]
    head = [head[i] for i in kept]
    if (
        indent + sum(max(map(width_of, column)) + gap for column in zip(head, *cells, strict=True))
        > WIDTH
    ):
        gap = 2
    widths = _widths([head, *cells], WIDTH - indent - gap * (len(head) - 1))
    right = [all(_is_number(row[i]) for row in cells) for i in range(len(head))]

    def lines(row: Sequence[str]) -> Iterable[str]:
        wrapped = [wrap(cell, width) for cell, width in zip(row, widths, strict=True)]
        for number in range(max(map(len, wrapped))):
            parts = [lines[number] if number < len(lines) else "" for lines in wrapped]
            columns = map(padded, parts, widths, right)
            yield (" " * indent + (" " * gap).join(columns)).rstrip()

    rules = (
        "─" * width if title else " " * width for title, width in zip(head, widths, strict=True)
    )
    rule = " " * indent + (" " * gap).join(rules).rstrip()
    titles = [*lines(head), rule] if headed else []
    return [*titles, *(line for row in cells for line in lines(row))]


def _is_number(cell: str) -> bool:
    return not cell or cell.replace(",", "").rstrip("%").isdecimal()


def _widths(rows: Sequence[Sequence[str]], most: int) -> list[int]:
    """Returns natural widths, the widest narrowed until the table fits; words are cut only if
    necessary."""
    columns = list(zip(*rows, strict=True))
    widths = [max(map(width_of, column)) for column in columns]
    words = [
        min(max((len(w) for cell in column for w in cell.split()), default=0), _WORD)
        for column in columns
    ]
    for floors, least in (
        (words, _NARROWEST),
        ([0] * len(words), _NARROWEST),
        ([0] * len(words), 3),
    ):
        floors = [max(floor, least) for floor in floors]
        while sum(widths) > most:
            room = [(width, i) for i, width in enumerate(widths) if width > floors[i]]
            if not room:
                break
            widths[max(room)[1]] -= 1
    return widths


def hanging(label: str, text: str, indent: int = 2, width: int = WIDTH) -> list[str]:
    """Puts a label before its text and indents later lines under the first."""
    lead = " " * indent + label
    first, *more = wrap(text, width - len(lead))
    return [(lead + first).rstrip(), *(" " * len(lead) + line for line in more)]


def section(title: str, lines: Iterable[str]) -> list[str]:
    return [f"── {title} ".ljust(WIDTH, "─"), *lines, ""]


def bar(share: float, width: int = 20) -> str:
    """Draws a share of a limit as a bar; any use at all is visible."""
    eighths = min(max(round(share * width * 8), 1 if share > 0 else 0), width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(width, "·")


def branches(depths: Sequence[int]) -> list[str]:
    """The lines to draw before rows of these depths, so that they read as a tree.

    >>> branches([0, 1, 2, 1])
    ['', '├─ ', '│  └─ ', '└─ ']
    """
    drawn: list[str] = []
    later: set[int] = set()  # depths at which a row follows, before one further up
    for depth in reversed(depths):
        stems = "".join("│  " if level in later else "   " for level in range(1, depth))
        drawn.append("" if depth == 0 else stems + ("├─ " if depth in later else "└─ "))
        later = {level for level in later if level < depth} | {depth}
    return drawn[::-1]
