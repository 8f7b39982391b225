"""Temporal algebra: tuples with lifetimes, and what the hardware does not do with them.

stream       an APAS query as an operator of the graph: a network of operators, stepped through
columnar/    the operators, on columns
aggregates/  the index of sliding aggregates, and its faster structures
library      calls into functions, windows and indexes of users
merge        several streams as one order, on Arrow tables; the gate of every graph
elements     the five kinds of element a source sends, intervals, order
values       values as sources send them, in JSON
saving       state as plain values for a snapshot
"""
