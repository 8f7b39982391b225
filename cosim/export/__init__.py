"""The core as a folder for other people's tools.

core         the Verilog, of either interface
words        an image as writes to the control port
vectors      batches, and what the golden model makes of them
description  register map, C header and FuseSoC file, out of the tables of `seustream.hdl.axi`
bench        the test bench of the folder: runs there by itself, and imports nothing of this package
estimate     cells and memories of a family, by yosys
"""
