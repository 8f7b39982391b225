"""The RTL as a device: the processor of `hdl`, compiled by Verilator into a shared library.

build    configuration -> library, cached
shim     the clock loop in C++ and its C interface
library  the interface in Python
bits     columns <-> the payloads of the processor's streams
device   the device contract
"""
