"""The X-SQL front end: text, statements, tokens, syntax tree.

`xsql.lark` is the grammar and `tree` holds its nodes, which `parse` builds from text. `mistakes`
names syntax errors from examples of bad input.
"""
