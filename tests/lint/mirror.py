"""Tests mirror modules: `tests/<room>/…/test_<module>.py` is where one looks for a module's tests.

    python -m tests.lint.mirror

Lists the modules whose tests are not there. A module may share a file with its neighbours if its name
begins the file's (`test_join_<case>.py`), or is one
of several in it (`test_framer_and_deframer.py`). `KNOWN` has the modules that are tested under other names; it
may only shrink.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Set
from pathlib import Path

from tests.lint.names import ROOT, sources

KNOWN: frozenset[str] = frozenset(
    [
        "compiler/apas/aggregates.py",
        "compiler/apas/build.py",
        "compiler/apas/compile.py",
        "compiler/apas/contexts.py",
        "compiler/apas/expressions.py",
        "compiler/apas/functions.py",
        "compiler/apas/libraries.py",
        "compiler/apas/network.py",
        "compiler/apas/streams.py",
        "compiler/apas/symbols.py",
        "compiler/apas/syntax.py",
        "compiler/apas/tree.py",
        "compiler/explain/facts/names.py",
        "compiler/explain/facts/overview.py",
        "compiler/language/bind.py",
        "compiler/language/constants.py",
        "compiler/language/convert.py",
        "compiler/language/exact.py",
        "compiler/language/faults.py",
        "compiler/language/functions/arithmetic.py",
        "compiler/language/functions/choices.py",
        "compiler/language/functions/columns.py",
        "compiler/language/functions/numbers.py",
        "compiler/language/functions/texts.py",
        "compiler/language/functions/times.py",
        "compiler/language/overloads.py",
        "compiler/language/scope.py",
        "compiler/language/syntax.py",
        "compiler/logical/joins.py",
        "compiler/logical/program.py",
        "compiler/logical/windows.py",
        "compiler/pattern/analyse.py",
        "compiler/pattern/classify.py",
        "compiler/pattern/fields.py",
        "compiler/pattern/ir.py",
        "compiler/pattern/recognize.py",
        "compiler/pattern/rows.py",
        "compiler/pattern/rowscope.py",
        "compiler/pattern/scope.py",
        "compiler/plan/place.py",
        "compiler/xsql/asof.py",
        "compiler/xsql/bounds.py",
        "compiler/xsql/clauses.py",
        "compiler/xsql/joins.py",
        "compiler/xsql/naming.py",
        "compiler/xsql/overs.py",
        "compiler/xsql/periods.py",
        "compiler/xsql/select.py",
        "compiler/xsql/tree.py",
        "compiler/xsql/windows.py",
        "cosim/boards/build.py",
        "cosim/boards/simulated.py",
        "cosim/bridge/channels.py",
        "cosim/bridge/delivery.py",
        "cosim/bridge/epochs.py",
        "cosim/bridge/errors.py",
        "cosim/bridge/journal_errors.py",
        "cosim/bridge/limits.py",
        "cosim/bridge/living.py",
        "cosim/bridge/loading.py",
        "cosim/bridge/log.py",
        "cosim/bridge/runner.py",
        "cosim/bridge/salvage.py",
        "cosim/bridge/sealed.py",
        "cosim/bridge/snapshot.py",
        "cosim/bridge/statements.py",
        "cosim/bridge/survey.py",
        "cosim/bridge/world.py",
        "cosim/golden.py",
        "cosim/link/errors.py",
        "cosim/link/processor.py",
        "cosim/processor/bits.py",
        "cosim/processor/device.py",
        "cosim/sites/client.py",
        "cosim/sites/process.py",
        "cosim/sites/service.py",
        "cosim/verilated/library.py",
        "engine/host/answers.py",
        "engine/host/bands.py",
        "engine/host/constants.py",
        "engine/host/indexed.py",
        "engine/host/shared.py",
        "engine/host/stores.py",
        "engine/pattern/aggregates.py",
        "engine/pattern/arrivals.py",
        "engine/pattern/automaton.py",
        "engine/pattern/batch.py",
        "engine/pattern/compact.py",
        "engine/pattern/event.py",
        "engine/pattern/fill.py",
        "engine/pattern/found.py",
        "engine/pattern/leaves.py",
        "engine/pattern/lists.py",
        "engine/pattern/matchers.py",
        "engine/pattern/meaning.py",
        "engine/pattern/nfa.py",
        "engine/pattern/optiseq.py",
        "engine/pattern/output.py",
        "engine/pattern/picture.py",
        "engine/pattern/recognize/conditions.py",
        "engine/pattern/recognize/log.py",
        "engine/pattern/recognize/measures.py",
        "engine/pattern/recognize/program.py",
        "engine/pattern/sampling.py",
        "engine/pattern/skip.py",
        "engine/pattern/state.py",
        "engine/pattern/stream.py",
        "engine/pattern/trace.py",
        "engine/pattern/versions.py",
        "engine/relational/combinations.py",
        "engine/relational/distinct.py",
        "engine/relational/inputs.py",
        "engine/relational/matching.py",
        "engine/relational/measures.py",
        "engine/relational/partitions.py",
        "engine/runs.py",
        "engine/sites/messages.py",
        "engine/sites/results.py",
        "engine/stream/answers.py",
        "engine/stream/errors.py",
        "engine/stream/failures.py",
        "engine/stream/faults.py",
        "engine/stream/numbers.py",
        "engine/temporal/aggregates/choose.py",
        "engine/temporal/aggregates/live.py",
        "engine/temporal/columnar/aggregate.py",
        "engine/temporal/columnar/batch.py",
        "engine/temporal/columnar/evaluate.py",
        "engine/temporal/columnar/join.py",
        "engine/temporal/columnar/lifetimes.py",
        "engine/temporal/columnar/operators.py",
        "engine/temporal/saving.py",
        "hdl/area.py",
        "hdl/boards/flow/bitstream.py",
        "hdl/boards/flow/picture.py",
        "hdl/boards/flow/placement.py",
        "hdl/boards/flow/sizes.py",
        "hdl/boards/flow/tools.py",
        "hdl/boards/identity.py",
        "hdl/boards/link.py",
        "hdl/boards/linked.py",
        "hdl/boards/pll.py",
        "hdl/boards/tops.py",
        "hdl/layouts.py",
        "seustream/boards.py",
        "seustream/commands/common.py",
        "seustream/commands/compile.py",
        "seustream/commands/doctor.py",
        "seustream/commands/explain.py",
        "seustream/commands/feed.py",
        "seustream/devices.py",
        "seustream/errors.py",
        "seustream/intervals.py",
        "spark_feeder/bridged.py",
    ]
)
"""Modules without a test file of their name."""


def has_behaviour(path: Path) -> bool:
    """Says whether a module defines more than names: errors and constants need no test file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in ast.walk(tree))


def missing(root: Path = ROOT) -> set[str]:
    """The modules with behaviour that have no test file of their name."""
    found = set()
    for path in sources(root):
        where = path.relative_to(root)
        if path.stem.startswith("__") or not has_behaviour(path):
            continue
        tests = (root / "tests" / where.parent).glob("test_*.py")
        tested = {name for test in tests for name in test.stem.removeprefix("test_").split("_and_")}
        if not any(name == path.stem or name.startswith(f"{path.stem}_") for name in tested):
            found.add(where.as_posix())
    return found


def complaints(root: Path = ROOT, known: Set[str] = KNOWN) -> list[str]:
    """Modules that are missing a test file and are not known to, and those that have one by now."""
    gone = missing(root)
    found = []
    for module in sorted(gone - known):
        want = Path("tests", module).with_name(f"test_{Path(module).name}")
        found.append(f"{module}: no tests in {want.as_posix()}")
    found += [
        f"{module}: has its tests now: take it off the list in tests/lint/mirror.py"
        for module in sorted(known - gone)
    ]
    return found


def main() -> int:
    found = complaints()
    print("\n".join(found) or "tests mirror modules")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
