"""Complex event matching: what runs the patterns the compiler describes.

`meaning` says what a query's parts require of events; `versions`, `buffer`, `automaton` and `nfa`
are the automaton with a versioned shared buffer, `lists` and `optiseq` the search over ordered
lists, `columns`, `vector`, `reach`, `following` and `fill` the same search on whole columns (the fast
path), `compact` the enumeration of plain subsets. `planner` says which can run a query, `sampling`
and `choice` which is cheapest for an epoch, and `operator` puts time, keys and skipping around any
of them. `output` makes rows, `state` snapshots, `explain` and `trace` what people look at.
"""
