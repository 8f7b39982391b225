"""The incremental aggregate index: section 8 of StreamAPAS, and its faster structures.

index      the index interface; the list of disjoint elements, which supports everything
suffix     without deletions the value is that of a suffix over te: one structure per aggregate
live       these structures: running total, staircase, two stacks, heap of merged states
choose     picks one of them for an aggregate and a window
"""
