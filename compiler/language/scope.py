"""Resolution of names: what a language provides to the binder for each place of an expression."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol

from seustream.compiler.language import expressions as x
from seustream.compiler.language import syntax as s
from seustream.compiler.language import types as t

if TYPE_CHECKING:
    from seustream.compiler.language.bind import Binder

FAILED = x.Literal(None, t.ERROR)
"""Replaces an expression that was reported, and suppresses further errors."""

ParameterValue = (
    int
    | float
    | Decimal
    | str
    | bool
    | datetime.datetime
    | datetime.date
    | datetime.time
    | datetime.timedelta
    | None
)


class Scope(Protocol):
    """Resolves names at one place of one language. `within` names the place in messages;
    `aggregates` states whether an aggregate may stand here, or else what to do instead; `codes`
    maps kinds of problems to the language's own codes."""

    parameters: Mapping[str, ParameterValue]
    codes: Mapping[str, str]
    within: str
    aggregates: bool | str

    def reference(self, e: s.Reference, binder: Binder) -> x.Expression:
        """Returns the leaf that a name means; reports an unknown name and returns `FAILED`."""

    def call(self, e: s.FunctionCall, binder: Binder) -> x.Expression | None:
        """Returns the meaning of a call in this language, None if it means the same in all."""

    def special(self, e: s.Expression, binder: Binder) -> x.Expression:
        """Returns the meaning of a node that only this language has."""

    @property
    def functions(self) -> Iterable[str]:
        """Returns the names of functions that only this language has, for suggestions."""
