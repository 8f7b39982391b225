"""The WJASIP as a core for other systems: AXI4-Stream for data, AXI4-Lite for control.

Plain Python, also for hosts that use these ports:

records    records on the streams: one per tuple in, one per result out, as C structs
registers  registers of the control port

Gateware:

ports      beats -> records -> the processor's streams, and back
control    registers -> commands, and their answers
top        both around a processor, with the port names that tools expect
"""
