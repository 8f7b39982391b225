"""Runs the C library for hosts against the RTL, over a network that loses, repeats, delays and
damages datagrams: the results must be those of the golden model."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections import Counter as Tally
from pathlib import Path

import pytest

from seustream.compiler.wjasip.image import encode
from seustream.cosim.boards.datagrams import VirtualUdpBoard
from seustream.cosim.export.words import load_words, packed
from seustream.cosim.golden import GoldenDevice
from seustream.hdl.boards.identity import LENGTH
from seustream.hdl.boards.protocol import VERSION
from seustream.hdl.control_words import Verdict
from tests.cosim.boards.cable import networked as board
from tests.cosim.boards.test_datagrams import Network
from tests.cosim.contract import LINKED, PAIRS
from tests.cosim.generate import random_arrivals, random_queries
from tests.cosim.queries import Raw, batch, build, handed_over, rows_of
from tests.docs.blocks import ROOT

LIBRARY = ROOT / "clients" / "c"
FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsanitize=undefined"]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(Path(__file__).with_name("host.c"), tmp_path_factory.mktemp("c"))


def compiled(program: Path, folder: Path) -> Path:
    """Compiles a program with the library, which must not cause a warning."""
    compiler = shutil.which("cc")
    assert compiler is not None
    sources = [*sorted(LIBRARY.glob("*.c")), program]
    made = folder / program.stem
    subprocess.run([compiler, *FLAGS, f"-I{LIBRARY}", *map(str, sources), "-o", made], check=True)
    return made


@pytest.mark.parametrize(("seed", "leaps"), [(7, False), (8, True)])
def test_results_are_those_of_the_golden_model(
    host: Path, tmp_path: Path, seed: int, leaps: bool
) -> None:
    """With `leaps`, some tuples come after the board's clock has gone round, nearly or just."""
    print(f"seed {seed}")
    chance = random.Random(seed)
    image = encode(build([*random_queries(chance, (0, 1, 2)), PAIRS]), LINKED)
    raws = random_arrivals(chance, (0, 1, 2), 120)
    if leaps:
        raws = _with_leaps(chance, raws)
    golden = GoldenDevice(LINKED)
    golden.load(image)
    results = golden.push(batch(raws))
    (tmp_path / "words").write_bytes(packed(load_words(image, LINKED)))
    lines = [" ".join(map(str, (r.stream, int(r.admit), r.timestamp, r.sequence, *r.attributes))) for r in raws]  # fmt: skip
    (tmp_path / "tuples").write_text("\n".join(lines) + "\n")
    with VirtualUdpBoard(board(LINKED)) as virtual:
        network = Network(virtual.port, seed, 0.01)
        shape = (
            LINKED.streams,
            LINKED.attribute_width,
            LINKED.timestamp_width,
            LINKED.sequence_width,
        )
        done = subprocess.run(
            [host, str(network.address.port), "words", "tuples", *map(str, shape), "60000"],
            cwd=tmp_path, capture_output=True, text=True, check=False, timeout=200,
        )  # fmt: skip
        network.close()
    assert (done.returncode, done.stderr) == (0, "")
    said = [line.split() for line in done.stdout.splitlines()]
    got = Tally(
        (query, int(w[3]), int(w[4]), tuple(map(int, w[5:])))
        for w in said
        if w[0] == "result"
        for query in range(LINKED.queries)
        if int(w[1]) >> query & 1
    )
    low = (1 << LINKED.timestamp_width) - 1
    want = Tally((q, n & low, o & low, tuple(s)) for q, n, o, s in rows_of(results))
    assert want
    assert got == want
    left = sorted(tuple(map(int, w[1:])) for w in said if w[0] == "left")
    assert left == sorted(tuple(row) for row in handed_over(results))
    assert left
    assert said[-2:] == [["taken", str(len(raws))], ["refused", str(int(Verdict.NOT_LOADING))]]


def _with_leaps(chance: random.Random, raws: list[Raw]) -> list[Raw]:
    round_, ahead, later = 1 << LINKED.timestamp_width, 0, []
    for raw in raws:
        if chance.random() < 0.1:
            ahead += chance.choice([round_ // 2, round_ // 2 + 1, round_ - 1, round_, round_ + 3])
        later.append(raw._replace(timestamp=raw.timestamp + ahead))
    return later


def test_silence_is_an_error(host: Path, tmp_path: Path) -> None:
    (tmp_path / "words").write_bytes(b"")
    done = subprocess.run(
        [host, "1", "words", "tuples", "4", "16", "24", "16", "100"], cwd=tmp_path,
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "open: -1\n"


PROTOCOL = -4


@pytest.mark.parametrize(
    ("version", "length", "pause", "due"),
    [
        (VERSION, LENGTH, 0, (0, 0)),
        (VERSION, LENGTH, 100, (0, 0)),
        (VERSION, LENGTH, 6_000, (0, 0)),
        (VERSION + 1, LENGTH, 0, (PROTOCOL, PROTOCOL)),
        (VERSION, LENGTH + 4, 0, (PROTOCOL, PROTOCOL)),
        (VERSION, 0, 0, (PROTOCOL, PROTOCOL)),
    ],
)
def test_a_board_that_answers_at_once(
    version: int, length: int, pause: int, due: tuple[int, int], tmp_path: Path
) -> None:
    """However long a host pauses between tuples, the board is not the one that is silent; one of another
    protocol is refused."""
    program = compiled(Path(__file__).with_name("prompt.c"), tmp_path)
    done = subprocess.run(
        [program, str(version), str(length), str(pause)],
        capture_output=True, text=True, check=True, timeout=100,
    )  # fmt: skip
    assert done.stdout == f"open {due[0]}\nall {due[1]}\n"
