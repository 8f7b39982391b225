"""Temporal algebra: tuples with lifetimes, and what the hardware does not do with them.

elements      the five kinds of tuple, intervals, order
synchroniser  several inputs as one order, tuple at a time, as the specification has it
merge         the same on Arrow tables, for whatever carries volume
"""
