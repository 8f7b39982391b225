"""The APAS front end: query text and schemas in, a network of temporal operators out.

apas.lark, parse, syntax   text to syntax tree
types, values              types, casts, operators, and what they compute
tree, layout               attribute trees and where their leaves stand in a tuple
functions                  libraries of functions a query may call
expressions, symbols       what a name means; typed expressions
build, analyse             subqueries: inputs, stream functions, conditions, assignments
aggregates                 the cut of a select in two phases
network, plan              the nodes of the network, each edge with the attributes it carries
compile                    all of it, top to bottom
"""
