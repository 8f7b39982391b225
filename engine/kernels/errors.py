"""The error of kernels that are not there."""

from __future__ import annotations


class KernelsMissing(ImportError):
    """The compiled kernels are older than their sources and can not be built here."""
