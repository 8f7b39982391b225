"""The bare device over the wire, for a host driver that runs with its client.

A `Lease` exchange holds the device while it is open. Each message of the client is answered by one
message. A request is the metadata `{"do": …}`, for a push with a batch. The answer is `{"ok": …}` or
`{"error": …}`, with a batch of results if there are any. A client that vanishes releases the device.

    RemoteDevice     `seustream.hdl.device.Device` at the client: same calls, same results, same errors
    serve_device     the other end
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

from seustream.cosim.bridge import protocol as p
from seustream.cosim.bridge.errors import BridgeError, from_flight
from seustream.hdl.config import MAX_ATTRIBUTES, MAX_STREAMS, DeviceConfig
from seustream.hdl.device import (
    Batch,
    BatchRefused,
    Device,
    Groups,
    HandedOver,
    LoadRefused,
    NotLoaded,
    Results,
    Status,
    UnitCycles,
)

BATCH = pa.schema(
    [
        ("stream", pa.uint8()),
        ("timestamp", pa.int64()),
        ("sequence", pa.int64()),
        ("admit", pa.bool_()),
        ("attributes", pa.list_(pa.uint32(), MAX_ATTRIBUTES)),
    ]
)
RESULTS = pa.schema(
    [
        ("queries", pa.uint64()),
        ("newest", pa.int64()),
        ("oldest", pa.int64()),
        ("sequences", pa.list_(pa.int64(), MAX_STREAMS)),
    ]
)
_NO_RESULT = np.uint64(0)
"""Takes the place of queries, whose set is never empty. `newest` then gives the kind of row."""
_HANDED_OVER, _GROUPED = 0, 1
"""A hand-over, with its stream, sequence number, taker and taken_by in `sequences`; or half of a
group, whose columns are the `sequences` of two rows."""


# --- columns ------------------------------------------------------------------


def batch_to_arrow(batch: Batch) -> pa.RecordBatch:
    attributes = np.ascontiguousarray(batch.attributes, np.uint32).reshape(-1)
    columns = [
        pa.array(batch.stream, pa.uint8()),
        pa.array(batch.timestamp, pa.int64()),
        pa.array(batch.sequence, pa.int64()),
        pa.array(batch.admit, pa.bool_()),
        pa.FixedSizeListArray.from_arrays(pa.array(attributes), MAX_ATTRIBUTES),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=BATCH)


def batch_from_arrow(rows: pa.RecordBatch) -> Batch:
    """Raises `BridgeError` for a batch of other columns, or with NULLs."""
    if not rows.schema.equals(BATCH):
        raise BridgeError("schema", f"a device takes {_named(BATCH)}; got {_named(rows.schema)}")
    inner = rows.column(4).flatten()
    if any(column.null_count for column in (*rows.columns, inner)):
        raise BridgeError("schema", "a device knows no NULL")
    return Batch(
        rows.column(0).to_numpy(),
        rows.column(1).to_numpy(),
        rows.column(2).to_numpy(),
        rows.column(3).to_numpy(zero_copy_only=False),
        inner.to_numpy().reshape(-1, MAX_ATTRIBUTES),
    )


def results_to_arrow(results: Results) -> pa.RecordBatch:
    handed, groups = results.handed_over, results.grouped
    moved = np.stack([handed.stream, handed.sequence, handed.taker, handed.taken_by], axis=1)
    columns_of_groups = [getattr(groups, each.name) for each in dataclasses.fields(Groups)]
    halves = np.stack(columns_of_groups, axis=1).reshape(-1, MAX_STREAMS)
    what = np.repeat(np.array([_HANDED_OVER, _GROUPED], np.int64), (len(moved), len(halves)))
    sequences = np.concatenate((results.sequences, moved, halves)).astype(np.int64).reshape(-1)
    columns = [
        pa.array(np.concatenate((results.queries, np.full(len(what), _NO_RESULT)))),
        pa.array(np.concatenate((results.newest, what))),
        pa.array(np.concatenate((results.oldest, np.zeros(len(what), np.int64)))),
        pa.FixedSizeListArray.from_arrays(pa.array(sequences), MAX_STREAMS),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RESULTS)


def results_from_arrow(rows: pa.RecordBatch) -> Results:
    queries, newest, oldest = (rows.column(i).to_numpy() for i in range(3))
    sequences = rows.column(3).flatten().to_numpy().reshape(-1, MAX_STREAMS)
    own = queries != _NO_RESULT
    moved = sequences[~own & (newest == _HANDED_OVER)]
    handed = HandedOver(moved[:, 0], moved[:, 1], moved[:, 2], moved[:, 3])
    halves = sequences[~own & (newest == _GROUPED)]
    groups = Groups(*halves.reshape(-1, len(dataclasses.fields(Groups))).T)
    return Results(queries[own], newest[own], oldest[own], sequences[own], handed, groups)


def _named(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)[:200]


# --- the bridge's end ---------------------------------------------------------


def serve_device(
    device: Device, reader: flight.MetadataRecordBatchReader, writer: Any, most_rows: int
) -> None:
    """Answers one client until it goes."""
    writer.begin(RESULTS)
    info = {
        "config": device.config.to_json(),
        "cycles": getattr(device, "cycles", None),
        "units": hasattr(device, "units"),
    }
    writer.write_metadata(json.dumps({"ok": info}).encode())
    while True:
        try:
            chunk = reader.read_chunk()
        except StopIteration:
            return
        try:
            answer, results = _answer(device, chunk, most_rows)
        except (LoadRefused, BatchRefused, NotLoaded, BridgeError) as error:
            answer, results = {"error": _describe(error)}, None
        if results is None:
            writer.write_metadata(json.dumps(answer).encode())
        else:
            writer.write_with_metadata(results_to_arrow(results), json.dumps(answer).encode())


def _answer(
    device: Device, chunk: flight.FlightStreamChunk, most_rows: int
) -> tuple[dict[str, object], Results | None]:
    try:
        asked = json.loads(bytes(chunk.app_metadata or b""))
        do = asked["do"]
    except (ValueError, LookupError, TypeError):
        raise BridgeError("malformed", 'a lease wants {"do": …} with every message') from None
    match do:
        case "push":
            if chunk.data is None:
                raise BridgeError("malformed", "push: want a batch")
            if chunk.data.num_rows > most_rows:
                what = f"a batch of {chunk.data.num_rows:,} rows, at most {most_rows:,}"
                raise BridgeError("too-large", what)
            return {"ok": True}, device.push(batch_from_arrow(chunk.data))
        case "flush":
            return {"ok": True}, device.flush()
        case "load":
            try:
                image = base64.b64decode(asked["image"], validate=True)
            except (KeyError, TypeError, ValueError):
                raise BridgeError("malformed", "load: want an image in base 64") from None
            device.load(image)
        case "reset":
            device.reset()
        case "status":
            pass
        case "units" if hasattr(device, "units"):
            return {
                "ok": {name: dataclasses.astuple(it) for name, it in device.units().items()}
            }, None
        case _:
            raise BridgeError("unknown", f"a device does not {do!r:.30}")
    status = dataclasses.asdict(device.status())
    return {"ok": {"status": status, "cycles": getattr(device, "cycles", None)}}, None


def _describe(error: Exception) -> dict[str, object]:
    match error:
        case LoadRefused():
            where = {"area": error.area, "table": error.table, "row": error.row}
            # Clients before `table` and `row` want it.
            address = error.row if error.table == "program" else None
            return {"is": "load", "reason": error.reason, **where, "address": address}
        case BatchRefused():
            return {"is": "batch", "reason": error.reason, "row": error.row}
        case NotLoaded():
            return {"is": "not loaded"}
        case BridgeError():
            return {"is": "bridge", "kind": error.kind, "message": str(error), "hint": error.hint}
    raise error


# --- the client's end ---------------------------------------------------------


class RemoteDevice:
    """Device contract: `seustream.hdl.device.Device`, on a device that a bridge serves. Holds it until
    `close`."""

    def __init__(self, connection: flight.FlightClient) -> None:
        self._connection = connection
        descriptor = flight.FlightDescriptor.for_command(p.write(p.Lease()))
        try:
            self._writer, self._reader = connection.do_exchange(descriptor)
        except flight.FlightError as error:
            raise from_flight(error) from None
        try:
            self._writer.begin(BATCH)
            info = self._read()[0]
        except flight.FlightError as error:
            self.close()  # otherwise Arrow prints the error again when the writer is collected
            raise from_flight(error) from None
        self._config = DeviceConfig.from_json(json.dumps(info["config"]))
        self._has_clock = info["cycles"] is not None
        self._has_units = info.get("units", False)

    @property
    def config(self) -> DeviceConfig:
        return self._config

    @property
    def cycles(self) -> int | None:
        """Returns the clock cycles of a device that has a clock."""
        found = self._ask({"do": "status"})[0]["cycles"] if self._has_clock else None
        return None if found is None else int(found)

    def units(self) -> dict[str, UnitCycles]:
        """Returns units as in `seustream.hdl.device.Clocked`, none of a device that does not count them."""
        found = self._ask({"do": "units"})[0] if self._has_units else {}
        return {name: UnitCycles(*counts) for name, counts in found.items()}

    def load(self, image: bytes) -> None:
        self._ask({"do": "load", "image": base64.b64encode(image).decode()})

    def push(self, batch: Batch) -> Results:
        return self._results({"do": "push"}, batch_to_arrow(batch))

    def flush(self) -> Results:
        return self._results({"do": "flush"})

    def reset(self) -> None:
        self._ask({"do": "reset"})

    def status(self) -> Status:
        found = self._ask({"do": "status"})[0]["status"]
        return Status(**{**found, "occupancy": tuple(found["occupancy"])})

    def close(self) -> None:
        """Releases the device."""
        # If the device is already gone, the purpose is met.
        with contextlib.suppress(flight.FlightError, pa.ArrowException):
            self._writer.close()
        self._connection.close()

    def __enter__(self) -> RemoteDevice:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _results(self, message: dict[str, object], rows: pa.RecordBatch | None = None) -> Results:
        found = self._ask(message, rows)[1]
        return Results() if found is None else results_from_arrow(found)

    def _ask(
        self, message: dict[str, object], rows: pa.RecordBatch | None = None
    ) -> tuple[Any, pa.RecordBatch | None]:
        metadata = json.dumps(message).encode()
        try:
            if rows is None:
                self._writer.write_metadata(metadata)
            else:
                self._writer.write_with_metadata(rows, metadata)
            return self._read()
        except (flight.FlightError, pa.ArrowException, StopIteration) as error:
            raise from_flight(error) from None

    def _read(self) -> tuple[Any, pa.RecordBatch | None]:
        chunk = self._reader.read_chunk()
        answer = json.loads(bytes(chunk.app_metadata))
        if "error" in answer:
            raise _error(answer["error"])
        return answer["ok"], chunk.data


def _error(found: dict[str, Any]) -> Exception:
    match found["is"]:
        case "load":
            address = found["address"]
            known = ("program", address) if address is not None else (None, None)
            table, row = found.get("table", known[0]), found.get("row", known[1])
            return LoadRefused(found["reason"], found["area"], table, row)
        case "batch":
            return BatchRefused(found["reason"], found["row"])
        case "not loaded":
            return NotLoaded()
    return BridgeError(found["kind"], found["message"], found["hint"])
