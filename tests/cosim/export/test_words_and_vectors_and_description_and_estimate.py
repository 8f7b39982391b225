"""Tests the files that come with the core's Verilog, read by the tools they are for: a SystemRDL
compiler, a C compiler, FuseSoC."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seustream.compiler.pipeline import Options, compile_text
from seustream.compiler.wjasip.image import decode
from seustream.cosim.export import description
from seustream.cosim.export.estimate import FAMILIES, counted
from seustream.cosim.export.vectors import QUERIES, NoRoom, input_rows, vectors
from seustream.cosim.export.words import load_words, packed
from seustream.hdl.axi.records import RecordKind, input_record, output_record
from seustream.hdl.axi.registers import REGISTERS
from seustream.hdl.config import CONFIGURATIONS, DeviceConfig
from seustream.hdl.control_words import ControlOperation, Counter, load_commands

TINY = CONFIGURATIONS["tiny"]


# --- words ----------------------------------------------------------------------


def test_words_are_the_commands_of_the_image() -> None:
    image = compile_text(QUERIES, options=Options(config=TINY)).image
    rows = load_words(image, TINY)
    commands = [*load_commands(decode(image, TINY), TINY)]
    operations = [row[0] & 7 for row in rows]
    assert operations[0] == ControlOperation.BEGIN
    assert operations[-1] == ControlOperation.COMMIT
    assert len(rows) == len(commands) + 2
    for row, command in zip(rows[1:-1], commands, strict=True):
        assert row[1] | row[2] << 32 == command.data
    back = np.frombuffer(packed(rows), "<u4").reshape(-1, 3)
    assert back.tolist() == [list(row) for row in rows]


# --- vectors --------------------------------------------------------------------


@pytest.mark.parametrize("config", CONFIGURATIONS.values(), ids=lambda config: config.name)
def test_vectors_have_something_to_find(config: DeviceConfig) -> None:
    found = json.loads(vectors(config))
    size = output_record(config).bytes
    kinds = {
        bytes.fromhex(record)[0]
        for batch in found["batches"]
        for record in batch["expected"]
        if len(record) == 2 * size
    }
    assert RecordKind.RESULT in kinds
    assert (RecordKind.HANDED_OVER in kinds) == (config.depth < 256)
    tuples = sum(len(batch["records"]) // 2 // input_record(config).bytes - 1 for batch in found["batches"])  # fmt: skip
    assert found["counters"][str(int(Counter.TAKEN))] == tuples
    assert vectors(config, seed=2) != vectors(config) == vectors(config, seed=1)


def test_a_configuration_without_room_for_a_join_is_refused() -> None:
    config = DeviceConfig(name="none", streams=2, tags=3, instructions=1, queries=1)
    with pytest.raises(NoRoom, match="configuration none has no room for a join"):
        vectors(config)


# --- description ----------------------------------------------------------------


def test_a_systemrdl_compiler_finds_the_registers(tmp_path: Path) -> None:
    from systemrdl import RDLCompiler
    from systemrdl.node import FieldNode, RegNode

    path = tmp_path / "seustream.rdl"
    path.write_text(description.rdl())
    compiler = RDLCompiler()
    compiler.compile_file(str(path))
    top = compiler.elaborate().top
    found = {}
    for node in top.children():
        assert isinstance(node, RegNode)
        found[node.inst_name] = (
            node.absolute_address,
            {f.inst_name: (f.lsb, f.width) for f in node.children() if isinstance(f, FieldNode)},
        )
    assert {*found} == {register.name for register in REGISTERS}
    for register in REGISTERS:
        bits = {each.name: (each.low, each.width) for each in register.bits}
        assert found[register.name] == (register.offset, bits or {"VALUE": (0, 32)})


@pytest.mark.parametrize("language", ["c", "c++"])
@pytest.mark.parametrize("name", ["default", "tiny"])
def test_a_compiler_places_the_members_as_the_gateware_does(
    name: str, language: str, tmp_path: Path
) -> None:
    config = CONFIGURATIONS[name]
    (tmp_path / "seustream.h").write_text(description.header(config))
    lines, want = [], []
    for record in (input_record(config), output_record(config)):
        for member in record.members:
            lines.append(f'printf("%d\\n", (int)offsetof(struct {record.name}, {member.name}));')
            want.append(member.at)
    lines.append('printf("%d\\n", (int)seustream_command(1, 2, 3, 5));')
    want.append(1 | 2 << 3 | 3 << 7 | 5 << 9)
    head = (
        '#include <stddef.h>\n#include <stdio.h>\n#include "seustream.h"\n#include "seustream.h"\n'
    )
    (tmp_path / "t").write_text(f"{head}int main(void) {{ {' '.join(lines)} return 0; }}\n")
    compiler = shutil.which("cc" if language == "c" else "c++")
    assert compiler is not None
    flags = ["-x", language, "-Wall", "-Wextra", "-Werror", "-pedantic"]
    flags.append("-std=c11" if language == "c" else "-std=c++17")
    subprocess.run([compiler, *flags, "t", "-o", "run"], cwd=tmp_path, check=True)
    ran = subprocess.run([tmp_path / "run"], capture_output=True, text=True, check=True)
    assert [int(line) for line in ran.stdout.split()] == want


@pytest.mark.parametrize("interface", ["axi", "stream"])
def test_fusesoc_knows_files_and_targets(interface: str, tmp_path: Path) -> None:
    from fusesoc.capi2.coreparser import Core2Parser
    from fusesoc.core import Core

    path = tmp_path / "seustream.core"
    path.write_text(description.fusesoc(DeviceConfig(name="my own"), interface, "0.3.1.dev4+g12"))
    core: Any = Core(Core2Parser(), str(path))
    assert str(core.name) == f"::seustream_my_own_{interface}:0.3.1"
    for target in ("lint", "sim")[: 1 + (interface == "axi")]:
        flags = {"target": target, "is_toplevel": True}
        files = {file["name"] for file in core.get_files(flags)}
        assert "seustream.v" in files
        assert ("test_seustream.py" in files) == (target == "sim")
        assert core.get_toplevel(flags) == "seustream"


# --- estimate -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "cells", "want"),
    [
        ("xc7", {"LUT1": 1, "LUT6": 10, "FDRE": 7, "FDSE_1": 1, "RAMB18E1": 3, "RAMB36E1": 2, "RAM32M": 2, "BUFG": 1},
         {"LUT": 19, "flip-flop": 8, "block RAM of 18 Kbit": 7}),
        ("ecp5", {"LUT4": 5, "CCU2C": 2, "TRELLIS_FF": 3, "DP16KD": 4, "PFUMX": 9},
         {"LUT": 9, "flip-flop": 3, "block RAM of 18 Kbit": 4}),
        ("ice40", {"SB_LUT4": 5, "SB_DFFESR": 2, "SB_DFF": 1, "SB_RAM40_4K": 6},
         {"LUT": 5, "flip-flop": 3, "block RAM of 4 Kbit": 6}),
    ],
)  # fmt: skip
def test_cells_count_for_what_they_take(
    family: str, cells: dict[str, int], want: dict[str, int]
) -> None:
    counts = counted({"design": {"num_cells_by_type": cells}}, FAMILIES[family])
    assert {resource: count for resource, count in counts.items() if count} == want


def test_rows_of_a_batch_end_with_their_mark() -> None:
    from tests.cosim.queries import Raw, batch

    rows = input_rows(batch([Raw(1, 70, 3, True, (1, 2, 3, 4))]), TINY, mark=9)
    assert rows["kind"].tolist() == [RecordKind.TUPLE, RecordKind.MARK]
    assert rows["mark"].tolist() == [0, 9]
    assert rows[0]["attributes"].tolist() == [1, 2, 3, 4]
