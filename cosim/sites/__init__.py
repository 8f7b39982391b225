"""Joins across sites over Arrow Flight: a site as a service, and the runs that use several.

A run has *processes*: number 0 wants the results, the others are services. Each holds some of the
layout's nodes and moves their messages: between services directly, to and from process 0 by its calls, so
that process 0 needs no address of its own. A frame that cannot be delivered is lost: the node that needs
an answer sends it again.

    process    one process's part of a run: nodes, and the frames for other processes
    service    a site as a Flight service       client     its client
    run        process 0 of a run
"""
