"""The passes from the logical plan to the device's tables; `compiler/pipeline.py` lists them in order."""
