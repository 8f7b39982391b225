"""The core of all operators: columns of rows, and what is computed on them.

`schema` gives the Arrow type of each type of the languages; `evaluate` computes expressions by column.
"""
