"""The engine: everything that the hardware does not do.

`host/` drives a device: encodes tuples, keeps rows, completes results. A device is passed in, never
imported. `stream/` holds the parts that all operators share, among them the merge of all streams.
`relational/` has the operators of SELECT over whole streams, `temporal/` the algebra of streams of
intervals. `pattern/` matches sequences of events; `sites/` joins streams that live at different
sites.
"""
