"""Host driver of a device: from rows to rows.

    rows -> order (seustream.engine.stream.merge) -> encode -> device -> complete -> rows

`driver` holds the loop. `encode` makes the device's codes; `rows` and `stores` keep full rows for
as long as a window needs them; `join` joins the tuples the device cannot hold. `complete` drops
repeats, applies residual conditions and projects; `grouping` aggregates over the rows in the
windows; `answers` picks between the two. `stages` runs the queries that read derived streams.
"""
