"""`seustream.connect` gives the results of `run`, in this process and behind a bridge."""

from __future__ import annotations

import contextlib
import datetime
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import seustream as ss
from seustream.cosim.bridge.client import BridgeClient
from seustream.cosim.bridge.protocol import Statement
from tests.cosim.bridge.serving import bridge

QUERIES = """
CREATE STREAM R (a int, b int);
CREATE STREAM S (a int);
REGISTER QUERY pairs AS SELECT R.b, S.a FROM R, S WHERE R.a = S.a WINDOW RANGE 40;
REGISTER QUERY large AS SELECT b FROM R WHERE b > 50 WINDOW NOW;
"""
ZONE = pa.timestamp("ms", "UTC")


def rows(of: str) -> pa.Table:
    ts = pa.array(range(0, 600, 3), pa.int64()).cast(ZONE)
    keys = [i * 7 % 11 for i in range(200)]
    table = pa.table({"ts": ts, "a": keys})
    return table if of == "S" else table.append_column("b", pa.array([i % 97 for i in range(200)]))


def collected(con: ss.LiveQueries) -> dict[str, Counter[tuple[object, ...]]]:
    """Returns all results; rows are pushed in parts of different sizes for the two streams."""
    found: dict[str, Counter[tuple[object, ...]]] = {"pairs": Counter(), "large": Counter()}
    r, s = rows("R"), rows("S")
    con.sql(QUERIES)
    for start in range(0, 200, 50):
        con.push("R", r.slice(start, 50))
        con.push("s", s.slice(start, 30).to_pandas())
        for name, part in con.results():
            found[name].update(part.rows())
        con.push("S", s.slice(start + 30, 20))
    for name, part in con.finish():
        found[name].update(part.rows())
    return found


def wanted() -> dict[str, Counter[tuple[object, ...]]]:
    found = ss.run(QUERIES, R=rows("R"), S=rows("S"))
    return {name: Counter(one.rows()) for name, one in found.items()}


def test_in_this_process() -> None:
    with ss.connect() as con:
        assert collected(con) == wanted()
    assert all(wanted().values())


MANY = """
CREATE STREAM R (a int);
CREATE STREAM S (a int);
REGISTER QUERY pairs AS SELECT R.a, S.a AS b FROM R, S WINDOW RANGE 3 s;
REGISTER QUERY all_of_r AS SELECT a FROM R WINDOW NOW;
"""


def numbered(first: int) -> pa.Table:
    return pa.table({"ts": range(first, first + 1_100), "a": range(first, first + 1_100)})


@pytest.mark.parametrize("between", ["nothing", "push", "end", "statement", "finish", "leave"])
def test_many_results_of_a_step_come_in_parts(between: str) -> None:
    """What is done before the last part leaves no result out and gives none twice."""
    found: dict[str, list[pa.Table]] = {"pairs": [], "all_of_r": []}
    parts = 0
    with ss.connect() as con:
        con.sql(MANY)
        for stream in "RS":
            con.push(stream, numbered(0))
        for name, part in con.results():
            found[name].append(part.arrow())
            assert not con._found or between != "nothing", "they wait to be asked for"
            parts += name == "pairs"
            if sum(map(len, found.values())) > 1:
                continue
            if between == "push":
                con.push("R", numbered(1_100))
            elif between == "end":
                con.watermark("R", 1_500)
                con.push("S", numbered(1_100))
            elif between == "statement":
                con.sql("REGISTER QUERY more AS SELECT a FROM S WHERE a < 0 WINDOW NOW")
            elif between in ("finish", "leave"):
                break
        for read in (con.results, con.finish) if between == "leave" else (con.finish,):
            for name, part in read():
                found[name].append(part.arrow())
                parts += name == "pairs"
    assert parts > 1
    given = {"R": [numbered(0)], "S": [numbered(0)]}
    if between in ("push", "end"):
        given["R" if between == "push" else "S"].append(numbered(1_100))
    wanted = ss.run(MANY, **{name: pa.concat_tables(some) for name, some in given.items()})
    for name, some in found.items():
        table = pa.concat_tables(some)
        order = [(column, "ascending") for column in table.column_names]
        assert table.sort_by(order) == wanted[name].arrow().sort_by(order)


