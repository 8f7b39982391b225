"""Runs a random case on devices, under each plan, and compares it with DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import pyarrow as pa

from seustream.compiler.errors import CompileError
from seustream.compiler.pipeline import PLANS, Compilation, Options, compile_text
from seustream.compiler.wjasip.image import decode
from seustream.cosim.golden import GoldenDevice
from seustream.cosim.iss import IssDevice
from seustream.engine.graph import GraphRun
from seustream.engine.stream.answers import result_schema
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.device import Device, Status
from tests.cosim.contract import CROWDED
from tests.cosim.devices import held, verilated
from tests.cosim.queries import counts_as
from tests.system import oracle
from tests.system.generate import Case, generate

MODELS: dict[str, Callable[[DeviceConfig], Device]] = {"golden": GoldenDevice, "iss": IssDevice}
DEVICES = {**MODELS, "verilated": verilated}
CONFIGS = CONFIGURATIONS | {CROWDED.name: CROWDED}


class Difference(AssertionError):
    """The devices and DuckDB disagree; the message has what is needed to see it again."""


def run_case(seed: int, devices: Iterable[str] = MODELS, config: str | None = None) -> int:
    """Runs one case on the devices, among them the golden model, under both plans, in the
    configuration that it names or in another one. Returns the number of results, -1 if the query
    set does not fit a device."""
    case = generate(seed)
    case = replace(case, config=config or case.config)
    try:
        compiled = {plan: compile_case(case, plan) for plan in PLANS}
    except CompileError as error:
        if all(problem.kind == "limit" for problem in error.problems):
            return -1
        raise Difference(f"seed {seed}: {error}\n{case.text}") from error
    oracle.load(case)
    schemas = {q.name: result_schema(q) for q in compiled["cost"].program.queries}
    wanted = {query.name: oracle.expected(query, schemas[query.name]) for query in case.queries}
    counters: dict[str, dict[str, Status]] = {}
    for plan, compilation in compiled.items():
        for device in devices:
            got, status = execute(case, compilation, device)
            counters.setdefault(plan, {})[device] = status
            for query in case.queries:
                found = got.get(query.name, Counter())
                if found != wanted[query.name]:
                    raise Difference(_describe(case, plan, device, query.name, found, wanted))
            if not _agree(device, counters[plan], compilation):
                raise Difference(
                    f"seed {seed}, plan {plan}: counters differ {counters[plan]}\n{case.text}"
                )
    delivered = {plan: of["golden"].delivered for plan, of in counters.items()}
    if delivered["cost"] != delivered["thesis"]:
        raise Difference(f"seed {seed}: a plan delivers results twice: {delivered}\n{case.text}")
    return sum(found.total() for found in wanted.values())


def _agree(device: str, counters: dict[str, Status], compilation: Compilation) -> bool:
    """Returns whether the device and the golden model count the same, as far as the contract
    requires."""
    tables = decode(compilation.image, compilation.options.config)
    guards = any(area.guards for area in tables.areas)
    if device not in MODELS:
        return counts_as(counters[device], counters["golden"], guards)
    return counters[device] == counters["golden"]


def compile_case(case: Case, plan: str) -> Compilation:
    config = CONFIGS[case.config]
    options = Options(config=config, plan=plan, max_terms=case.max_terms, fit="strict")
    return compile_text(case.text, f"seed {case.seed}", options)


def execute(
    case: Case, compilation: Compilation, device: str
) -> tuple[dict[str, Counter[tuple[object, ...]]], Status]:
    """Returns the results of every query as a multiset, and the device's counters."""
    driver, found = drive(case, compilation, device)
    return found, replace(driver.devices[0].status())


def drive(
    case: Case, compilation: Compilation, device: str
) -> tuple[GraphRun, dict[str, Counter[tuple[object, ...]]]]:
    driver = GraphRun(
        compilation,
        held(DEVICES[device](compilation.options.config), case.seed),
        slack=case.slack,
        slice_rows=case.slice_rows,
    )
    parts: dict[str, list[pa.Table]] = {}

    def take(answers: object) -> None:
        for name, rows in answers:  # type: ignore[attr-defined]
            parts.setdefault(name, []).append(rows)

    sent = dict.fromkeys((stream.name for stream in case.streams), 0)
    for turn, size in enumerate(case.pushes):
        stream = case.streams[turn % len(case.streams)]
        driver.push(stream.name, stream.arrivals.slice(sent[stream.name], size))
        sent[stream.name] += size
        take(driver.advance())
    for stream in case.streams:
        driver.push(stream.name, stream.arrivals.slice(sent[stream.name]))
    take(driver.finish())
    found = {
        name: oracle.multiset(pa.concat_tables(tables), tables[0].schema)
        for name, tables in parts.items()
    }
    assert not driver.report.late
    return driver, found


def _describe(
    case: Case,
    plan: str,
    device: str,
    query: str,
    found: Counter[tuple[object, ...]],
    wanted: dict[str, Counter[tuple[object, ...]]],
) -> str:
    missing, extra = wanted[query] - found, found - wanted[query]
    return (
        f"seed {case.seed}, plan {plan}, device {device}, configuration {case.config},"
        f" query {query}: {missing.total()} missing, {extra.total()} too many\n{case.text}\n"
        f"missing: {list(missing.items())[:3]}\nextra: {list(extra.items())[:3]}"
    )
