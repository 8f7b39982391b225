"""Complex event matching: what runs the patterns the compiler describes.

`meaning` says what a query's parts require of events; `versions`, `buffer`, `automaton` and `nfa`
are the automaton with a versioned shared buffer, `lists` and `optiseq` the search over ordered
lists, `columns` and `vector` the same search on whole columns (the fast path), `compact` the
enumeration of plain subsets, `planner` picks, and `operator` puts time, keys and skipping around
any of them. `output` makes rows, `explain` and `trace` make pictures.
"""