def test_behind_a_bridge(tmp_path: Path) -> None:
    with bridge(tmp_path, token="secret") as (_, url):
        with pytest.raises(ss.Error, match="token"):
            ss.connect(url, token="wrong")
        with ss.connect(url, token="secret") as con:
            assert collected(con) == wanted()
            assert "pairs" in str(con.explain("pairs"))


def queries_come_and_go(con: ss.LiveQueries) -> list[tuple[str, list[tuple[object, ...]]]]:
    con.sql(QUERIES)
    con.push("R", {"ts": [1], "a": [1], "b": [90]})
    con.watermark("R", 2)
    con.watermark("S", 2)
    first = [(name, part.rows()) for name, part in con.results()]
    con.sql(
        "DROP QUERY large; REGISTER QUERY sums AS SELECT R.b + S.a AS c FROM R, S WHERE R.a = S.a WINDOW RANGE 40"
    )
    with pytest.raises(ss.Error) as caught:
        con.sql("SELECT x FROM R WINDOW NOW")
    assert (caught.value.line, caught.value.column) == (1, 8)
    con.push("S", {"ts": [2], "a": [1]})
    con.push("R", {"ts": [3], "a": [2], "b": [99]})
    return first + [(name, part.rows()) for name, part in con.finish()]


def test_queries_come_and_go(tmp_path: Path) -> None:
    """A new query sees the rows in the windows; a text with a mistake changes nothing."""
    later = [("pairs", [(90, 1, 1, 2)]), ("sums", [(91, 1, 2)])]
    with ss.connect() as con:
        found = queries_come_and_go(con)
    assert sorted(found) == [("large", [(90, 1, 1)]), *later]
    with bridge(tmp_path) as (_, url), ss.connect(url) as con:
        found = queries_come_and_go(con)
    assert sorted(found) == [("large", [(90, 1, 1)]), *later]


def test_a_stream_that_rows_create_and_a_watermark() -> None:
    at = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    with ss.connect() as con:
        con.push("R", [{"ts": at, "a": 1}])
        con.push("S", [{"ts": at, "a": 0}])
        con.sql("REGISTER QUERY q AS SELECT R.a, S.a FROM R, S WHERE R.a = S.a WINDOW RANGE 1 min")
        con.push("R", [{"ts": at, "a": 1}])
        con.push("S", [{"ts": at, "a": 1}])
        assert list(con.results()) == []
        for stream in ("R", "S"):
            con.watermark(stream, at + datetime.timedelta(milliseconds=1))
        ((name, part),) = con.results()
        assert (name, part.rows()) == ("q", [(1, 1, at, at)])
        assert list(con.results()) == []


def test_mistakes() -> None:
    con = ss.connect()
    with pytest.raises(ss.Error, match="there are no queries yet"):
        con.explain()
    con.sql(QUERIES)
    with pytest.raises(ss.Error, match="there is no query pears") as caught:
        con.explain("pears")
    assert caught.value.hint == "did you mean pairs?"
    with pytest.raises(ss.Error, match="there is no stream Q"):
        con.watermark("Q", 5)
    con.sql("CREATE STREAM J AS SELECT b FROM R WINDOW NOW; SELECT b FROM J WINDOW NOW")
    with pytest.raises(ss.Error, match="J is defined by a query"):
        con.push("J", {"ts": [1], "b": [1]})
    list(con.finish())
    with pytest.raises(ss.Error, match="the streams have ended"):
        con.push("R", {"ts": [1], "a": [1], "b": [1]})
    con.close()
    with pytest.raises(ss.Error):
        ss.connect("grpc://127.0.0.1:1")


