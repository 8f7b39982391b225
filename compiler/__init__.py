"""Query texts become images for the WJASIP.

`xsql/` reads the language, `plan/` holds the logical plan and its passes in one
visible list (`plan/pipeline.py`), `wjasip/` writes programs and images, `explain/`
shows every stage to people.
"""
