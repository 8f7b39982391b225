"""The bridge: a device with its host driver on a socket (Arrow Flight), and its client.

protocol   the messages, and how each is read with suspicion
errors     what goes wrong, as it crosses the wire
journal    accepted inputs on disk, so that a killed bridge is what it was
results    a query's results by stable offsets, kept until trimmed
loading    query sets as they are loaded, if they are what they say
limits     where a bridge says no, or waits
epochs     which epochs are in, which parts wait for theirs
session    one query set on the device: epochs in, results out, exactly once
runner     what a session's records do, and nothing else
delivery   the results of all queries on their way to readers
living     which queries there are, since when, how they ended
statements the catalogue as a text, and what statements do to it
registry   statements to a session, as records of its journal
quality    latency, selectivity, lag of each query
sources    live sources over TCP, as writers of epochs
channels   what a source sends, line by line
snapshot   a session's state on disk, so that the journal stays short
service    the Flight service: actions, exchanges, limits
lease      the bare device over the wire: server's side and `RemoteDevice`
access     the files that open a bridge to a client
security   addresses, tokens, call rates
metrics    counters as Prometheus text
client     what speaks to all of it
"""