def test_rows_that_are_refused_leave_no_stream_behind() -> None:
    with ss.connect() as con:
        with pytest.raises(ss.Error, match="column ts has type double"):
            con.push("R", {"ts": [1.5], "a": [1]})
        assert con.sql("SHOW STREAMS") is None
        con.push("R", {"ts": [1], "a": [1.5]})
        con.sql("SELECT a FROM R WINDOW NOW")


@pytest.mark.parametrize(
    "call",
    [
        lambda: ss.run("SELECT a FROM R", R="missing.csv.gz"),
        lambda: ss.run("SELECT a FROM R", R="a\0.csv"),
        lambda: ss.run(Path("a\0b"), R={"ts": [1], "a": [1]}),
        lambda: ss.connect("grpc://127.0.0.1:1", token=5),  # type: ignore[arg-type]
        lambda: ss.connect("grpc://a b:1"),
        lambda: ss.connect(writer=b"w"),  # type: ignore[arg-type]
    ],
)
def test_what_is_raised_is_an_error_of_ours(call: Callable[[], object]) -> None:
    with pytest.raises(ss.Error):
        call()


TABLE = """CREATE STREAM R (a int, b int); CREATE TABLE t (a int, n varchar);
REGISTER QUERY named AS SELECT R.b, t.n FROM R LEFT JOIN t ON R.a = t.a"""


def with_table(con: ss.LiveQueries) -> list[tuple[object, ...]]:
    con.sql(TABLE)
    con.push("R", pa.table({"ts": [1, 2], "a": [1, 2], "b": [10, 20]}))
    assert [row for _, part in con.results() for row in part.rows()] == []
    con.push("t", pa.table({"a": [1], "n": ["one"]}))
    con.push("R", pa.table({"ts": [3], "a": [1], "b": [30]}))
    return [row for _, part in con.finish() for row in part.rows()]


def test_a_table_is_whole_once_it_is_pushed(tmp_path: Path) -> None:
    want = [(10, "one", 1, 1), (20, None, 2, 2), (30, "one", 3, 3)]
    with ss.connect() as con:
        assert with_table(con) == want
    with bridge(tmp_path) as (_, url), ss.connect(url) as con:
        assert with_table(con) == want


@pytest.mark.parametrize("where", ["here", "loaded", "registered"])
def test_late_rows_and_rows_without_a_time(where: str, tmp_path: Path) -> None:
    """The judge is the highest time before, less the slack of the stream."""
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    parts = [
        [(chance.choice([None, *range(at, at + 40)]), chance.randrange(9)) for _ in range(6)]
        for at in range(0, 400, 10)
    ]
    highest, kept, late, without = -99, Counter[int](), [], 0
    for part in parts:
        timed = [(at, a) for at, a in part if at is not None]
        without += len(part) - len(timed)
        # A bridge sorts rows that come together.
        for at, a in timed if where == "here" else sorted(timed, key=lambda row: row[0]):
            if at < highest - 5:
                late.append((at, a, at))
            else:
                kept[a] += 1
            if where == "here":
                highest = max(highest, at)
        highest = max([highest, *(at for at, _ in timed)])
    stream = "CREATE STREAM o (a int, at bigint) WITH (time = 'at', max_out_of_orderness = '5 ms', late = 'side');"
    with contextlib.ExitStack() as stack:
        url = None
        if where != "here":
            made, url = stack.enter_context(bridge(tmp_path))
        if where == "registered":
            client = stack.enter_context(BridgeClient(str(url), None, None, 10))
            client.act("statement", Statement(f"{stream} REGISTER QUERY q AS SELECT a FROM o"))
        con = stack.enter_context(ss.connect(url))
        if where != "registered":
            con.sql(stream)
            con.sql("CREATE STREAM other (b int)")  # before any query exists
            assert con.sql("DESCRIBE other") == "ts bigint NOT NULL\nb int"
            con.sql("REGISTER QUERY q AS SELECT a FROM o")
        if where != "here":
            con.subscribe("late.o")
            con.subscribe("q")
        found: dict[str, list[tuple[object, ...]]] = {"q": [], "late.o": []}
        for part in parts:
            con.push(
                "o", {"a": [a for _, a in part], "at": pa.array([at for at, _ in part], pa.int64())}
            )
            for name, some in con.results():
                found[name] += some.rows()
        con.watermark("o", 1_000)
        for name, some in con.results():
            found[name] += some.rows()
        assert found["late.o"] == [(at, a, again) for at, a, again in late]
        assert Counter(row[0] for row in found["q"]) == kept
        assert late
        if where != "here":
            status = made.status()
            assert status["late_total"]["o"] == len(late)
            assert status["timeless_total"]["o"] == without
            (one,) = [one for one in made.registry().streams({}) if one["name"] == "o"]
            assert one["rejected"] == {"late": len(late), "without_time": without}
    if where != "here":  # after a restart, too
        with bridge(tmp_path) as (made, url), BridgeClient(url, None, None, 10) as client:
            client.flush()
            assert made.status()["timeless_total"]["o"] == without
            found_again = client.read("late.o", 0, len(late)).to_pylist()
            assert [(row["ts"], row["a"], row["at"]) for row in found_again] == late


