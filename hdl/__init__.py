"""The WJASIP stream-join processor, and the contract everyone shares.

Three plain-Python modules are that contract; nothing in them is written down
anywhere else:

* `isa`     the 20-bit instructions, field by field;
* `config`  the build parameters of a device and its limits;
* `device`  what a device is to its host: tables it loads, batches it takes,
  results it gives.

The processor itself, one component a file, is written in Amaranth beside them.
"""
