"""What can go wrong before a kernel runs."""

from __future__ import annotations


class KernelsMissing(ImportError):
    """The compiled kernels are older than their sources and can not be built here."""
