"""Damaged texts and images, many more than the tests try: `python -m tests.system.fuzz --cases N`.

A text compiles or is refused with a position; an image loads or is refused, and what loads runs
to an end on both models. Anything else is a crash, printed with the seed that shows it again.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import traceback
from collections.abc import Callable

import numpy as np

from seustream.compiler.errors import CompileError
from seustream.compiler.pipeline import Options, compile_text
from seustream.hdl.config import CONFIGURATIONS
from seustream.hdl.device import Batch, BatchRefused, LoadRefused
from tests.compiler.test_pipeline import VALID, check_report
from tests.compiler.test_pipeline import mutated as mutated_text
from tests.compiler.wjasip.images import mutated as mutated_bytes
from tests.compiler.wjasip.images import put_together, taken_apart
from tests.system.differential import MODELS
from tests.system.generate import generate

TINY = CONFIGURATIONS["tiny"]


def damaged_text(seed: int) -> None:
    chance = random.Random(seed)
    text = chance.choice(VALID) if chance.random() < 0.5 else generate(seed).text
    for _ in range(chance.randint(1, 4)):
        text = mutated_text(chance, text)
    try:
        compile_text(text)
    except CompileError as error:
        check_report(error, text)


def damaged_image(seed: int) -> None:
    chance = random.Random(seed)
    try:
        image = compile_text(generate(seed).text, options=Options(TINY)).image
    except CompileError:
        return  # too large for the configuration
    head, body = taken_apart(image)
    n = 12
    batch = Batch(
        np.array([chance.randrange(2) for _ in range(n)], np.uint8),
        np.arange(n, dtype=np.int64),
        np.arange(n, dtype=np.int64),
        np.ones(n, np.bool_),
        np.array([[chance.randrange(4) for _ in range(4)] for _ in range(n)], np.uint32),
    )
    for _ in range(10):
        body = mutated_bytes(chance, body)
        for make in MODELS.values():
            device = make(TINY)
            # A batch for streams that the damaged image lacks is refused, too.
            with contextlib.suppress(LoadRefused, BatchRefused):
                device.load(put_together(head, body))
                device.push(batch)
                device.flush()


KINDS: dict[str, Callable[[int], None]] = {"texts": damaged_text, "images": damaged_image}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=5_000, help="of each kind")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    options = parser.parse_args()
    crashes = 0
    for kind, attempt in KINDS.items():
        for seed in range(options.first, options.first + options.cases):
            try:
                attempt(seed)
            except Exception:
                crashes += 1
                print(f"{kind}, seed {seed}:\n{traceback.format_exc()}", flush=True)
            if (seed - options.first + 1) % 1000 == 0:
                print(f"{kind}: {seed - options.first + 1} cases, {crashes} crashes", flush=True)
    print(f"{2 * options.cases - crashes} passed, {crashes} failed")
    return 1 if crashes else 0


if __name__ == "__main__":
    sys.exit(main())
