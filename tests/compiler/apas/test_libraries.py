"""Libraries of functions: registering one refuses whatever cannot run or cannot be called."""

from __future__ import annotations

from typing import Any

import pytest

from seustream.compiler.apas.functions import Overload, Scalar, StreamFunction
from seustream.compiler.apas.libraries import Libraries
from seustream.compiler.apas.streams import LiveWindow, Matching, WindowFunction
from seustream.compiler.apas.types import BOOLEAN, DOUBLE, INTEGER
from tests.compiler.apas.schemas import Stats
from tests.engine.temporal import windows


def test_names_of_functions_are_taken_once(libraries: Libraries) -> None:
    with pytest.raises(ValueError, match=r"agg\.sum is registered already"):
        libraries.register("agg", {"sum": Stats()})


class Nothing(WindowFunction):
    pass


class Untyped(WindowFunction):
    names = ("stream", "n")

    def open(self, **constants: Any) -> LiveWindow:
        raise NotImplementedError


class Stranger(WindowFunction):
    constants = ("n",)

    def open(self, **constants: Any) -> LiveWindow:
        raise NotImplementedError


class Change(StreamFunction):
    pass


class Mute(Scalar):
    pass


class Unserved(Matching):
    overloads = (Overload((INTEGER, INTEGER), BOOLEAN),)

    def call(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return (True,)


class Number(windows.Near):
    overloads = (Overload((INTEGER, INTEGER, INTEGER), DOUBLE),)


class Uneven(windows.Near):
    sides = (1, 1)


class Promised(windows.Middle):
    spans = True


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (Nothing(), "a window gives `ends` or `open`"),
        (Untyped(), "`takes` has 0 types for 1 parameters"),
        (Stranger(), "n is in `constants` and not in `names`"),
        (Change(), "a stream function is a WindowFunction; there is nothing else it could do"),
        (Mute(), "it has no `call`"),
        (Unserved(), "it has no `index`"),
        (Number(), "a Matching is a condition: every overload gives BOOLEAN"),
        (Uneven(), "`sides` says 2 values, an overload takes another number"),
        (Promised(), "it has no `over`, which `spans` promises"),
        (windows.Last, "is no object of Scalar, Matching, Aggregate or WindowFunction"),
    ],
)
def test_what_cannot_run_is_refused_when_it_is_registered(function: Any, why: str) -> None:
    libraries = Libraries()
    with pytest.raises(ValueError, match=r"mine\.f: ") as error:
        libraries.register("mine", {"f": function})
    assert why in str(error.value)
    assert "mine" not in libraries.libraries


def test_names_no_query_could_write_are_refused() -> None:
    for library, name in (("mine", "a-b"), ("my lib", "f"), ("mine", "ä")):
        with pytest.raises(ValueError, match="is no name a query could write"):
            Libraries().register(library, {name: windows.Last()})
