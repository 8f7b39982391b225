"""The temporal algebra on columns: what carries volume.

spans     aggregates over tuples that each count for a span of points; nothing is per tuple
evaluate  APAS expressions over whole columns
network   an APAS network a batch at a time
"""
