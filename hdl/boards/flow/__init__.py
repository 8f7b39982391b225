"""From a board's top to a bitstream, with open tools from PyPI.

synthesis   top -> netlist of the part's cells (yosys)
floorplan   a place for the block RAM of each join area
placement   netlist -> placed and routed design, one seed after the other (nextpnr); packing
report      what came of it: cells, RAM, clock, slowest path, as text and JSON
picture     the same as SVG
tools       runs a tool, line by line
bitstream   all of it, cached
"""