def test_what_is_explained_is_not_registered_and_can_be_dropped() -> None:
    with ss.connect() as con:
        con.sql("CREATE STREAM R (a int); REGISTER QUERY n AS SELECT a FROM R -- all of it")
        assert "query n" in str(con.sql("EXPLAIN n"))
        assert "query q1" in str(con.sql("EXPLAIN SELECT a + 1 AS b FROM R; EXPLAIN ANALYZE n;"))
        assert con.sql("SHOW QUERIES") == "query n: SELECT a FROM R"
        con.sql("DROP QUERY n; DROP STREAM R")
        assert con.sql("SHOW STREAMS; SHOW QUERIES") is None


def test_explain_analyze_has_the_figures_so_far() -> None:
    with ss.connect() as con:
        con.sql("CREATE STREAM R (a int); REGISTER QUERY n AS SELECT a FROM R WHERE a > 1")
        con.push("R", {"ts": [1, 2, 3], "a": [1, 2, 3]})
        con.watermark("R", 9)
        con.sql("REGISTER QUERY other AS SELECT a FROM R WHERE a > 2")
        con.push("R", {"ts": [10], "a": [5]})
        con.watermark("R", 20)
        shown = str(con.sql("EXPLAIN ANALYZE n"))
        head, _, figures = shown.splitlines()[-3:]
        assert head.split()[:5] == ["node", "gives", "rows", "in", "rows"]
        assert " n            4  " in figures, "rows of both texts"
        assert "does not run: register it" in str(con.sql("EXPLAIN ANALYZE SELECT a FROM R"))


def test_a_table_is_read_from_the_file_it_names(tmp_path: Path) -> None:
    file = tmp_path / "names.csv"
    table = f"CREATE STREAM S (a int); CREATE TABLE t (a int, n varchar) WITH (path = '{file}');"
    query = "REGISTER QUERY j AS SELECT S.a, t.n FROM S LEFT JOIN t USING (a)"
    with ss.connect() as con:
        with pytest.raises(ss.Error, match="no such file"):
            con.sql(table + query)
        file.write_text("a,n\n1,one\n")
        con.sql(table + query)
        con.push("S", [{"ts": 3, "a": 1}])
        assert [rows.rows() for _, rows in con.finish()] == [[(1, "one", 3, 3)]]
    with ss.connect() as con:
        con.sql(table)
        con.push("t", [{"a": 1, "n": "uno"}])
        con.sql(query)
        con.push("S", [{"ts": 3, "a": 1}])
        assert [rows.rows() for _, rows in con.finish()] == [[(1, "uno", 3, 3)]]


