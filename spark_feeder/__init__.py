"""PySpark sources, sinks and jobs that bring tuples to a device and take results back.

Empty so far: it follows the bridge in `cosim/`.
"""
