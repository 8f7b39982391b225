"""Query texts for the tests of commands, and the names of the files in a folder."""

from __future__ import annotations

from pathlib import Path

STREAMS = "CREATE STREAM R (a int, b int);\nCREATE STREAM S (d int, name varchar(9));\n"
JOIN = "SELECT * FROM R, S WHERE R.a = S.d WINDOW RANGE 10;\n"
TICKS = "CREATE STREAM t (type varchar, x int);\n"
JOINED = (
    "CREATE STREAM r (k int, v int);\n"
    "CREATE STREAM s (k int, w int, kind varchar);\n"
    "CREATE STREAM rs AS SELECT r.k, r.v, s.w, s.kind FROM r, s WHERE r.k = s.k WINDOW RANGE 10 s;\n"
)
TWICE = (
    "REGISTER QUERY twice AS PATTERN up x; up y FROM rs TYPE BY kind"
    " WHERE x.k = y.k AND y.w > x.w WITHIN 1 min RETURN x.k, x.w, y.w AS w2, y.ts;\n"
)


def names(directory: str = ".") -> list[str]:
    return sorted(str(path) for path in Path(directory).iterdir())
