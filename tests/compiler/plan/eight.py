"""The eight queries of the worked example (section 7 of the specification)."""

from __future__ import annotations

import functools

from seustream.compiler.pipeline import Compilation, Options, compile_text

EIGHT = """\
CREATE STREAM R (a int, b int, c int);
CREATE STREAM S (d int, e int);
CREATE STREAM T (f int, g int);
SELECT * FROM R, S WHERE R.a = S.d WINDOW RANGE 100;
SELECT * FROM R, S, T WHERE R.a = S.d AND S.e = T.f WINDOW RANGE 200;
SELECT * FROM S, T WHERE S.e = T.f WINDOW RANGE 100;
SELECT * FROM R, S WHERE R.b > S.e WINDOW RANGE 200;
SELECT * FROM R, S WHERE R.a = S.d OR R.c = S.e WINDOW RANGE 100;
SELECT * FROM R, S WHERE R.a = S.d AND R.c = S.e WINDOW RANGE 200;
SELECT * FROM R, S, T WHERE R.a = S.d OR S.e = T.f WINDOW RANGE 100;
SELECT * FROM R, S, T WHERE (R.c = S.e OR S.e = T.f) AND R.a = S.d WINDOW RANGE 300;
"""


@functools.cache
def compiled_eight(plan: str) -> Compilation:
    return compile_text(EIGHT, options=Options(plan=plan))
