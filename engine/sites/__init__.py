"""Joins of streams that live at different sites, planned by synopses.

A site keeps its stream. When it closes a block of rows it tells the centre how many rows there are
of which key; the centre answers which keys can join anything at all and in which order the block
should visit the other sites; only those rows travel.

    model      the join, rows, blocks        costs      unit costs between nodes
    keys       one form and hash of keys     synopsis   counts by key, exact or nearly
    sizes      filter, sizes of joins        planner    orders: exact and heuristic
    messages   what nodes say                outbox     repeated until answered
    site, centre, sink                       the roles, without thread or clock
    node       roles on one machine          store      a site's rows, in memory
    device_store   a site's rows on a device
    transport  a simulated network           ledger     what messages cost
    shared, shared_network                   the same for several queries
    weather    messages late, lost, repeated
    wire, process, cluster   nodes as processes over sockets
    explain    orders and costs, for people  queries, where   X-SQL queries
    adaptive_centre, adaptive_site, hub      planned joins or a hub, among nodes
    batches    micro-batches as blocks, numbered for good
    needs, prefilter   the filter before a single device
    strategy   planned joins or a hub: what may be spent
    setting, lockstep, lottery, baselines, adaptive     the experiment
"""
