"""The error raised if the kernels are missing."""

from __future__ import annotations


class KernelsMissing(ImportError):
    """The compiled kernels are older than their sources and cannot be rebuilt here."""
