"""Answers of the Python interface: results of queries, and explanations of them."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from seustream.compiler.errors import suggest
from seustream.compiler.pipeline import Compilation
from seustream.encoding import python_values
from seustream.engine.explain import explain
from seustream.errors import QueryError

if TYPE_CHECKING:
    import pandas
    import polars

_SHOWN = 20


class NoSuchResult(QueryError, KeyError):
    """There are no results of this name; as a `KeyError`, too, it is what a dict raises."""

    __str__ = QueryError.__str__


class QueryResults(dict[str, "QueryResult"]):
    """Results by query; a name that is not there is an error with a hint."""

    def __missing__(self, name: object) -> QueryResult:
        raise NoSuchResult(f"there is no query {name}", suggest(str(name), self, "queries"))


class QueryResult:
    """The results of one query: rows in the order in which they came into being.

    >>> import seustream as ss
    >>> orders = {"ts": [1, 2], "customer": ["Ada", "Grace"]}
    >>> found = ss.run("SELECT customer FROM orders WINDOW NOW", orders=orders)["q0"]
    >>> found
    q0: 2 rows of customer, ts_oldest, ts_newest
    >>> found.rows()
    [('Ada', 1, 1), ('Grace', 2, 2)]
    """

    def __init__(self, name: str, table: pa.Table, compilation: Compilation | None = None) -> None:
        self.name = name
        self._table, self._compilation = table, compilation

    @property
    def columns(self) -> list[str]:
        """Returns the names of the columns.

        >>> import seustream as ss
        >>> ss.run("SELECT a FROM R WINDOW NOW", R={"ts": [1], "a": [5]})["q0"].columns
        ['a', 'ts_oldest', 'ts_newest']
        """
        return list(self._table.column_names)

    def arrow(self) -> pa.Table:
        """Returns the rows as an Arrow table.

        >>> import seustream as ss
        >>> ss.run("SELECT a FROM R WINDOW NOW", R={"ts": [1], "a": [5]})["q0"].arrow().num_rows
        1
        """
        return self._table

    def df(self) -> pandas.DataFrame:
        """Returns the rows as a pandas frame.

        >>> import seustream as ss
        >>> ss.run("SELECT a FROM R WINDOW NOW", R={"ts": [1], "a": [5]})["q0"].df().a.tolist()
        [5]
        """
        try:
            import pandas  # noqa: F401
        except ImportError:
            raise QueryError("pandas is not installed", "pip install pandas") from None
        return self._table.to_pandas()

    def pl(self) -> polars.DataFrame:
        """Returns the rows as a Polars frame.

        >>> import seustream as ss
        >>> ss.run("SELECT a FROM R WINDOW NOW", R={"ts": [1], "a": [5]})["q0"].pl().height
        1
        """
        try:
            import polars
        except ImportError:
            raise QueryError("polars is not installed", "pip install polars") from None
        found = polars.from_arrow(self._table)
        assert isinstance(found, polars.DataFrame)
        return found

    def rows(self) -> list[tuple[Any, ...]]:
        """Returns the rows as tuples. Times outside of the years 1 to 9999, which `datetime` lacks, are
        texts.

        >>> import seustream as ss
        >>> ss.run("SELECT a FROM R WINDOW NOW", R={"ts": [1], "a": [5]})["q0"].rows()
        [(5, 1, 1)]
        """
        columns = [python_values(column) for column in self._table.columns]
        return list(zip(*columns, strict=True))

    def explain(self) -> Explanation:
        """Explains how the query ran.

        >>> import seustream as ss
        >>> found = ss.run("SELECT a FROM R WINDOW NOW", R={"ts": [1], "a": [5]})["q0"]
        >>> print(str(found.explain()).splitlines()[0])
        query q0 of <sql>: 1 query over 1 stream, plan cost, configuration default
        """
        if self._compilation is None:
            raise QueryError(f"{self.name} came from a connection", "con.explain(…) explains it")
        return Explanation(self._compilation, self.name)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __repr__(self) -> str:
        plural = "s" * (len(self) != 1)
        return f"{self.name}: {len(self):,} row{plural} of {', '.join(self.columns)}"

    def _repr_html_(self) -> str:
        """Shows the first rows and the picture of the query in a notebook."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>"
            for row in QueryResult(self.name, self._table.slice(0, _SHOWN)).rows()
        )
        more = f"<p>… {len(self) - _SHOWN:,} more rows</p>" if len(self) > _SHOWN else ""
        caption = f"<caption>{html.escape(self.name)}, {len(self):,} rows</caption>"
        way = "" if self._compilation is None else _folded("how it ran", self.explain().svg())
        return f"<table>{caption}<tr>{head}</tr>{body}</table>{more}{way}"


def _folded(head: str, content: str) -> str:
    return f"<details><summary>{head}</summary>{content}</details>"


def _cell(value: object) -> str:
    return "<i>NULL</i>" if value is None else html.escape(str(value))


class Explanation:
    """Shows how a query runs; `str` and `print` give the text.

    >>> import seustream as ss
    >>> with ss.connect() as con:
    ...     con.sql("CREATE STREAM R (a int); REGISTER QUERY low AS SELECT a FROM R WINDOW NOW")
    ...     explained = con.explain("low")
    >>> explained.svg().startswith("<svg")
    True
    >>> sorted(explained.json())[:2]
    ['areas', 'configuration']
    """

    def __init__(self, compilation: Compilation, query: str | None) -> None:
        self._compilation = compilation
        self._query = query

    def __str__(self) -> str:
        return explain(self._compilation, query=self._query)

    def __repr__(self) -> str:
        return str(self)

    def json(self) -> dict[str, Any]:
        """Returns the same facts as objects.

        >>> import seustream as ss
        >>> found = ss.run("SELECT a FROM R WINDOW NOW", R={"ts": [1], "a": [5]})["q0"]
        >>> found.explain().json()["configuration"]
        'default'
        """
        found = json.loads(explain(self._compilation, None, "json", self._query))
        return dict(found[0] if isinstance(found, list) else found)

    def svg(self) -> str:
        """Returns a picture.

        >>> import seustream as ss
        >>> found = ss.run("SELECT a FROM R WINDOW NOW", R={"ts": [1], "a": [5]})["q0"]
        >>> found.explain().svg().startswith("<svg")
        True
        """
        return explain(self._compilation, None, "svg", self._query)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>{self.svg()}"
