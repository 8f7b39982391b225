"""Complex event matching: runs the patterns that the compiler describes.

`meaning` defines what a query's parts require of events. `versions`, `buffer`, `automaton` and
`nfa` are the automaton with a versioned shared buffer; `lists` and `optiseq` are the search over
ordered lists. `columns`, `vector`, `reach`, `following` and `fill` run the same search on whole
columns (the fast path), and `compact` enumerates plain subsets. `planner` decides which matchers
can run a query, `sampling` and `choice` which is cheapest for an epoch, and `operator` adds time,
keys and skipping to any of them. `output` makes rows, `state` snapshots, and `explain` and `trace`
the views for people.
"""
