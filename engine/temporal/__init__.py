"""Temporal algebra: tuples with lifetimes, and the operations that the hardware does not do.

stream       an APAS query as an operator of the graph: a network of operators, run step by step
columnar/    the operators, on columns
aggregates/  the index of sliding aggregates, and its faster structures
library      calls to functions, windows and indexes of users
elements     the five kinds of element a source sends, intervals, order
values       values as sources send them, in JSON
saving       state as plain values for a snapshot
"""
