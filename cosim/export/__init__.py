"""Exports the core as a folder for other tools.

core         the Verilog, of either interface
words        an image as writes to the control port
vectors      batches, and the golden model's results for them
description  register map, C header and FuseSoC file, out of the tables of `seustream.hdl.axi`
bench        the test bench of the folder: runs there by itself, and imports nothing of this package
estimate     cells and memories of a family, by yosys
"""
