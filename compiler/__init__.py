"""Compiles query texts to images for the WJASIP.

`language/` holds the expressions of all languages. `apas/`, `pattern/` and `xsql/` translate theirs
into the one graph of `logical/`. `plan/` has the passes, which `pipeline.py` lists in order;
`wjasip/` writes programs and images; `explain/` shows every stage to people.
"""
