"""Generates the vectors of the folder's test bench: register writes that load an image, batches of
records, and the golden model's output for each."""

from __future__ import annotations

import json
import random

import numpy as np
import numpy.typing as npt

from seustream.compiler.pipeline import Options, compile_text
from seustream.cosim.export.words import load_words
from seustream.cosim.golden import GoldenDevice
from seustream.hdl.axi.records import BEAT, RecordKind, input_record, output_record
from seustream.hdl.axi.registers import MAGIC, REGISTERS, words
from seustream.hdl.boards.identity import config_digest
from seustream.hdl.config import MAX_ATTRIBUTES, DeviceConfig
from seustream.hdl.control_words import Command, ControlOperation, Counter
from seustream.hdl.device import Batch, Results

QUERIES = """\
CREATE STREAM R (a int, b int);
CREATE STREAM S (a int, b int);
SELECT * FROM R, S WHERE R.a = S.a AND R.b > S.b WINDOW RANGE 300;
SELECT * FROM R, S WHERE R.b = S.b WINDOW ROWS 5;
"""
"""Joins for which every configuration has room, at least for the second of them."""

Rows = npt.NDArray[np.void]

_BATCHES, _ROWS = 4, 60
_COUNTERS = (Counter.TAKEN, Counter.TICKS, Counter.DELIVERED, Counter.HANDED_OVER)


class NoRoom(ValueError):
    """A configuration that holds none of the queries."""


def vectors(config: DeviceConfig, seed: int = 1) -> str:
    """Returns the vectors, as JSON."""
    compiled = compile_text(QUERIES, options=Options(config=config))
    if not compiled.device_queries:
        raise NoRoom(f"configuration {config.name} has no room for a join of two streams")
    golden = GoldenDevice(config)
    golden.load(compiled.image)
    chance = random.Random(seed)
    batches, now, counts = [], 0, [0, 0]
    for number in range(_BATCHES):
        batch = _random(chance, now, counts, config)
        now = int(batch.timestamp[-1])
        expected = [row.tobytes().hex() for row in output_rows(golden.push(batch), config)]
        records = input_rows(batch, config, mark=number + 1)
        batches.append(
            {"records": records.tobytes().hex(), "mark": number + 1, "expected": expected}
        )
    status = golden.status()
    counters = {int(counter): getattr(status, counter.name.lower()) for counter in _COUNTERS}
    return json.dumps(
        {
            "seed": seed,
            "registers": {register.name: register.offset for register in REGISTERS},
            "id": MAGIC,
            "config": config_digest(config),
            "read": words(Command(ControlOperation.READ))[0],
            "address": words(Command(ControlOperation.BEGIN, address=1))[0],  # the next counter
            "beat": BEAT,
            "input": input_record(config).bytes,
            "record": output_record(config).bytes,
            "mark": {"kind": int(RecordKind.MARK), "at": output_record(config)["mark"].at},
            "load": load_words(compiled.image, config),
            "batches": batches,
            "counters": counters,
        }
    )


def input_rows(batch: Batch, config: DeviceConfig, mark: int | None = None) -> Rows:
    """Returns a batch as records, with a mark at its end if it has a number."""
    rows = np.zeros(len(batch) + (mark is not None), input_record(config).dtype)
    tuples = rows[: len(batch)]
    tuples["kind"] = RecordKind.TUPLE
    tuples["stream"], tuples["flags"] = batch.stream, batch.admit
    tuples["timestamp"] = batch.timestamp.astype(np.uint64)
    tuples["sequence"] = batch.sequence.astype(tuples["sequence"].dtype)
    tuples["attributes"] = batch.attributes.astype(tuples["attributes"].dtype)
    if mark is not None:
        rows[-1]["kind"], rows[-1]["mark"] = RecordKind.MARK, mark
    return rows


def output_rows(results: Results, config: DeviceConfig) -> Rows:
    """Returns the records that a core gives for these results, in any order."""
    n, handed = len(results), results.handed_over
    rows = np.zeros(n + len(handed), output_record(config).dtype)
    times, counts = (1 << config.timestamp_width) - 1, (1 << config.sequence_width) - 1
    delivered, left = rows[:n], rows[n:]
    sequences = results.sequences[:, : config.streams]
    delivered["kind"], delivered["queries"] = RecordKind.RESULT, results.queries
    delivered["carries"] = (sequences >= 0) @ (1 << np.arange(config.streams))
    delivered["newest"] = results.newest.astype(np.uint64) & np.uint64(times)
    delivered["oldest"] = results.oldest.astype(np.uint64) & np.uint64(times)
    delivered["sequences"] = np.where(sequences >= 0, sequences & counts, 0)
    left["kind"] = RecordKind.HANDED_OVER
    left["stream"], left["taker"] = handed.stream, handed.taker
    left["sequences"][:, 0] = handed.sequence & counts
    left["sequences"][:, 1] = handed.taken_by & counts
    return rows


def _random(chance: random.Random, now: int, counts: list[int], config: DeviceConfig) -> Batch:
    """Returns tuples of few values, so that many join; some are ticks."""
    streams = [chance.randrange(2) for _ in range(_ROWS)]
    sequences, timestamps = [], []
    for stream in streams:
        now += chance.choice((0, 1, 1, 2, 7))
        timestamps.append(now)
        sequences.append(counts[stream])
        counts[stream] += 1
    attributes = [[chance.randrange(6) for _ in range(MAX_ATTRIBUTES)] for _ in streams]
    return Batch(
        np.array(streams, np.uint8),
        np.array(timestamps, np.int64),
        np.array(sequences, np.int64),
        np.array([chance.random() < 0.95 for _ in streams]),
        np.array(attributes, np.uint32),
    )
