"""The engine: what the hardware does not do.

`host/` drives a device: encodes tuples, keeps rows, completes results. A device is
handed in, never imported. `multijoin/` joins streams that live at different sites.
"""
