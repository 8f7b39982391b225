"""The incremental aggregate index: section 8 of StreamAPAS, and its faster structures.

index      what an index is; the list of disjoint elements, which can do everything
suffix     without deletions the value is that of a suffix over te: a structure an aggregate
live       those structures: running total, staircase, two stacks, heap of merged states
choose     which of them for which aggregate and window
"""
