"""`seustream journal`: what is in a bridge's journal, what of it is damaged, what can be saved."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import shutil
import sys
from collections.abc import Container
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet

from seustream.cosim.bridge.disk import RealDisk
from seustream.cosim.bridge.journal_errors import JournalDamaged, JournalHeld, JournalRefused
from seustream.cosim.bridge.log import Record
from seustream.cosim.bridge.mark import FORMAT
from seustream.cosim.bridge.salvage import Export, Salvaged, at_rest, copy_sound, saved
from seustream.cosim.bridge.survey import Survey
from seustream.encoding import parquet_options
from seustream.errors import OutputError, UserError

_FORM = "the journal has what they made of them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="check|repair|export", required=True)
    for name, what in (
        ("check", "say what is there, what is damaged, and what can be saved"),
        ("repair", "copy what is before the damage into a new journal"),
        ("export", "write the rows that can be read as Parquet"),
    ):
        one = actions.add_parser(name, help=what, description=what)
        one.add_argument("folder", type=Path, metavar="DIR", help="the journal; it is not changed")
        if name != "check":
            one.add_argument(
                "-o", dest="out", type=Path, required=True, metavar="NEW", help="not there yet"
            )
        if name == "repair":
            one.add_argument(
                "--accept-loss",
                action="store_true",
                help="go on without what check lists as lost",
            )


def run(arguments: argparse.Namespace) -> int:
    folder, disk = arguments.folder, RealDisk()
    out: Path | None = None if arguments.action == "check" else arguments.out
    if not folder.is_dir():
        raise UserError([f"{folder}: no such folder"])
    if out is not None and out.exists():
        raise UserError([f"{out}: is there already"], hint="name a folder that is not there yet")
    try:
        with at_rest(disk, folder) as found:
            if found.generation is None and not found.damages:
                raise UserError([f"{folder}: there is no journal in it"])
            keep = saved(found)
            if out is None:
                return _check(found, keep)
            if arguments.action == "repair":
                return _repair(disk, found, keep, out, arguments.accept_loss)
            return _export(Export(disk, found), out)
    except (JournalHeld, JournalRefused) as error:
        raise UserError([str(error)], hint=getattr(error, "hint", None)) from None
    except OSError as error:
        raise OutputError([f"{error.filename or out or folder}: {error.strerror}"]) from None


# --- check ----------------------------------------------------------------------


def _check(found: Survey, keep: Salvaged) -> int:
    for line in _described(found):
        print(line)
    for note in found.notes:
        print(f"made good when a bridge opens it: {note}")
    for damage in found.spoilt.values():
        print(f"in no epoch yet, to be staged again: {damage}")
    if not found.damages:
        print("sound")
        return 0
    for damage in found.damages:
        print(f"damaged: {damage}")
    for line in _loss(found, keep):
        print(line)
    return 2


def _described(found: Survey) -> list[str]:
    """Describes the journal's contents, damaged or not."""
    load = None if found.begin is None else found.begin["load"]
    lines = [f"journal of format {FORMAT}, generation {_or_none(found.generation)}"]
    lines.append("a query set is loaded" if load else "no query set is loaded")
    if found.snapshot is not None:
        lines.append(f"snapshot: {found.snapshot[0].name}")
    epochs = [r for r in found.records if r["kind"] == "epoch"]
    rows = sum(r["rows"] for r in epochs)
    lines.append(
        f"records: {len(found.records):,}; of these epochs: {len(epochs):,}, rows {rows:,}"
    )
    for writer in dict.fromkeys(r["writer"] for r in epochs):
        of = [r["epoch"] for r in epochs if r["writer"] == writer]
        lines.append(f"writer {writer}: epochs {of[0]:,} to {of[-1]:,}")
    lines.append(f"parts: {len(found.parts):,} of epochs, {len(found.waiting):,} of none yet")
    return lines


