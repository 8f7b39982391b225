"""Query sets to explain; each has a feature that the others lack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from seustream.compiler.explain import explain
from seustream.compiler.pipeline import PLANS, STAGES, Compilation, Options, compile_text

EIGHT = Path(__file__).parents[3].joinpath("examples/eight/eight.xsql").read_text(encoding="utf-8")

STREAMS = """
CREATE STREAM R (a int, b int, c int, note varchar(20), wide double precision);
CREATE STREAM S (d int, e int, at timestamp, note varchar(20), big bigint);
CREATE STREAM T (f int, g int);
"""

PROGRAMS: dict[str, str] = {
    "eight": EIGHT,
    "residuals": STREAMS
    + """
REGISTER QUERY liked AS SELECT r.a, s.e AS what FROM R r, S s
  WHERE r.a = s.d AND r.note LIKE 'ab%' AND r.b + 1 > s.e AND r.note = s.note
  WINDOW RANGE 5 minutes, ROWS 10;
""",
    "selections": STREAMS
    + """
REGISTER QUERY picked AS SELECT * FROM R, S
  WHERE R.a = S.d AND R.b > 5 AND (R.c < 3 OR R.c > 7) AND S.e = 4 WINDOW ROWS 4000;
REGISTER QUERY crossed AS SELECT * FROM R, T WHERE R.b > 5 WINDOW NOW;
""",
    "self-join": STREAMS + "SELECT x.a, y.b FROM R x, R y WHERE x.a = y.b WINDOW UNBOUNDED;",
    "host alone": STREAMS
    + """
CREATE STREAM D AS SELECT R.a AS x FROM R, S WHERE R.a = S.d WINDOW 10;
REGISTER QUERY single AS SELECT a FROM R WHERE b > 3 WINDOW RANGE 30 s;
REGISTER QUERY never AS SELECT * FROM R, S WHERE R.a < R.a WINDOW NOW;
REGISTER QUERY derived AS SELECT * FROM D, S WHERE D.x = S.d WINDOW NOW;
""",
    "grouped": STREAMS
    + """
REGISTER QUERY grouped AS SELECT S.e, count(*) AS n FROM R, S WHERE R.a = S.d
  GROUP BY S.e HAVING count(*) > 2 WINDOW UNBOUNDED, ROWS 7;
EXPLAIN grouped;
""",
    "simplified": STREAMS
    + """
REGISTER QUERY n AS SELECT * FROM R, S
  WHERE NOT (R.a <> S.d OR NOT (S.d = R.a)) AND TRUE AND S.note IS NOT NULL WINDOW 3;
""",
    "four streams": STREAMS
    + """
CREATE STREAM U (h int, i int);
REGISTER QUERY "chain of four" AS SELECT * FROM R, S, T, U
  WHERE R.a = S.d AND S.e = T.f AND T.g = U.h AND R.b > 4 WINDOW 10;
REGISTER QUERY either AS SELECT * FROM R, S, T WHERE R.a = S.d AND (S.e = T.f OR T.g < 5) WINDOW 9;
""",
    "long names": """
CREATE STREAM PositionAndSpeedReports (vehicleIdentifier int, highway int);
CREATE STREAM AccidentsReportedByPolice (accidentIdentifier int, highway int);
REGISTER QUERY accidentsAheadOfVehicle AS
  SELECT * FROM PositionAndSpeedReports, AccidentsReportedByPolice
  WHERE PositionAndSpeedReports.highway = AccidentsReportedByPolice.highway
    AND PositionAndSpeedReports.vehicleIdentifier <> AccidentsReportedByPolice.accidentIdentifier
    AND PositionAndSpeedReports.vehicleIdentifier >= 100000 WINDOW RANGE 10 minutes;
""",
    "strange text": STREAMS
    + "REGISTER QUERY \"b & c\" AS SELECT * FROM R, S WHERE R.a = S.d AND R.note = '\x1b<&>' WINDOW 1;",
    "too many terms": STREAMS
    + "SELECT * FROM R, S WHERE R.a = S.d AND "
    + " AND ".join(f"(R.b = {n} OR S.e = {n})" for n in range(7))
    + " WINDOW NOW;",
    "streams alone": STREAMS,
    "empty": "",
}

CASES = [(name, plan) for name in PROGRAMS for plan in PLANS]


def compiled(name: str, plan: str = "cost", stage: str = STAGES[-1]) -> Compilation:
    return compile_text(PROGRAMS[name], f"{name}.xsql", Options(plan=plan), stage)


def facts(name: str, stage: str | None, plan: str = "cost", query: str | None = None) -> Any:
    return json.loads(explain(compiled(name, plan), stage, "json", query))
