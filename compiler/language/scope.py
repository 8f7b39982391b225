"""The meaning of names: what a language gives the binder for each place of an expression."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol

from seustream.compiler.language import expressions as x
from seustream.compiler.language import syntax as s
from seustream.compiler.language import types as t

if TYPE_CHECKING:
    from seustream.compiler.language.bind import Binder

FAILED = x.Literal(None, t.ERROR)
"""Stands for what was reported; silences what follows from it."""

ParameterValue = int | float | Decimal | str | bool | None


class Scope(Protocol):
    """The meaning of names at one place of one language. `within` names the place in messages;
    `aggregates` says whether an aggregate may stand here, or else what to do instead;
    `codes` gives the language's own spelling of a kind of problem."""

    parameters: Mapping[str, ParameterValue]
    codes: Mapping[str, str]
    within: str
    aggregates: bool | str

    def reference(self, e: s.Reference, binder: Binder) -> x.Expression:
        """The leaf a name means; reports a name it does not know, and gives `FAILED`."""

    def call(self, e: s.FunctionCall, binder: Binder) -> x.Expression | None:
        """Returns what a call means in this language alone, None of one that means the same in all."""

    def special(self, e: s.Expression, binder: Binder) -> x.Expression:
        """Returns what a node means that only this language has."""

    @property
    def functions(self) -> Iterable[str]:
        """Names of functions that only this language has, for suggestions."""