@pytest.mark.parametrize("backend", ["engine", "golden"])
@pytest.mark.parametrize("another", ["", "SELECT k + 1 AS n FROM R WHERE k > 5"])
def test_a_table_that_no_query_reads_yet(backend: str, another: str) -> None:
    with ss.connect(backend=backend) as con:
        con.sql("CREATE TABLE t (k int, name varchar); CREATE STREAM R (k int)")
        if another:
            con.sql(another)
        con.push("t", [{"k": 1, "name": "a"}, {"k": 2, "name": "b"}])
        con.push("R", [{"ts": 1, "k": 1}])
        con.sql("REGISTER QUERY j AS SELECT t.name FROM R, t WHERE R.k = t.k WINDOW ROWS 5")
        con.push("R", [{"ts": 2, "k": 2}])
        assert [(name, rows.rows()) for name, rows in con.finish()] == [("j", [("b", 2, 2)])]


def test_what_is_no_text_and_no_time() -> None:
    with ss.connect(slack="2s") as con:
        with pytest.raises(ss.Error, match="not NoneType"):
            con.sql(None)  # type: ignore[arg-type]  # as users may
        con.sql("CREATE STREAM R (a int); SELECT a FROM R")
        with pytest.raises(ss.Error, match="'2026-01-01' is no time") as caught:
            con.watermark("R", "2026-01-01")  # type: ignore[arg-type]  # as users may
        assert "datetime" in (caught.value.hint or "")
        for call, name in (
            (con.subscribe, "query"),
            (con.explain, "query"),
            (lambda one: con.push(one, {"ts": [1], "a": [1]}), "stream"),
            (lambda one: con.watermark(one, 5), "stream"),
            (ss.connect, "url"),
            (lambda one: ss.connect(backend=one), "backend"),
        ):
            with pytest.raises(ss.Error, match=f"{name} = 5: want a text"):
                call(5)  # type: ignore[operator,arg-type]  # as users may


HEALTHY = """
CREATE STREAM R (a int, b int);
REGISTER QUERY all_rows AS SELECT a FROM R WINDOW NOW;
REGISTER QUERY sums AS SELECT sum(b) AS s FROM R WINDOW 3;
REGISTER QUERY runs AS SELECT a, sum(b) OVER (ORDER BY ts) AS s FROM R;
"""
FAILING = {
    "fault": "REGISTER QUERY bad AS SELECT 1 / a AS x FROM R WINDOW NOW WITH (strict);",
    "frame": "REGISTER QUERY bad AS SELECT 1 / a AS x, rank() OVER (ORDER BY ts) AS r FROM R WITH (strict);",
    "groups": "REGISTER QUERY bad AS SELECT a, sum(1 / a) AS x FROM R GROUP BY a, TUMBLE(ts, 2) WITH (strict);",
    "reader": "CREATE STREAM D AS SELECT 1 / a AS x FROM R WITH (strict); REGISTER QUERY bad AS SELECT x FROM D;",
    "join": "REGISTER QUERY bad AS SELECT 1 / x.a AS s FROM R x, R y WHERE x.a = y.a WINDOW 5 WITH (strict);",
}


def taken(
    results: Iterator[tuple[str, ss.QueryResult]], found: dict[str, list[object]]
) -> list[str]:
    """Adds results to those found before; returns what is raised behind them."""
    try:
        for name, part in results:
            found.setdefault(name, []).extend(part.rows())
    except ss.QueryError as error:
        return [str(error)]
    return []


