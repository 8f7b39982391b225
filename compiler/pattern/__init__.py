"""The PATTERN front end: complex event queries and MATCH_RECOGNIZE in one representation.

`pattern.lark` and `match_recognize.lark` are the grammars, `expressions.lark` their common part.
`tree` holds the nodes of the syntax tree, `parse` builds them from text, `analyse` and `recognize`
translate them to the representation in `ir`, which is all that the engine sees.
"""