def _loss(found: Survey, keep: Salvaged) -> list[str]:
    """Describes what can be saved, and what would be lost."""
    if keep.hopeless is not None:
        return [f"can be saved: no state, for {keep.hopeless.path.name} is damaged; rows by export"]
    lines = [f"can be saved: the first {len(keep.records):,} records"]
    lines += [f"  writer {w}: up to epoch {epoch:,}" for w, epoch in keep.epochs.items()]
    if keep.lost:
        lines.append(f"lost then: {len(keep.lost):,} records: {_named(keep.lost)}")
    if any(damage.path.name.startswith("log-") for damage in found.damages):
        lines.append("lost then: whatever the log had from the damage on")
    return lines


def _named(records: list[Record]) -> str:
    shown = [
        f"epoch {r['epoch']} of {r['writer']}" if r["kind"] == "epoch" else f"a {r['kind']}"
        for r in records[:5]
    ]
    return ", ".join(shown) + (", …" if len(records) > 5 else "")


def _or_none(number: int | None) -> str:
    return "none" if number is None else f"{number:,}"


# --- repair ---------------------------------------------------------------------


def _repair(disk: RealDisk, found: Survey, keep: Salvaged, out: Path, accepted: bool) -> int:
    if not found.damages:
        print("sound: a bridge makes good the rest when it opens it; nothing to do")
        return 0
    if keep.hopeless is not None:
        hint = f"seustream journal export {found.folder} -o NEW: writes the rows that can be read"
        raise UserError([str(damage) for damage in found.damages], hint=hint)
    if not accepted:
        messages = [str(damage) for damage in found.damages] + _loss(found, keep)
        raise UserError(messages, hint="with --accept-loss it goes on from there")
    partial = out.with_name(out.name + ".partial")
    try:
        copy_sound(disk, found, keep, out)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    for line in _loss(found, keep):
        print(line)
    print(f"written: {out}; {found.folder} is as it was", file=sys.stderr)
    return 0


# --- export ---------------------------------------------------------------------


def _export(export: Export, out: Path) -> int:
    partial = out.with_name(out.name + ".partial")
    if partial.exists():
        raise UserError([f"{partial}: is there already"], hint="is somebody writing there?")
    try:
        _write(export, partial)
        partial.rename(out)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    for damage in export.damages:
        print(f"left out: {damage}", file=sys.stderr)
    if export.without_rows:
        names = ", ".join(export.without_rows)
        print(f"left out: rows in the windows of {names}: {_FORM}", file=sys.stderr)
    print(f"written: {out}", file=sys.stderr)
    return 0


def _write(export: Export, folder: Path) -> None:
    folder.mkdir(parents=True)
    counts: dict[str, int] = {}
    names: dict[tuple[str, str, pa.Schema], str] = {}
    with contextlib.ExitStack() as stack:
        writers: dict[str, parquet.ParquetWriter] = {}
        for kind, name, rows in export.tables():
            # A stream or query that was made anew may have other columns, which want another file.
            of = kind, name, rows.schema.remove_metadata()
            if (file := names.get(of)) is None:
                file = names[of] = _file(kind, _safe(name, len(names)), counts)
            if file not in writers:
                (folder / kind).mkdir(exist_ok=True)
                options = parquet_options(rows.schema)
                made = parquet.ParquetWriter(folder / file, rows.schema, **options)
                writers[file] = stack.enter_context(made)
            writers[file].write_table(rows)
            counts[file] = counts.get(file, 0) + rows.num_rows
    if export.queries is not None:
        (folder / "queries.xsql").write_text(export.queries, encoding="utf-8")
    damages: list[JournalDamaged] = export.found.damages + [
        one for one in export.damages if str(one) not in map(str, export.found.damages)
    ]
    said = {
        "rows": counts,
        "names": {file: name for (_, name, _), file in names.items()},
        "damages": [str(damage) for damage in damages],
        "without_rows": export.without_rows,
    }
    (folder / "export.json").write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")


def _file(kind: str, name: str, taken: Container[str]) -> str:
    """Returns a file that is not taken: the name's own, or with a number."""
    file, number = f"{kind}/{name}.parquet", 1
    while file in taken:
        number += 1
        file = f"{kind}/{name}.{number}.parquet"
    return file


def _safe(name: str, number: int) -> str:
    """Returns a name that is safe as part of a path, since it is untrusted."""
    return name if re.fullmatch(r"\w[\w.-]{0,99}", name) else f"unnamed{number}"