def some_fail(con: ss.LiveQueries, failing: str) -> tuple[list[str], dict[str, list[object]]]:
    """Returns the failures and the results of queries one of which fails."""
    con.sql(HEALTHY + failing)
    said, found = list[str](), dict[str, list[object]]()
    for start in range(0, 40, 5):
        ts = list(range(start, start + 5))
        con.push("R", {"ts": ts, "a": [(t % 7) - 3 for t in ts], "b": ts})
        con.watermark("R", start + 5)
        said += taken(con.results(), found)
    assert {one["name"]: one["phase"] for one in con.queries()} == dict.fromkeys(
        ("all_rows", "sums", "runs"), "RUNNING"
    ) | ({"bad": "FAILED"} if failing else {})
    said += taken(con.finish(), found)
    found.pop("bad", None)
    return said, found


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("failing", FAILING)
def test_a_query_that_fails_takes_no_other_with_it(failing: str, strict: bool) -> None:
    text = FAILING[failing].replace(" WITH (strict)", "") if strict else FAILING[failing]
    with ss.connect(strict=strict) as con:
        said, found = some_fail(con, text)
    with ss.connect() as con:
        assert some_fail(con, "") == ([], found)
    assert [len(rows) for rows in found.values()] == [40, 40, 40]
    (why,) = said
    assert why.startswith("query bad has failed: ")
    assert "division by zero" in why


def test_a_fault_has_its_place_in_the_text_that_has_it() -> None:
    with ss.connect() as con:
        con.sql("CREATE STREAM R (a int);\n\n\n")
        con.sql("REGISTER QUERY bad AS SELECT 6 / a AS b FROM R WITH (strict)")
        con.sql("CREATE STREAM S (a int);\nREGISTER QUERY worse AS\n  SELECT 6 / a AS b FROM S")
        con.push("R", {"ts": [1], "a": [0]})
        con.push("S", {"ts": [1], "a": [0]})
        with pytest.warns(ss.DataWarning, match=r"6 / S\.a at 3:12"):
            assert "6 / R.a at 1:32" in taken(con.finish(), {})[0]


def test_a_fault_at_a_bridge_has_its_place_in_its_own_text(tmp_path: Path) -> None:
    """The text of the catalogue, in which it is compiled, is nobody's."""
    with bridge(tmp_path) as (_, url), ss.connect(url) as con:
        con.sql("CREATE STREAM R (a int);\n\nSHOW STREAMS")
        con.sql(
            "REGISTER QUERY y AS SELECT a FROM R;\n REGISTER QUERY worse AS SELECT 6 / a AS b FROM R"
        )
        con.sql("SHOW QUERIES; REGISTER QUERY bad AS SELECT 6 / a AS b FROM R WITH (strict)")
        con.push("R", {"ts": [1], "a": [0]})
        with pytest.warns(ss.DataWarning, match=r"6 / R\.a at 2:35"):
            assert "6 / R.a at 1:32" in taken(con.finish(), {})[0]


def test_a_failed_query_at_a_bridge(tmp_path: Path) -> None:
    with bridge(tmp_path) as (_, url), ss.connect(url) as con:
        said, found = some_fail(con, FAILING["fault"])
    with ss.connect() as con:
        assert some_fail(con, "") == ([], found)
    (why,) = said
    assert why.startswith("query bad has failed: ")


def test_a_failed_query_is_registered_anew_and_may_fail_anew() -> None:
    with ss.connect() as con:
        con.sql("CREATE STREAM R (a int);" + FAILING["fault"])
        con.push("R", {"ts": [1], "a": [0]})
        with pytest.raises(ss.QueryError, match="query bad has failed"):
            list(con.results())
        con.sql("REGISTER QUERY good AS SELECT a FROM R WINDOW NOW")
        con.push("R", {"ts": [2], "a": [0]})
        con.watermark("R", 3)
        assert [(name, part.rows()) for name, part in con.results()] == [("good", [(0, 2, 2)])]
        for ts in (3, 4):
            con.sql("DROP QUERY bad")
            con.sql(FAILING["fault"])
            con.push("R", {"ts": [ts], "a": [0]})
            con.watermark("R", ts + 1)
            with pytest.raises(ss.QueryError, match="query bad has failed"):
                list(con.results())
        con.sql("REGISTER OR REPLACE QUERY bad AS SELECT a + 1 AS b FROM R WINDOW NOW")
        con.push("R", {"ts": [5], "a": [0]})
        found = {name: part.rows()[-1] for name, part in con.finish()}
        assert found == {"good": (0, 5, 5), "bad": (1, 5, 5)}


