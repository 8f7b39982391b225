"""The WJASIP stream-join processor, and the contract that all rooms share.

Three plain-Python modules are that contract; nothing in them is defined
anywhere else:

* `isa`     the 20-bit instructions, field by field;
* `config`  the build parameters of a device and its limits;
* `device`  the interface of a device to its host: tables it loads, batches it
  accepts, results it returns.

The processor itself is written in Amaranth beside them, one component per file.
"""
