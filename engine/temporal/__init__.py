"""Temporal algebra: tuples with lifetimes, and what the hardware does not do with them.

elements         the five kinds of tuple, intervals, order
synchroniser     several inputs as one order, tuple at a time, as the specification has it
merge            the same on Arrow tables, for whatever carries volume
collection       what a stateful node stores of an input
aggregates/      the index of sliding aggregates, and its faster structures
compute          expressions as functions of one tuple
operators        the nodes of a network, tuple at a time
schedule         who runs them: the caller's thread, or one each
network          a running network: nodes, edges, sinks
columnar/        the same operators on columns
"""
