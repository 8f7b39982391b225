"""The studio: a page on which users type a query and watch their own tuples pass through the processor.

compiled  what the page shows of a text: problems, stages, provenance
data      rows from a seed, for a text that has none
machine   a run of a device, tuple by tuple
trace     a device's work on one of them
patterns  a pattern, event by event
intervals an APAS query, moment by moment
sites     a join across sites, message by message
waves     the signals of the RTL over a run
boards    bitstreams and what is plugged in
server    serves the page and answers its requests

It has no engine of its own: everything it shows is what the command line runs.
"""
