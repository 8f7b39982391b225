"""The sessions of the project, each in an environment of its own: `nox -l` lists them."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import nox

# uv, if installed, makes the environments, because it is faster.
nox.options.default_venv_backend = "uv|venv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "tests"]

PROJECT = nox.project.load_toml("pyproject.toml")


def install(session: nox.Session, *groups: str) -> None:
    """Installs the project and some of its dependency groups."""
    put(session, "-e", ".", *nox.project.dependency_groups(PROJECT, *groups))


def put(session: nox.Session, *what: str) -> None:
    """Installs with uv, and uv itself if nox has none: pip takes several times as long."""
    if session.venv_backend == "venv":
        session.install("uv")
        session.run_install("uv", "pip", "install", "--quiet", *what)
    else:
        session.install(*what)


@nox.session
def demo(session: nox.Session) -> None:
    """Two examples from text to verified results: Spark, bridge, simulated FPGA, and back."""
    put(session, *nox.project.dependency_groups(PROJECT, "sim"))
    # Compile the processor while Spark, ten times as large as everything else, is installed.
    # The demo waits for this; if it fails, the demo tries again and reports the error.
    command = ("python", "-m", "seustream.cosim.verilated", "default3")
    silently = {"env": {"PYTHONPATH": "."}, "silent": True, "success_codes": range(256)}
    build = threading.Thread(target=session.run, args=command, kwargs=silently, daemon=True)
    build.start()
    install(session, "demo")
    session.run("python", "examples/demo.py", *session.posargs)
    build.join()


@nox.session
def models(session: nox.Session) -> None:
    """The eight-query example under both plans on every device, verified in DuckDB."""
    install(session, "test", "sim")
    session.run("python", "examples/eight/demo.py", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Lint, then all tests; arguments go to pytest."""
    install(session, "dev")
    # Python and Java start hundreds of times: keep what they compile, whatever the machine says.
    session.env["PYTHONDONTWRITEBYTECODE"] = ""
    if not session.posargs:
        command = ("python", "-m", "tests.spark_feeder.archive")
        archive = threading.Thread(target=session.run, args=command)
        archive.start()
        _lint(session)
        archive.join()
    # One more than the cores, because builds, Spark and bridges make tests wait now and then.
    workers = str((os.cpu_count() or 1) + 1)
    session.run("pytest", "-n", workers, "--dist", "worksteal", *session.posargs)


@nox.session
def wheel(session: nox.Session) -> None:
    """Builds the wheel; an empty folder and a fresh environment run README, tutorial and Spark."""
    session.install(*nox.project.dependency_groups(PROJECT, "wheel"))
    java = ("--spark",) if shutil.which("java") else ()
    session.run("python", "-m", "tests.wheel", *(session.posargs or java))