def test_late_rows_that_are_an_error_end_the_readers_of_their_stream() -> None:
    with ss.connect() as con:
        con.sql("CREATE STREAM R (a int) WITH (late = 'error'); CREATE STREAM S (a int)")
        con.sql("REGISTER QUERY r AS SELECT a FROM R; REGISTER QUERY s AS SELECT a FROM S")
        con.push("R", {"ts": [5, 3], "a": [1, 2]})
        con.push("S", {"ts": [5], "a": [3]})
        for stream in ("R", "S"):
            con.watermark(stream, 6)
        found: dict[str, list[object]] = {}
        (why,) = taken(con.results(), found)
        assert why.startswith("query r has failed: stream R: 1 late row")
        assert found == {"s": [(3, 5, 5)]}


@pytest.mark.parametrize("where", ["engine", "bridge"])
def test_a_stream_is_made_anew_in_two_texts(where: str, tmp_path: Path) -> None:
    """In one, the new stream would have the watermark of the old one. One that is replaced by itself
    stays."""
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(bridge(tmp_path))[1] if where == "bridge" else None
        con = stack.enter_context(ss.connect(url))
        con.sql(
            "CREATE STREAM R (a int); CREATE STREAM S (a int); REGISTER QUERY q AS SELECT a FROM R"
        )
        con.push("R", {"ts": [100], "a": [1]})
        con.watermark("R", 1000)
        list(con.results())
        for text, column in (
            ("DROP QUERY q; DROP STREAM R; CREATE STREAM R (a int)", 44),
            ("DROP QUERY q; DROP STREAM r; CREATE STREAM R AS SELECT a FROM S", 44),
            ("DROP QUERY q; CREATE OR REPLACE STREAM R (b int)", 40),
        ):
            with pytest.raises(
                ss.Error, match="stream R is there, and would be made anew"
            ) as caught:
                con.sql(text)
            assert (caught.value.line, caught.value.column) == (1, column)
            assert "DROP STREAM R in a text of its own" in str(caught.value.hint)
        con.sql("DROP QUERY q")
        con.sql("CREATE OR REPLACE STREAM R (a int)")
        con.sql("DROP STREAM R")
        con.sql("CREATE STREAM R (b int); REGISTER QUERY q AS SELECT b FROM R WINDOW NOW")
        con.push("R", {"ts": [5], "b": [7]})
        assert [rows.rows() for _, rows in con.finish()] == [[(7, 5, 5)]]


@contextlib.contextmanager
def connected(where: str, folder: Path) -> Iterator[ss.LiveQueries]:
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(bridge(folder))[1] if where == "bridge" else None
        yield stack.enter_context(ss.connect(url))


@pytest.mark.parametrize("where", ["engine", "bridge"])
def test_a_stream_that_is_made_anew_has_the_times_of_its_own_rows(
    where: str, tmp_path: Path
) -> None:
    when = datetime.datetime(2026, 3, 2, 9)
    with connected(where, tmp_path) as con:
        for ts in (5000, when):
            con.sql("CREATE STREAM R (a int); REGISTER QUERY q AS SELECT a FROM R")
            con.push("R", {"ts": [ts], "a": [1]})
            con.watermark("R", datetime.datetime(2030, 1, 1))
            assert [rows.rows() for _, rows in con.results()] == [[(1, ts, ts)]]
            con.sql("DROP QUERY q")
            con.sql("DROP STREAM R")


