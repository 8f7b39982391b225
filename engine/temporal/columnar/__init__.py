"""The temporal algebra on columns, for high volume.

batch      insertions in columns
evaluate   APAS expressions over whole columns
operators  the interface of an operator, and the simple operators
join, aggregate, lifetimes   the other operators
"""
