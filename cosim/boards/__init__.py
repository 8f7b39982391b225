"""A board without hardware: its gateware compiled by Verilator, and a serial port to it.

build    Verilog -> library, cached
shim     the clock loop in C++: bytes to the link, or to the pins, bit by bit
simulated   the library in Python; a line to it
netlist  a board's netlist as Verilog, with models of the part's cells
virtual  a pseudo-terminal with a simulated board behind it
datagrams   a UDP port with one
usb      a USB port with one, on a bus of pyusb's; `usb_host.h` is the host at its wires
"""
