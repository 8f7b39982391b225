"""Problems in a query text: their place, a message, and a hint."""

from __future__ import annotations

import bisect
import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from seustream.compiler.cells import width_of


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """The offsets of the first character and of the one after the last."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem in a text. `kind` is a short stable name, such as `unknown-column`."""

    kind: str
    message: str
    span: Span
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class SourceText:
    """A query text and where it came from. `parts` are the offsets at which texts begin that were
    joined."""

    text: str
    name: str = "<query>"
    parts: tuple[int, ...] = ()
    _starts: list[int] = field(init=False, repr=False, compare=False, default_factory=list)

    def __post_init__(self) -> None:
        self._starts.append(0)
        self._starts.extend(match.end() for match in re.finditer("\n", self.text))

    def position(self, offset: int) -> tuple[int, int]:
        """Returns the line and column of an offset, both counted from 1."""
        line = bisect.bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def position_in_part(self, offset: int) -> tuple[int, int]:
        """Returns the line and column of an offset in the text, of those joined, that has it."""
        begin = max((part for part in self.parts if part <= offset), default=0)
        (first, before), (line, column) = self.position(begin), self.position(offset)
        return line - first + 1, column - before + 1 if line == first else column

    def line(self, number: int) -> str:
        start = self._starts[number - 1]
        end = self._starts[number] - 1 if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r")

    def render(self, problem: Problem) -> str:
        """Shows the problem with its line and a caret under the offending text.

        >>> print(SourceText("SELECT x", "q").render(Problem("k", "bad", Span(7, 8), "try y")))
        q:1:8: bad
          SELECT x
                 ^
          hint: try y
        """
        line, column = self.position(problem.span.start)
        shown = self.line(line)
        begin = column - 1
        marked = max(width_of(shown[begin : begin + problem.span.end - problem.span.start]), 1)
        # Tabs stay tabs, so that the caret stands under its text at any tab width.
        lead = "".join("\t" if c == "\t" else " " * width_of(c) for c in shown[:begin])
        rows = [
            f"{self.name}:{line}:{column}: {problem.message}",
            f"  {shown}",
            f"  {lead}{'^' * marked}",
        ]
        if problem.hint:
            rows.append(f"  hint: {problem.hint}")
        return "\n".join(rows)


class CompileError(Exception):
    """All problems found in a text, in the order of their places."""

    def __init__(self, source: SourceText, problems: Iterable[Problem]) -> None:
        self.source = source
        self.problems = tuple(sorted(problems, key=lambda p: (p.span, p.message)))
        super().__init__("\n".join(source.render(problem) for problem in self.problems))

    def to_json(self) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = []
        for problem in self.problems:
            line, column = self.source.position(problem.span.start)
            rows.append(
                {
                    "file": self.source.name,
                    "line": line,
                    "column": column,
                    "kind": problem.kind,
                    "message": problem.message,
                    "text": self.source.text[problem.span.start : problem.span.end],
                    "hint": problem.hint,
                }
            )
        return rows


class Problems:
    """Collects problems, so that a text with several errors reports all of them."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def add(self, kind: str, message: str, span: Span, hint: str | None = None) -> None:
        self.found.append(Problem(kind, message, span, hint))

    def raise_any(self, source: SourceText) -> None:
        if self.found:
            raise CompileError(source, self.found)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Returns the known name most similar to this one, or None if none is similar."""
    by_folded = {candidate.lower(): candidate for candidate in known}
    match = difflib.get_close_matches(name.lower(), by_folded, n=1, cutoff=0.5)
    return by_folded[match[0]] if match else None


_FEW = 40


def suggest(name: str, known: Iterable[str], what: str) -> str:
    """Returns a hint: the nearest known name, or all names if there are few."""
    names = list(dict.fromkeys(known))
    best = nearest(name, names)
    if best is not None:
        return f"did you mean {best}?"
    if not names:
        return f"there are no {what} yet"
    if len(names) > _FEW:
        return f"of the known {what}, none is like it"
    return f"known {what}: {', '.join(names)}"
