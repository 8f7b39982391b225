"""SEUSTREAM's front door: `import seustream`, and the command line in `seustream.cli`."""

__version__ = "0.1.0"
