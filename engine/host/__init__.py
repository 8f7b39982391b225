"""Host driver of a device: from rows to rows.

    rows -> order (seustream.engine.stream.merge) -> encode -> device -> complete -> rows

`driver` holds the loop; `encode` makes the device's codes, `rows` and `stores` keep full rows for
as long as a window needs them, `software` joins the tuples the device cannot hold, `complete` drops
repeats, applies residual conditions and projects, `grouping` aggregates over what the windows hold,
`answers` picks between the two, `evaluate` computes expressions. `stages` runs what reads derived
streams.
"""
