"""Joins of streams that live at different sites, planned by synopses.

A site keeps its stream. When it closes a block of rows, it sends the centre the number of rows of
each key. The centre answers with the keys that can join anything at all, and with the order in
which the block should visit the other sites. Only the rows with these keys travel.
`seustream.cosim.sites` runs nodes as services.

    model      the join, rows, blocks, combinations          keys    one form and hash of keys
    costs      unit costs between nodes                      errors  the errors of all of them
    synopsis   counts by key, filter, sizes of joins         planner orders: exact and heuristic
    messages   a class per message: fields, receiver, reply  codec   messages and layouts as bytes
    outbox     messages repeated until answered              explain decisions, for people
    site, centre, sink   the roles, without thread or clock
    auto, hub, account   the roles where a hub may be cheaper, and the limit on spending
    layout     the settings that all nodes share             node    the roles on one machine
    shared     layout and node of several queries            store, device_store  a site's rows, in memory or on a device
    query      X-SQL queries as joins, tables as blocks
    exchange   the rows that are in a combination, for the graph
    needs, prefilter     the filter before a single device
"""
