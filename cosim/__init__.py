"""Devices behind the device contract of `hdl.device`.

* `golden`  what M3Join means: factors and combinations of the tables, no instruction;
* `iss`     the instruction-level model: the same images, executed word by word.

To come: `verilated`, the RTL itself under a simulator, and `bridge`, the service that
puts a device on a socket. One suite, `tests/cosim/test_device_contract.py`, runs on all.
"""
