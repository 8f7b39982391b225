"""Devices behind the device contract of `seustream.hdl.device`.

* `golden`  what M3Join means: factors and combinations of the tables, no instruction;
* `iss`     the instruction-level model: the same images, executed word by word;
* `verilated`  the RTL itself, compiled into a library;
* `bridge`  the service that puts a device on a socket, and the device that its client sees.

One suite, `tests/cosim/test_device_contract.py`, runs on all of them.
"""
