"""Names that other systems have and this one lacks, and what to write instead."""

from __future__ import annotations

_CLOCK = "a row's own time is ts; nothing here asks a clock, so that a run can be repeated"
_TEXT_OF_TIME = (
    "extract(year FROM t) takes a field out of a time, CAST(t AS varchar) gives the whole"
)
_LATER = "add an interval: t + INTERVAL '1' DAY"
_APART = "the difference of two times is an interval: extract(day FROM b - a); of dates, it counts midnights"
_SEVERAL = "several groupings are a UNION ALL of SELECTs"
_ROWS_ELSEWHERE = "a SELECT looks for rows of another stream: CREATE STREAM j AS SELECT * FROM R WHERE EXISTS (SELECT ...), and read j"
_ONE_VALUE = "a column has one value a row; regexp_extract(x, 'pattern') takes a part of a text"

_INSTEAD = {
    ("rowtime",): "ts is the time of a row, as is the column that WITH (time = 'column') names",
    ("mz_now",): "WINDOW RANGE 1 hour at the end keeps the rows of the last hour; nothing here asks a clock",
    ("date_bin",): "GROUP BY TUMBLE(t, 5 minutes), or date_trunc('hour', t)",
    ("tumble_rowtime", "hop_rowtime", "session_rowtime", "window_time"):
        "window_end - 1 is the last instant of the window, and the time of its row",
    ("latest_by_offset",): "last(x)",
    ("earliest_by_offset",): "first(x)",
    ("topk", "topkdistinct"): "QUALIFY row_number() OVER (PARTITION BY k ORDER BY x DESC) <= 3",
    ("now", "getdate", "current_timestamp", "current_date", "current_time", "localtimestamp",
     "proctime", "current_watermark"): _CLOCK,
    ("strftime", "date_format", "to_char", "format_timestamp"): _TEXT_OF_TIME,
    ("date_add", "dateadd", "timestampadd", "date_sub", "add_months"): _LATER,
    ("match_rowtime",): "LAST(v.ts) is the time of the last row of a variable v",
    ("datediff", "date_diff", "timestampdiff", "age", "months_between"): _APART,
    ("unix_timestamp", "to_unixtime", "epoch"): "extract(epoch FROM t), or epoch_ms(t)",
    ("from_unixtime", "to_timestamp_ltz", "timestamp_seconds"): "timestamp_millis(1000 * x)",
    ("strptime", "str_to_date", "parse_timestamp"): "to_timestamp(x, 'yyyy-MM-dd HH:mm:ss')",
    ("date", "to_date", "timestamp", "string", "int", "bigint", "double"): "CAST(x AS type)",
    ("instr", "charindex", "locate", "strpos"): "position(part, text)",
    ("regexp", "regexp_full_match"): "regexp_matches(x, 'pattern')",
    ("rand", "random", "uuid", "gen_random_uuid"): "hash(x) is the same in every run",
    ("iif", "nvl2", "decode"): "if(condition, a, b), or CASE WHEN condition THEN a ELSE b END",
    ("count_if", "countif", "sum_if", "sumif", "avg_if"): "count(*) FILTER (WHERE condition)",
    ("percentile_approx", "approx_percentile", "approx_quantile"): "quantile_cont(x, 0.9), exact",
    ("nth_value",): "QUALIFY row_number() OVER (PARTITION BY k ORDER BY ts) = 2, and a join with it",
    ("rollup", "cube", "grouping", "grouping_id"): _SEVERAL,
    ("explode", "unnest", "posexplode", "json_extract", "get_json_object", "json_value", "struct"):
        _ONE_VALUE,
    ("on",): "QUALIFY row_number() OVER (PARTITION BY k ORDER BY ts) = 1 keeps the first row of each k",
    ("all",): "name the columns",
    ("any", "some"): "one by one: x LIKE 'a%' OR x LIKE 'b%', or x IN (1, 2)",
    ("top",): "LIMIT 3, behind ORDER BY, takes the first rows",
    ("exists",): _ROWS_ELSEWHERE,
    ("symmetric",): "BETWEEN least(x, y) AND greatest(x, y)",
    ("row",): "compare one by one: a = 1 AND b = 2",
}  # fmt: skip

INSTEAD = {name: hint for names, hint in _INSTEAD.items() for name in names}
"""Hints by name, in lower case."""
