"""Builds the libraries of configurations ahead of time: `python -m seustream.cosim.verilated default3`."""

from __future__ import annotations

import sys

from seustream.cosim.verilated.build import library
from seustream.hdl.config import CONFIGURATIONS

if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(library(CONFIGURATIONS[name]))
