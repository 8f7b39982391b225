"""X-SQL front end: text, statements, tokens, syntax tree.

`xsql.lark` is the grammar, `tree` the nodes it makes, `parse` the way from one to the
other, with errors named from example bad inputs in `mistakes`.
"""
