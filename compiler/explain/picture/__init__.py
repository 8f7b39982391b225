"""Draws stages as self-contained SVG pictures, without any library."""
