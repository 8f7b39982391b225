"""The bridge: a device with its host driver on a socket (Arrow Flight), and its client.

protocol   the messages, and how each is validated
errors     the errors, as they cross the wire
journal    accepted inputs on disk, so that a killed bridge resumes where it was
results    a query's results by stable offsets, kept until trimmed
loading    query sets as they are loaded, checked against their manifests
limits     where a bridge refuses, or waits
epochs     which epochs are in, which parts wait for theirs
session    one query set on the device: epochs in, results out, exactly once
runner     the effect of a session's records, and nothing else
delivery   the results of all queries on their way to readers
living     which queries there are, since when, how they ended
statements the catalogue as a text, and the effect of statements on it
registry   statements to a session, as records of its journal
quality    latency, selectivity, lag of each query
sources    live sources over TCP, as writers of epochs
channels   what a source sends, line by line
snapshot   a session's state on disk, so that the journal stays short
service    the Flight service: actions, exchanges, limits
lease      the bare device over the wire: server's side and `RemoteDevice`
access     the files that give a client access to a bridge
security   addresses, tokens, call rates
metrics    counters as Prometheus text
client     the client of all these services
"""