@pytest.mark.parametrize("where", ["engine", "bridge"])
@pytest.mark.parametrize("reads", [True, False])
def test_late_rows_of_a_stream_that_is_made_anew(reads: bool, where: str, tmp_path: Path) -> None:
    """It has other columns, and is read from its beginning. A bridge has forgotten late rows that
    nobody read before."""
    found = []
    with connected(where, tmp_path) as con:
        for column, values in (("a int", [1, 2]), ("b varchar", ["x", "y"])):
            con.sql(
                f"CREATE STREAM R ({column}) WITH (late = 'side');"
                " REGISTER QUERY q AS SELECT ts FROM R"
            )
            con.subscribe("late.R")
            for ts, value in zip([5000, 4000], values, strict=True):
                con.push("R", {"ts": [ts], column[0]: [value]})
            if reads or column == "b varchar":
                found += [rows.rows() for name, rows in con.results() if name == "late.R"]
            con.sql("DROP QUERY q")
            con.sql("DROP STREAM R")
    first = [[(4000, 2)]] if reads or where == "engine" else []
    assert found == [*first, [(4000, "y")]]


def test_a_table_that_is_made_anew_is_read_from_its_own_file(tmp_path: Path) -> None:
    found = []
    with ss.connect() as con:
        con.sql("CREATE STREAM R (k int)")
        for at, name in enumerate(("one", "uno")):
            path = tmp_path / f"{name}.csv"
            path.write_text(f"k,name\n1,{name}\n")
            con.sql(f"CREATE TABLE t (k int, name varchar) WITH (path = '{path}')")
            con.sql("REGISTER QUERY q AS SELECT t.name FROM R LEFT JOIN t ON R.k = t.k")
            con.push("R", {"ts": [at], "k": [1]})
            con.watermark("R", at + 1)
            found += [row[0] for _, rows in con.results() for row in rows.rows()]
            con.sql("DROP QUERY q")
            con.sql("DROP STREAM t")
    assert found == ["one", "uno"]


def test_results_keep_the_types_of_the_query_that_gave_them() -> None:
    """Those of a query that is replaced may wait to be taken; the columns of the new one are others."""
    first, then = datetime.datetime(2026, 3, 2, 9), datetime.datetime(2026, 3, 2, 10)
    with ss.connect() as con:
        con.sql("CREATE STREAM R (a int); REGISTER QUERY q AS SELECT ts AS x FROM R")
        con.push("R", {"ts": [first], "a": [5]})
        con.watermark("R", then)
        con.sql("REGISTER OR REPLACE QUERY q AS SELECT a AS x FROM R")
        con.push("R", {"ts": [then], "a": [5]})
        found = [row[0] for _, rows in con.finish() for row in rows.rows()]
    assert found == [first, 5]


def test_the_type_of_times_does_not_change_with_later_rows() -> None:
    """A column of integers that is declared as the time is known before there are rows."""
    at = datetime.datetime(2026, 1, 1)
    with ss.connect() as con:
        con.sql("CREATE STREAM R (a int); CREATE STREAM S (at bigint, a int) WITH (time = 'at')")
        con.sql("SELECT R.a FROM R LEFT JOIN S ON R.a = S.a WINDOW RANGE 5")
        con.push("R", {"ts": [at], "a": [1]})
        later = at + datetime.timedelta(seconds=9)
        con.watermark("R", later)
        con.watermark("S", later)
        found = [row for _, rows in con.results() for row in rows.rows()]
        then = int(later.replace(tzinfo=datetime.UTC).timestamp()) * 1000
        con.push("S", {"at": [then], "a": [1]})
        con.push("R", {"ts": [later], "a": [1]})
        found += [row for _, rows in con.finish() for row in rows.rows()]
    assert found == [(1, then - 9000, then - 9000), (1, then, then)]


def test_the_type_of_times_is_that_of_the_first_rows() -> None:
    at = datetime.datetime(2026, 1, 1)
    with ss.connect() as con:
        con.sql("CREATE STREAM R (a int); CREATE STREAM S (a int)")
        con.sql("SELECT R.a FROM R LEFT JOIN S ON R.a = S.a WINDOW RANGE 5")
        con.push("R", {"ts": [], "a": []})
        con.push("R", {"ts": [at], "a": [1]})
        con.watermark("R", at + datetime.timedelta(seconds=9))
        con.watermark("S", at + datetime.timedelta(seconds=9))
        assert [rows.rows() for _, rows in con.results()] == [[(1, at, at)]]
