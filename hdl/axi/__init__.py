"""The WJASIP for other people's systems: AXI4-Stream for data, AXI4-Lite for control.

Plain Python, for hosts that write and read what crosses these ports:

records    what travels on the streams: one record a tuple in, one a result out, as C structs
registers  what the control port has, register by register

Gateware:

ports      beats -> records -> the processor's streams, and back
control    registers -> commands, and their answers
top        both around a processor, under the names that tools expect
"""
