"""Logical plan and the passes over it; `pipeline.py` lists them in order."""
