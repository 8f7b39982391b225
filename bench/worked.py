"""The worked examples in the papers' figures and tables, as the tests have them.

A test writes out what a paper prints and compares it with the product's results. Where the print
contradicts its own text, the row names the reading that was chosen; decisions and tests explain
why.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from seustream.commands.bench import Measurement, folder

TITLE = "worked: figures and tables of the papers that are examples worked by hand"

HEAD = ("paper", "printed as", "what", "reading", "file", "tests", "passed")


class Printed(NamedTuple):
    """A figure or table, the tests that compare it, and the reading chosen for a misprint."""

    paper: str
    place: str
    what: str
    file: str
    tests: tuple[str, ...] = ()
    reading: str = "as printed"


WANG, YIN, APAS, XIA = "Wang 2006", "Yin, Zhang 2009", "Gorawski, Chrószcz 2009", "Xia et al. 2023"
FLINK = "FlinkCEP"
_THESIS = "tests/compiler/plan/test_thesis.py"
_ANIMALS = "tests/engine/sites/test_"
_TIME = "tests/engine/temporal/test_"
PRINTED = (
    Printed(WANG, "figure 2-3", "a joined tuple has 136 bits", "tests/hdl/test_layouts.py",
        ("test_a_joined_tuple_of_the_thesis_has_136_bits",)),
    Printed(WANG, "table 4.1", "requests of the eight queries", _THESIS,
        ("test_factors", "test_subqueries")),
    Printed(WANG, "table 4.2", "routes of the eight queries", _THESIS, ("test_routes",)),
    Printed(WANG, "table 4.3", "the program of S's area", "tests/compiler/wjasip/test_errata.py",
        reading="ten misprints, each of them named"),
    Printed(YIN, "tables 1 to 6", "two blocks: orders and costs", f"{_ANIMALS}explain.py",
        ("test_the_two_blocks_of_the_specification",)),
    Printed(YIN, "tables 1 to 6", "what lottery routing pays for them", f"{_ANIMALS}lockstep_lottery.py",
        ("test_statement_06_costs_and_shares",)),
    Printed(YIN, "table 7", "synopses of a window", f"{_ANIMALS}node.py", ("test_statement_05_window_vectors",)),
    Printed(APAS, "figure 3", "order of two streams, with and without BOUNDARY", f"{_TIME}synchroniser.py",
        ("test_figure_3_with_the_boundary", "test_figure_3_without_the_boundary"), "20/14 is 20/24"),
    Printed(APAS, "figure 4", "order of three streams by a heap", f"{_TIME}synchroniser.py", ("test_figure_4",)),
    Printed(APAS, "figure 5", "ids of a tree of attributes", "tests/compiler/apas/test_layout.py",
        ("test_figure_5",)),
    Printed(APAS, "figure 9", "ids of trees in trees", "tests/compiler/apas/test_layout.py", ("test_figure_9",),
        "tuples number from 2, the figure from 1: both"),
    Printed(APAS, "figures 11 to 15", "an aggregate in two phases", "tests/compiler/apas/test_aggregates.py",
        ("test_section_7",), "partial results are $1, $2, $3"),
    Printed(APAS, "figure 17", "sums in a list of intervals", "tests/engine/temporal/aggregates/test_index.py",
        ("test_figure_17",), "two values are misprints"),
    Printed(APAS, "table 6, figure 20", "the query of the road", f"{_TIME}network.py", ("test_table_6",),
        "threshold and column as in the tables"),
    Printed(APAS, "table 7", "the same with a window", f"{_TIME}network.py", ("test_table_7",)),
    Printed(XIA, "figures 1 to 6", "order, ranges and candidates of example 1", "tests/engine/pattern/test_optiseq.py"),
    Printed(FLINK, "worked run", "versions of the shared buffer", "tests/engine/pattern/test_nfa.py",
        ("test_14_version_tables", "test_14_in_operation", "test_14_without_versions_there_are_four_ways")),
)  # fmt: skip


def measure() -> Measurement:
    ran = outcomes(sorted({item.file for item in PRINTED}))
    rows: list[tuple[object, ...]] = []
    for item in PRINTED:
        mine = [
            good
            for (file, test), good in ran
            if file == item.file and (not item.tests or test in item.tests)
        ]
        shown = (item.paper, item.place, item.what, item.reading, item.file)
        rows.append((*shown, len(mine), sum(mine)))
    return Measurement(HEAD, rows, {}, "tests with the figures as they are printed")


def outcomes(files: list[str]) -> list[tuple[tuple[str, str], bool]]:
    """Returns for each test in some files, and each of its cases, whether it passes."""
    root = folder().parent
    with tempfile.TemporaryDirectory() as name:
        report = Path(name) / "report.xml"
        line = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            f"--junitxml={report}",
        ]
        done = subprocess.run(
            [*line, *files],
            cwd=root,
            env=os.environ | {"PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
        )
        assert done.returncode in (0, 1), done.stdout + done.stderr
        cases = list(ElementTree.parse(report).iter("testcase"))
    found = []
    for case in cases:
        file = case.attrib["classname"].replace(".", "/") + ".py"
        good = all(case.find(fault) is None for fault in ("failure", "error", "skipped"))
        found.append(((file, case.attrib["name"].partition("[")[0]), good))
    return found
