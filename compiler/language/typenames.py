"""Names of types, as they appear in CAST and in the columns of a stream."""

from __future__ import annotations

from collections.abc import Mapping

from seustream.compiler.errors import Problems, Span, suggest
from seustream.compiler.language import syntax as s
from seustream.compiler.language import types as t
from seustream.compiler.language.types import Type


def report(
    problems: Problems,
    codes: Mapping[str, str],
    kind: str,
    message: str,
    span: Span,
    hint: str | None,
) -> None:
    """Adds a problem under a language's code for its kind; a numbered code begins the message."""
    code = codes.get(kind, kind)
    if code != kind and code[1:].isdigit():
        message = f"{code} {message}"
    problems.add(code, message, span, hint)


_DIGITS = {t.TIMESTAMP: 6, t.TIME: 3}
"""The digits of a second in values of a type. More may be declared, and as few as there are."""
_MOST_DIGITS = 9


def bind_type(
    written: s.TypeName,
    problems: Problems,
    codes: Mapping[str, str] | None = None,
    rounds: bool = False,
) -> Type:
    """Returns the type of this name; reports an unknown one. Where values are converted, a type of
    times that `rounds` them to fewer digits is reported, too."""

    def fail(kind: str, message: str, hint: str) -> Type:
        report(problems, codes or {}, kind, message, written.span, hint)
        return t.ERROR

    found = t.NAMES.get(written.text)
    if found is None:
        hint = suggest(written.text, t.NAMES, "types")
        return fail("unknown-type", f"there is no type {written.text}", hint)
    numbers = written.arguments
    if found.is_decimal:
        precision, scale = (*numbers, 0, 0)[:2] if numbers else (found.length, found.scale)
        assert precision is not None
        assert scale is not None
        if not 1 <= precision <= t.MAX_PRECISION or not 0 <= scale <= precision or len(numbers) > 2:
            text = ",".join(map(str, numbers))
            hint = f"1 to {t.MAX_PRECISION} digits, some of them after the point: decimal(10,2)"
            return fail("type-length", f"there is no decimal({text})", hint)
        return t.decimal(precision, scale)
    if not numbers:
        return found
    if found in _DIGITS and len(numbers) == 1:
        if numbers[0] > _MOST_DIGITS:
            hint = f"0 to {_MOST_DIGITS} digits of a second"
            return fail("type-length", f"there is no {found}({numbers[0]})", hint)
        if rounds and numbers[0] < _DIGITS[found]:
            hint = f"write {found}"
            if found == t.TIMESTAMP:
                hint += ", and date_trunc('millisecond', t) to cut it"
            return fail("type-length", f"no value is rounded to {numbers[0]} digits", hint)
        return found
    if not found.is_text or len(numbers) > 1:
        return fail("type-length", f"{found} takes no length", f"write {found}")
    if numbers[0] < 1:
        return fail(
            "type-length",
            f"a text of length {numbers[0]} holds nothing",
            f"write {found.kind.value}(1) or more",
        )
    return Type(found.kind, numbers[0])
