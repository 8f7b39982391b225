"""Bad inputs people write, and what to tell them; the parser compares its state with
the states these lead to."""

MISTAKES: dict[str, list[str]] = {
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
    "a window is RANGE n unit, ROWS n, PARTITION BY k ROWS n, SINCE EVERY day, NOW or UNBOUNDED": [
        "select * from R window",
        "select * from R window range",
        "select * from R window rows",
        "select * from R window range minutes",
    ],
    "WHERE is followed by a condition, such as R.a = S.b": [
        "select * from R where and a = 1 window 1",
    ],
    "remove the comma": [
        "select a, from R window 1",
        "select * from R, window 1",
        "select * from R,",
        "select * from R window 1,",
    ],
    "a join says when rows match, with ON or USING: R JOIN S ON R.a = S.b": [
        "select * from R join S window 1",
        "select * from R left join S where a = 1 window 1",
        "select * from R a left join S b where a = 1 window 1",
        "select * from R, S join T window 1",
        "select * from R, S, T join U window 1",
        "select * from R join S",
    ],
    "a statement begins with CREATE, DROP, SELECT, WITH, REGISTER, SHOW, DESCRIBE or EXPLAIN": [
        "insert into R values (1)",
        "window 1",
        "(select * from R window 1)",
    ],
}

FORMS: dict[str, str] = {
    "CREATE": "CREATE STREAM name (column type, ...), CREATE TABLE name (column type, ...) or CREATE STREAM"
    " name AS SELECT ...",
    "DESCRIBE": "DESCRIBE name",
    "DROP": "DROP STREAM name or DROP QUERY name",
    "REGISTER": "REGISTER QUERY name AS SELECT ...",
    "SHOW": "SHOW STREAMS, SHOW QUERIES or SHOW CREATE STREAM name",
    "EXPLAIN": "EXPLAIN query or EXPLAIN SELECT ...",
    "WITH": "WITH name AS (SELECT ...) SELECT ...",
    "SELECT": "SELECT items FROM streams [WHERE condition] [GROUP BY columns] [HAVING condition]"
    " [WINDOW windows]",
}
"""The form of each statement, by its first word: the hint where no mistake above fits."""
