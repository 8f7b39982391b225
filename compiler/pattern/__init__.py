"""PATTERN front end: complex event queries, and MATCH_RECOGNIZE, as one representation.

`pattern.lark` and `match_recognize.lark` are the grammars, `expressions.lark` what they share;
`tree` holds the nodes they make, `parse` goes from text to nodes, `bind` and `recognize` from
nodes to the representation in `ir`, which is all the engine sees.
"""
