"""Bad inputs people write, and what to tell them; the parser compares its state with
the states these lead to."""

MISTAKES: dict[str, list[str]] = {
    "a query ends in its windows, such as WINDOW RANGE 5 minutes": [
        "select * from R",
        "select * from R r",
        "select * from R, S",
        "select * from R r, S s",
        "select * from R, S, T",
        "select * from R r, S s, T t",
        "select * from R, S where R.a = S.b",
        "select * from R where a = b",
        "select * from R where a = 1",
        "select * from R where a = 1.5",
        "select * from R where s = 'x'",
        "select * from R where (a = 1)",
        "select a from R group by a",
        "select a from R group by a, b",
        "select a from R group by a having a = 1 and b = 2",
    ],
    "say which streams the columns come from: FROM name": [
        "select * where a = 1 window 1",
        "select a window 1",
    ],
    "name the columns to select, or *": ["select from R window 1"],
    "a stream is written CREATE STREAM name (column type, column type)": [
        "create stream R {a int}",
        "create stream R a int",
        "create stream R (a, b)",
        "create stream R (a int b int)",
        "create stream R ()",
    ],
    "a window is RANGE n unit, ROWS n, n, NOW or UNBOUNDED": [
        "select * from R window",
        "select * from R window range",
        "select * from R window rows",
        "select * from R window range minutes",
    ],
    "WHERE is followed by a condition, such as R.a = S.b": [
        "select * from R where window 1",
        "select * from R where and a = 1 window 1",
    ],
    "remove the comma": [
        "select a, from R window 1",
        "select * from R, window 1",
        "select * from R window 1,",
    ],
    "join conditions stand in WHERE: FROM R, S WHERE R.a = S.b": [
        "select * from R join S on R.a = S.b window 1",
        "select * from R, S join T on R.a = T.b window 1",
        "select * from R, S, T join U on R.a = U.b window 1",
    ],
    "a statement begins with CREATE, DROP, SELECT, REGISTER, SHOW or EXPLAIN": [
        "insert into R values (1)",
        "window 1",
        "(select * from R window 1)",
    ],
}

FORMS: dict[str, str] = {
    "CREATE": "CREATE STREAM name (column type, ...) or CREATE STREAM name AS SELECT ...",
    "DROP": "DROP STREAM name or DROP QUERY name",
    "REGISTER": "REGISTER QUERY name AS SELECT ...",
    "SHOW": "SHOW STREAMS or SHOW QUERIES",
    "EXPLAIN": "EXPLAIN query or EXPLAIN SELECT ...",
    "SELECT": "SELECT items FROM streams [WHERE condition] [GROUP BY columns] [HAVING condition]"
    " WINDOW windows",
}
"""What each statement looks like, by its first word: the hint where no mistake above fits."""