@nox.session(python=["3.11", "3.12", "3.13", "3.14"], venv_backend="venv")
def wheels(session: nox.Session) -> None:
    """The wheel on each Python that is here, without Spark; arguments as for `wheel`."""
    session.install(*nox.project.dependency_groups(PROJECT, "wheel"))
    session.run("python", "-m", "tests.wheel", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Builds the pages of `docs/` as a site, into build/site; a warning or a dead link is an error."""
    session.install(*nox.project.dependency_groups(PROJECT, "docs"))
    # The hook is a module of the tests; the theme's news about its successor is no warning of ours.
    environment = {"PYTHONPATH": ".", "NO_MKDOCS_2_WARNING": "1"}
    session.run("mkdocs", "build", "--strict", *session.posargs, env=environment)


@nox.session
def changelog(session: nox.Session) -> None:
    """Gathers `changelog.d` into CHANGELOG.md: `-- --version 0.2.0`; shows it without a version."""
    session.install(*nox.project.dependency_groups(PROJECT, "changelog"))
    session.run("towncrier", "build", *(session.posargs or ("--draft", "--version", "next")))


@nox.session
def lint(session: nox.Session) -> None:
    """Format, common mistakes, strict types, imports, one of each, and the prose of docstrings."""
    install(session, "dev")
    _lint(session)


def _lint(session: nox.Session) -> None:
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("mypy")
    session.run("lint-imports")
    session.run("python", "-m", "tests.lint.names")
    session.run("python", "-m", "tests.lint.prose")
    session.run("python", "-m", "tests.lint.mirror")


@nox.session
def campaign(session: nox.Session) -> None:
    """Random queries, streams and programs on all devices, 142,000 of them; `-- --record` adds up runs."""
    install(session, "test", "sim")
    session.run("python", "-m", "tests.system.campaign", *session.posargs)


@nox.session
def hil(session: nox.Session) -> None:
    """Hardware in the loop: random cases from Spark through the bridge on the RTL, against DuckDB."""
    install(session, "test", "sim", "spark")
    session.run("python", "-m", "tests.spark_feeder.hil", *session.posargs)


@nox.session
def cluster(session: nox.Session) -> None:
    """A job on a Spark standalone cluster of two workers on this machine, one bridge and two."""
    install(session, "test", "sim", "spark")
    session.run("pytest", "tests/spark_feeder/test_cluster.py", "-m", "campaign", *session.posargs)


@nox.session
def kafka(session: nox.Session) -> None:
    """Streams out of a real Kafka broker; needs Java 17 and Maven, which fetches both."""
    install(session, "test", "spark")
    session.run("python", "-m", "tests.spark_feeder.kafka_check", *session.posargs)


@nox.session
def kills(session: nox.Session) -> None:
    """kill -9 of bridge, Spark's driver and Python workers at random moments; `-- --kills N --record`."""
    install(session, "test", "sim", "spark")
    session.run("python", "-m", "tests.cosim.bridge.kills", *session.posargs)
    session.run("python", "-m", "tests.spark_feeder.kills", *session.posargs)


@nox.session
def swaps(session: nox.Session) -> None:
    """Swaps queries in mid-stream, over and over, while a bridge is fed and read; `-- --record`."""
    install(session, "test", "sim")
    session.run("python", "-m", "tests.cosim.bridge.kills", "--swaps", "500", *session.posargs)


@nox.session
def soak(session: nox.Session) -> None:
    """An hour of steady load on a bridge: memory and latency must not grow; `-- --minutes 5`."""
    install(session, "test")
    session.run("python", "-m", "tests.cosim.bridge.soak", *session.posargs)


@nox.session
def storage(session: nox.Session) -> None:
    """A bridge's journal under every fault of its disk: flips, cuts, calls; `-- --seconds 600 --record`."""
    install(session, "test")
    session.run("python", "-m", "tests.cosim.bridge.storage", *session.posargs)


@nox.session
def world(session: nox.Session) -> None:
    """100,000 jobs in a simulated world, whatever goes wrong; `-- --planted`: faults it must find."""
    install(session, "test", "sim", "spark")
    session.run("python", "-m", "tests.world.campaign", "--jobs", "2", *session.posargs)


@nox.session
def audit(session: nox.Session) -> None:
    """Known vulnerabilities of installed packages; only this session asks the package index."""
    install(session, "dev")
    session.install("pip-audit>=2.9", "pip")  # pip-audit asks pip what is installed
    found = Path(session.create_tmp()) / "requirements.txt"
    with found.open("w") as file:
        session.run("pip", "freeze", "--exclude", "seustream", stdout=file)
    # Strict: a package that the index does not know is unknown, not safe.
    strict = ("--strict", "--no-deps", "--disable-pip", "-r", str(found))
    session.run("pip-audit", *strict, *session.posargs)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Damaged texts, images, messages and sources: errors or success, no crash; `-- --cases N`."""
    install(session, "test", "sim")
    session.run("python", "-m", "tests.system.fuzz", *session.posargs)
    session.run("python", "-m", "tests.cosim.bridge.fuzz", *session.posargs)


@nox.session
def patterns(session: nox.Session) -> None:
    """Random patterns and streams on all matchers, 100,000 of them; `-- --cases N`."""
    install(session, "test")
    session.run("python", "-m", "tests.engine.pattern.campaign", "--jobs", "2", *session.posargs)


@nox.session
def expressions(session: nox.Session) -> None:
    """Random expressions by columns, by rows and in DuckDB, 20,000 of them; `-- --cases N`."""
    install(session, "test")
    session.run("python", "-m", "tests.language.campaign", *session.posargs)


@nox.session
def joins(session: nox.Session) -> None:
    """2,000 random trees of joins, in any pieces, against DuckDB; `-- --cases N`."""
    install(session, "test")
    session.run("python", "-m", "tests.engine.relational.joining", "--jobs", "2", *session.posargs)


@nox.session
def mixed(session: nox.Session) -> None:
    """300 random query sets that mix the three languages: files, bridge, snapshots; `-- --cases N`."""
    install(session, "test")
    session.run("python", "-m", "tests.system.mixed", *session.posargs)


@nox.session
def groups(session: nox.Session) -> None:
    """Groups of windows, frames, parts of queries against DuckDB, 5,000 of them; `-- --cases N`."""
    install(session, "test")
    session.run("python", "-m", "tests.engine.relational.campaign", "--jobs", "2", *session.posargs)


@nox.session
def statements(session: nox.Session) -> None:
    """50,000 random statements of X-SQL, nested in each other, against DuckDB; `-- --cases N`."""
    install(session, "test")
    session.run("python", "-m", "tests.system.statements", "--jobs", "2", *session.posargs)


@nox.session
def flink(session: nox.Session) -> None:
    """Flink as judge of patterns and of SQL; needs Java 17 and Maven; `-- --cases N` for more."""
    install(session)
    for module in ("tests.engine.pattern.flink_check", "tests.system.flink_check"):
        session.run("python", "-m", module, *session.posargs)


@nox.session
def spark(session: nox.Session) -> None:
    """Patterns as a stateful operator on Spark; needs Java 17; arguments go to pytest."""
    install(session, "test", "spark")
    session.run(
        "pytest", "-m", "campaign or not campaign", *(session.posargs or ["tests/spark_feeder"])
    )


@nox.session
def coverage(session: nox.Session) -> None:
    """Measures what random cases reach of the processor, into bench/results; `-- --cases N`."""
    install(session, "test", "sim")
    session.run("python", "-m", "tests.hdl.coverage", *session.posargs)


@nox.session
def sites(session: nox.Session) -> None:
    """Joins across sites: reductions, bad networks, sites as processes, and random query sets.

    Runs every reduction over 100 seeds, and thousands of runs over bad networks. Then runs sites as
    processes with devices behind bridges, as far apart as this machine allows. Then compares random
    query sets over sites with one process and with DuckDB.
    """
    install(session, "test")
    session.run("pytest", "tests/engine/sites", "-m", "campaign", "-n", "2", *session.posargs)
    session.run("python", "-m", "tests.system.sites", "10")
    session.run("python", "-m", "tests.system.across", "300")


@nox.session
def mutants(session: nox.Session) -> None:
    """Break the processor on purpose, line by line; the random cases must notice each time."""
    install(session, "test", "sim")
    session.run("python", "-m", "tests.hdl.mutants", *session.posargs)


@nox.session
def studio(session: nox.Session) -> None:
    """Build the studio's page anew, with Node, and test it in the system's Chromium."""
    install(session, "test", "sim", "browser")
    for step in (("ci", "--no-fund", "--no-audit"), ("run", "check"), ("run", "build")):
        session.run("npm", "--prefix", "studio", *step, external=True)
    session.run(
        "pytest", "tests/seustream/studio", "-m", "campaign or not campaign", *session.posargs
    )


@nox.session
def formal(session: nox.Session) -> None:
    """Proves the processor and its components; arguments go to pytest.

    Some proofs of components hold for ever, others up to a bound, as that of the whole processor does.
    docs/reference/proofs.md lists them.
    """
    install(session, "formal")
    args = session.posargs or ["-n", "2", "--dist", "worksteal"]
    session.run("pytest", "tests/formal", "-m", "campaign or not campaign", *args)


@nox.session
def bitstream(session: nox.Session) -> None:
    """Bitstreams of all boards, and the table of them in the docs; hours; `-- ulx3s-tiny` for one."""
    install(session, "sim", "fpga")
    parts = "".join(f":{parts}" for parts in session.posargs[:1])
    session.run("seustream", "bench", f"boards{parts}")
    session.run("python", "-m", "tests.docs.figures")


@nox.session
def sizes(session: nox.Session) -> None:
    """Synthesise the known configurations, for the hint on what fits; minutes each; `-- tiny`."""
    install(session, "fpga")
    parts = "".join(f":{parts}" for parts in session.posargs[:1])
    session.run("seustream", "bench", f"sizes{parts}")


@nox.session
def largest(session: nox.Session) -> None:
    """The largest configuration that fits each board, placed; hours; `-- ecpix5-8` for one.

    The argument names the board and the width of attributes.
    """
    install(session, "fpga")
    parts = "".join(f":{parts}" for parts in session.posargs[:1])
    session.run("seustream", "bench", f"largest{parts}")
    session.run("python", "-m", "tests.docs.figures")


@nox.session
def board(session: nox.Session) -> None:
    """The host link over bad lines and under the whole device contract; netlists at their pins."""
    install(session, "test", "sim", "fpga")
    session.run(
        "pytest", "-m", "campaign or not campaign", "-k", "linked or link or networked or usb or boards or netlist",
        "tests/cosim", *session.posargs,
    )  # fmt: skip


@nox.session
def network(session: nox.Session) -> None:
    """Hostile packets, bad networks and USB cables at a board's ports; `-- --seconds 600 --record`.

    Sends a million hostile packets to an Ethernet port. Runs 200 random cases over bad networks, on
    real sockets, and as many over a USB cable.
    """
    install(session, "test", "sim", "boards", "usb")
    session.run("python", "-m", "tests.cosim.boards.campaign", *session.posargs)


@nox.session
def verilog(session: nox.Session) -> None:
    """The Verilog core in other tools, and cycle by cycle beside the Amaranth it is written from.

    The tools: lint, synthesis for three FPGA families, FuseSoC, its own test bench, and a LiteX system.
    """
    install(session, "test", "verilog", "fpga")
    where = ("tests/cosim/export", "tests/examples/test_litex.py")
    session.run("pytest", "-m", "campaign", *where, *session.posargs)


@nox.session
def paper(session: nox.Session) -> None:
    """Every figure and table of the papers and of ours, and a page of which ones hold; `-- --list`.

    `-- --full` takes hours, and goes on where it was stopped. `-- --only plans,smj` makes some of them. Some
    need Java 17 and Maven.
    """
    install(session, "test", "cocotb", "spark", "fpga", "bench")
    session.run("python", "-m", "tests.docs.paper", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Run the benchmarks; ratios within one run, into bench/results."""
    install(session, "test", "sim", "cocotb", "spark", "bench")
    session.run("seustream", "bench", *session.posargs)
