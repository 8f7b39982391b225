"""Nexmark's queries on Flink SQL and on Spark, over the same rows as ours, in processor time of one core.

Flink runs in a virtual machine of its own with parallelism 1, over rows that it has in memory. Spark runs with
`local[1]` and one partition for its state, in five micro-batches from Parquet. Each query runs twice, and the second
time counts, when the machine has compiled what it runs. A figure is the processor time of all threads of the
virtual machine, garbage collection among them: of Flink from the first row on, of Spark from the start of the query,
whose micro-batches each have their own cost; ours has parsing and compiling in it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench import java

HERE = Path(__file__).parent
FILES = 5
_TUMBLE = "TABLE(TUMBLE(TABLE {0}, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))"
_OWN = "window_start, window_end"
_COUNTS = f"""SELECT auction, COUNT(*) AS num, {_OWN} FROM TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`),
    INTERVAL '2' SECOND, INTERVAL '10' SECOND)) GROUP BY auction, {_OWN}"""
BOTH = {
    "q0": "SELECT auction, bidder, price, `dateTime`, extra FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price AS price, `dateTime`, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0",
    "q3": """SELECT P.name, P.city, P.state, A.id FROM auction AS A JOIN person AS P ON A.seller = P.id
        WHERE A.category = 10 AND P.state IN ('OR', 'ID', 'CA')""",
    "q20": """SELECT B.auction, B.bidder, B.price, B.`dateTime`, A.itemName, A.seller, A.category
        FROM bid AS B JOIN auction AS A ON B.auction = A.id WHERE A.category = 10""",
}
FLINK = {
    **BOTH,
    "q5": f"""SELECT A.auction, A.num, A.window_end FROM ({_COUNTS}) AS A JOIN (SELECT MAX(num) AS top, {_OWN}
        FROM ({_COUNTS}) GROUP BY {_OWN}) AS M ON A.num = M.top AND A.window_start = M.window_start
        AND A.window_end = M.window_end""",
    "q7": f"""SELECT B.auction, B.price, B.bidder, B.`dateTime` FROM (SELECT * FROM {_TUMBLE.format("bid")}) AS B
        JOIN (SELECT MAX(price) AS top, {_OWN} FROM {_TUMBLE.format("bid")} GROUP BY {_OWN}) AS M
        ON B.price = M.top AND B.window_start = M.window_start AND B.window_end = M.window_end""",
    "q8": f"""SELECT P.id, P.name, P.window_start FROM (SELECT id, name, {_OWN} FROM {_TUMBLE.format("person")}
        GROUP BY id, name, {_OWN}) AS P JOIN (SELECT seller, {_OWN} FROM {_TUMBLE.format("auction")}
        GROUP BY seller, {_OWN}) AS A ON P.id = A.seller AND P.window_start = A.window_start
        AND P.window_end = A.window_end""",
    "q11": f"""SELECT bidder, COUNT(*) AS bid_count, {_OWN} FROM TABLE(SESSION(TABLE bid PARTITION BY bidder,
        DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND)) GROUP BY bidder, {_OWN}""",
    "q12": f"""SELECT bidder, COUNT(*) AS bid_count, {_OWN} FROM {_TUMBLE.format("bid")}
        GROUP BY bidder, {_OWN}""",
}
SPARK = {
    **BOTH,
    "q11": """SELECT bidder, COUNT(*) AS bid_count, session_window.start, session_window.end FROM bid
        GROUP BY bidder, session_window(`dateTime`, '10 seconds')""",
    "q12": """SELECT bidder, COUNT(*) AS bid_count, window.start, window.end FROM bid
        GROUP BY bidder, window(`dateTime`, '10 seconds')""",
}
Figures = dict[str, tuple[int, float]]
"""Rows and seconds of a query."""


def flink(tables: Mapping[str, pa.Table]) -> Figures:
    """The figures of Flink SQL."""
    java.check("Flink needs")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name, table in tables.items():
            _write_text(folder / f"{name}.tsv", table)
        queries = folder / "queries.txt"
        lines = (f"{name}\t{' '.join(sql.split())}\n" for name, sql in FLINK.items())
        queries.write_text("".join(lines), encoding="utf-8")
        own = HERE / "flink"
        classes = java.compiled(own / "pom.xml", [own / "Main.java"], folder / "flink")
        opened = [
            f"--add-opens=java.base/{p}=ALL-UNNAMED"
            for p in ("java.lang", "java.util", "java.time")
        ]
        call = ["java", "-Xmx2g", "-XX:+UseSerialGC", *opened, "-cp", classes, "Main"]
        text = java.run([*call, scratch, str(queries)])
    found: Figures = {}
    for line in text.splitlines():
        if line.startswith("R "):
            _, name, rows, seconds = line.split()
            found[name] = (int(rows), float(seconds))
    return found


def _write_text(path: Path, table: pa.Table) -> None:
    kinds = [
        "T" if pa.types.is_timestamp(f.type) else "L" if pa.types.is_integer(f.type) else "S"
        for f in table.schema
    ]
    columns = [
        column.cast(pa.timestamp("ms")).cast(pa.int64()) if kind == "T" else column
        for column, kind in zip(table.columns, kinds, strict=True)
    ]
    with path.open("w", encoding="utf-8") as file:
        for cells in (
            table.column_names,
            kinds,
            *zip(*(c.to_pylist() for c in columns), strict=True),
        ):
            print(*cells, sep="\t", file=file)


def spark(tables: Mapping[str, pa.Table]) -> Figures:
    """The figures of Spark."""
    # Here, so that all other measurements go without Spark.
    from pyspark.sql import SparkSession

    made = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 1)
    made = made.config("spark.ui.enabled", False).config("spark.sql.session.timeZone", "UTC")
    session = made.config("spark.sql.ansi.enabled", False).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    found: Figures = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name, table in tables.items():
            (folder / name).mkdir()
            size, at = -(-table.num_rows // FILES), pa.timestamp("us", "UTC")
            timed = [f.with_type(at) if pa.types.is_timestamp(f.type) else f for f in table.schema]
            table = table.cast(pa.schema(timed))
            for number in range(FILES):
                path = folder / name / f"{number}.parquet"
                pq.write_table(table.slice(number * size, size), path)
                os.utime(path, (1e9 + number, 1e9 + number))
            read = session.readStream.schema(session.read.parquet(str(folder / name)).schema)
            frame = read.option("maxFilesPerTrigger", 1).parquet(str(folder / name))
            frame.withWatermark("dateTime", "0 seconds").createOrReplaceTempView(name)
        for name, sql in SPARK.items():
            for turn in range(2):
                found[name] = _streamed(session, sql, folder / f"{name}-{turn}")
    session.stop()
    return found


def _streamed(session: Any, sql: str, checkpoint: Path) -> tuple[int, float]:
    machine = session.sparkContext._gateway.proc.pid
    before = _spent(machine)
    writer = session.sql(sql).writeStream.format("noop").outputMode("append")
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    took = _spent(machine) - before
    rows = sum(max(p.sink.numOutputRows, 0) for p in query.recentProgress)
    return rows, took


def _spent(process: int) -> float:
    """The seconds of processor time of all threads of a process, as Linux tells them."""
    fields = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
