"""The query supervisor: named queries over the feed's streams, their lives, logs and messages.

history      append-only logs, one a query, kept after its end
supervisor   register, list, stop; special messages and who answers them
"""
