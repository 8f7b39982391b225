"""Stages as pictures: self-contained SVG, drawn without any library."""
