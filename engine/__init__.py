"""The engine: what the hardware does not do.

`host/` drives a device: encodes tuples, keeps rows, completes results. A device is
handed in, never imported. `temporal/` is the algebra of streams of intervals, and the merge of all
streams. `pattern/` matches sequences of
events; `sites/` joins streams that live at different sites.
"""
