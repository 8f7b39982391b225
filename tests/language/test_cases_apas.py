"""The cases in a select of APAS, evaluated on columns and a tuple at a time."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from seustream.compiler.apas.compile import Compiled, compile_query
from seustream.compiler.apas.symbols import Schema
from seustream.compiler.apas.tree import Node, group, leaf
from seustream.compiler.apas.types import settled
from seustream.compiler.errors import CompileError
from seustream.compiler.language.faults import Faults
from seustream.compiler.language.types import NULL, Type, list_of
from seustream.compiler.language.types import Kind as Kind_
from seustream.engine.intake import accepted
from seustream.engine.stream.merge import END_OF_STREAM
from seustream.engine.stream.schema import arrow_type
from seustream.engine.temporal.elements import ElementKind, StreamElement
from seustream.engine.temporal.values import taken
from tests.compiler.language.plain import type_named
from tests.engine.temporal.reference.elements import STOP
from tests.engine.temporal.reference.network import ElementNetwork
from tests.engine.temporal.running import node
from tests.language.casefile import Case, place, read

STRING = re.compile(r"'(?:[^']|'')*'")
BEFORE = "select out[x = "


def cases() -> list[Case]:
    return [case for case in read() if "apas" in case.languages]


def compiled(case: Case) -> tuple[Compiled, Node]:
    tree = group("R", leaf("one", type_named("int")))
    for name, of in case.columns:
        tree.children.append(leaf(name, type_named(of)))
    after = ", y = count($R.one)" if case.aggregate else ", y = $R.one"
    expression = case.spelled(lambda name: f"$R.{name}").expression.replace("\\", "\\\\")
    expression = STRING.sub(lambda s: "'" + s[0][1:-1].replace("''", "\\'") + "'", expression)
    text = f"{BEFORE}{expression}{after}]"
    return compile_query(text, {"R": Schema(tree)}, parameters=dict(case.parameters)), tree


def named(text: str) -> Type:
    if text == "null":
        return NULL
    if text.startswith("list("):
        return list_of(named(text[5:-1]))
    return type_named(text)


def columnar(case: Case, c: Compiled, tree: Node) -> tuple[list[Any], Faults]:
    one = node(c, {"R": Schema(tree)})
    columns = [pa.array([1] * len(case.rows), pa.int32())]
    for place_, of in enumerate(tree.types[1:]):
        columns.append(pa.array([row[place_] for row in case.rows], arrow_type(of)))
    times = pa.array([1] * len(case.rows), pa.int64())
    ends = pa.array([2] * len(case.rows), pa.int64())
    rows = pa.table([times, ends, *columns], names=["ts", "te", *map(".".join, tree.paths)])
    one.push("R", accepted(one.streams["R"], rows))
    one.advance("R", END_OF_STREAM)
    found = [value for _, part in one.outputs() for value in part.column("x").to_pylist()]
    return found, one.faults[c.name]


def by_rows(case: Case, c: Compiled, tree: Node) -> tuple[list[Any], Faults]:
    out: list[StreamElement] = []
    network = ElementNetwork(c.network, c.tree, {"R": tree})
    network.subscribe(out.append)
    for row in case.rows:
        values = tuple(taken(value, of) for value, of in zip((1, *row), tree.types, strict=True))
        network.feed("R", StreamElement(ElementKind.INSERTION, 1, 2, values))
    network.feed("R", STOP)
    network.stop()
    return [x.values[0] for x in out if x.kind is ElementKind.INSERTION], network.faults


def agrees(found: Any, wanted: Any, of: Type, nearly: bool) -> bool:
    if isinstance(wanted, float) and isinstance(found, float):
        if of.kind is Kind_.REAL:  # an attribute is a DOUBLE
            found, wanted = float(np.float32(found)), float(np.float32(wanted))
        if math.isnan(wanted):
            return math.isnan(found)
        if nearly:
            return math.isclose(found, wanted, rel_tol=1e-6 if of.kind is Kind_.REAL else 4e-15)
        return found == wanted
    return bool(found == wanted)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.title)
def test_case(case: Case) -> None:
    if case.error is not None:
        with pytest.raises(CompileError) as refused:
            compiled(case)
        # The query goes on after the expression, so that this expression does not end there.
        if case.title != "What is written otherwise: an operator without its right side":
            assert case.error.lower() in str(refused.value).lower()
        return
    c, tree = compiled(case)
    of = named(case.type)
    assert c.tree.types[0] == settled(of) or of.kind is Kind_.LIST
    places = [
        (each.line, each.column, each.rows) for each in case.spelled(lambda n: f"$R.{n}").faults
    ]
    on_columns, faults = columnar(case, c, tree)
    on_rows, counted = by_rows(case, c, tree)
    wanted = [case.value] if case.rows else []
    for found in (on_columns, on_rows):
        assert len(found) == len(wanted)
        assert all(agrees(a, b, of, case.nearly) for a, b in zip(found, wanted, strict=True)), found
    for one in (faults, counted):
        at = []
        for where, times in one.count.items():
            if where.at is not None:
                line, column = place(c.source.text, where.at.start)
                column -= len(BEFORE) if line == 1 else 0
                at.append((line, column, times))
        assert sorted(at) == sorted(places)
