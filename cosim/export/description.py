"""Writes files that describe the core with AXI ports to other tools, all from the same tables."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator

from seustream.cosim.export.core import TOP
from seustream.hdl.axi.records import Record, RecordKind, input_record, output_record
from seustream.hdl.axi.registers import ADDRESS_WIDTH, MAGIC, REGISTERS, Bits
from seustream.hdl.config import DeviceConfig
from seustream.hdl.control_words import ControlOperation, Counter, Target, Verdict

_WORD = 32


def rdl() -> str:
    """Returns the register map in SystemRDL."""
    lines = [
        "// Registers of the SEUSTREAM core's control port. Generated; not to be edited.",
        f"addrmap {TOP} {{",
        '  name = "SEUSTREAM stream-join processor";',
        f"  default regwidth = {_WORD};",
        f"  default accesswidth = {_WORD};",
    ]
    for register in REGISTERS:
        lines += ["  reg {", f'    desc = "{register.about}";']
        whole = (Bits("VALUE", 0, _WORD, register.about),)
        for bits in register.bits or whole:
            # The core writes what the host does not.
            hardware = "w" if register.access == "r" else "r"
            lines.append(
                f'    field {{ sw = {register.access}; hw = {hardware}; desc = "{bits.about}"; }}'
                f" {bits.name}[{bits.low + bits.width - 1}:{bits.low}];"
            )
        lines.append(f"  }} {register.name} @ {register.offset:#x};")
    return "\n".join([*lines, "};"]) + "\n"


def header(config: DeviceConfig) -> str:
    """Returns registers, commands and records for C and C++."""
    return "\n".join(_header(config)) + "\n"


def _header(config: DeviceConfig) -> Iterator[str]:
    yield f"/* SEUSTREAM core with AXI ports, configuration {config.name}. Generated; not to be edited. */"
    yield from ("#ifndef SEUSTREAM_H", "#define SEUSTREAM_H", "", "#include <stdint.h>", "")
    yield "/* Registers: offsets in bytes from the base of the control port. */"
    yield f"#define SEUSTREAM_MAGIC 0x{MAGIC:08x}u"
    yield f"#define SEUSTREAM_SPAN 0x{1 << ADDRESS_WIDTH:x}u"
    for register in REGISTERS:
        name = f"SEUSTREAM_{register.name}"
        yield f"#define {name} 0x{register.offset:02x}u /* {register.access}: {register.about} */"
        for bits in register.bits:
            mask = ((1 << bits.width) - 1) << bits.low
            yield f"#define {name}_{bits.name}_SHIFT {bits.low}"
            yield f"#define {name}_{bits.name}_MASK 0x{mask:08x}u /* {bits.about} */"
    yield from ("", "/* A command, as COMMAND takes it. */")
    yield "static inline uint32_t seustream_command(uint32_t operation, uint32_t target, uint32_t unit,"
    yield "                                         uint32_t address) {"
    yield "  return operation << SEUSTREAM_COMMAND_OPERATION_SHIFT | target << SEUSTREAM_COMMAND_TARGET_SHIFT |"
    yield "         unit << SEUSTREAM_COMMAND_UNIT_SHIFT | address << SEUSTREAM_COMMAND_ADDRESS_SHIFT;"
    yield "}"
    for kind in (ControlOperation, Target, Verdict, Counter, RecordKind):
        yield from ("", *_constants(kind))
    for about, record in (
        ("Records in: a tuple, or a mark.", input_record(config)),
        ("Records out: a result, a tuple handed over, or the mark that came in.", output_record(config)),
    ):  # fmt: skip
        yield from ("", f"/* {about} */", *_struct(record))
    yield from ("", "#endif")


def _constants(kind: type[enum.IntEnum]) -> Iterator[str]:
    prefix = "_".join(re.findall("[A-Z][a-z]+", kind.__name__)).upper()
    yield f"enum seustream_{prefix.lower()} {{"
    yield from (f"  SEUSTREAM_{prefix}_{each.name} = {int(each)}," for each in kind)
    yield "};"


def _struct(record: Record) -> Iterator[str]:
    yield f"struct {record.name} {{"
    end = gaps = 0
    for member in record.members:
        if member.at > end:
            yield f"  uint8_t unused{gaps}[{member.at - end}];"
            gaps += 1
        count = f"[{member.count}]" if member.count > 1 else ""
        yield f"  uint{8 * member.bytes}_t {member.name}{count}; /* {member.about} */"
        end = member.at + member.bytes * member.count
    if end < record.bytes:
        yield f"  uint8_t unused{gaps}[{record.bytes - end}];"
    yield "};"
    checked = f"sizeof(struct {record.name}) == {record.bytes}"
    yield "#ifdef __cplusplus"
    yield f'static_assert({checked}, "size of a record");'
    yield "#else"
    yield f'_Static_assert({checked}, "size of a record");'
    yield "#endif"


def fusesoc(config: DeviceConfig, interface: str, version: str) -> str:
    """Returns the folder as a FuseSoC core: `fusesoc --cores-root . run --target lint NAME`."""
    name = re.sub(r"\W", "_", config.name)
    number = re.match(r"\d+(\.\d+)*", version)
    lines = [
        "CAPI=2:",
        f"name: ::seustream_{name}_{interface}:{number[0] if number else '0'}",
        f"description: SEUSTREAM stream-join processor, configuration {config.name}",
        "filesets:",
        "  rtl:",
        "    files: [seustream.v]",
        "    file_type: verilogSource",
    ]
    if interface == "axi":
        lines += [
            "  bench:",
            "    files:",
            "      - test_seustream.py: {file_type: user, copyto: test_seustream.py}",
            "      - vectors.json: {file_type: user, copyto: vectors.json}",
        ]
    lines += [
        "targets:",
        "  default:",
        "    filesets: [rtl]",
        "  lint:",
        "    filesets: [rtl]",
        f"    toplevel: {TOP}",
        "    flow: lint",
        "    flow_options: {tool: verilator, verilator_options: [-Wall]}",
    ]
    if interface == "axi":
        lines += [
            "  sim:",
            "    filesets: [rtl, bench]",
            f"    toplevel: {TOP}",
            "    flow: sim",
            "    flow_options:",
            "      tool: verilator",
            "      cocotb_module: test_seustream",
            "      timescale: 1ns/1ps",
            "      verilator_options: [--no-timing]",
        ]
    return "\n".join(lines) + "\n"
