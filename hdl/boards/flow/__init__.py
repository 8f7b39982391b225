"""From a board's top to a bitstream, with open tools from PyPI.

synthesis   top -> netlist of the part's cells (yosys)
floorplan   places for the block RAM of each join area
placement   netlist -> placed and routed design, one seed after the other (nextpnr); packing
report      results: cells, RAM, clock, slowest path, as text and JSON
picture     the floor plan as SVG
tools       runs a tool and reads its output line by line
bitstream   the whole flow, cached
"""
