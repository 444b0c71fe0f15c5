"""Questions to the dataset, in SQL.

The SQL is standard but for what it reads from: `sql` gives its text, for any engine that reads Parquet. A percentile is the
command's: the smallest value that so many of a hundred do not exceed. Messages that a capture's border cuts are left out.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from barewire._errors import ArgumentError

if TYPE_CHECKING:
    import pyarrow as pa

FIGURES = (
    "cs_inactive_ns",
    "lead_ns",
    "clocked_ns",
    "gap_ns_median",
    "gap_ns_max",
    "lag_ns",
    "sck_hz",
)
"""The columns that are summed up."""

_LONG = """\
long AS (
  SELECT {groups}f.figure, CASE f.figure {cases} END AS value
  FROM {files}
  CROSS JOIN (VALUES {names}) AS f(figure)
  WHERE NOT cut
),
seen AS (SELECT * FROM long WHERE value IS NOT NULL)"""

_P99 = """\
WITH {long}
SELECT {by}figure, count(*) AS messages,
       percentile_disc(0.50) WITHIN GROUP (ORDER BY value) AS p50,
       percentile_disc(0.99) WITHIN GROUP (ORDER BY value) AS p99,
       max(value) AS max
FROM seen
GROUP BY {by}figure
ORDER BY {by}figure"""

_OUTLIERS = """\
WITH {long},
groups AS (
  SELECT {by}kind, words, figure, count(*) AS messages,
         percentile_disc(0.99) WITHIN GROUP (ORDER BY value) AS p99
  FROM seen
  GROUP BY {by}kind, words, figure
),
middles AS (
  SELECT kind, words, figure, count(*) AS of_groups,
         percentile_disc(0.50) WITHIN GROUP (ORDER BY p99) AS middle
  FROM groups
  GROUP BY kind, words, figure
),
spreads AS (
  SELECT g.kind, g.words, g.figure,
         percentile_disc(0.50) WITHIN GROUP (ORDER BY abs(g.p99 - m.middle)) AS spread
  FROM groups g JOIN middles m ON g.kind = m.kind AND g.words = m.words AND g.figure = m.figure
  GROUP BY g.kind, g.words, g.figure
)
SELECT {g_by}g.kind, g.words, g.figure, g.messages, g.p99, m.middle, s.spread, m.of_groups,
       (g.p99 - m.middle) / greatest(s.spread, 0.01 * m.middle, 1) AS distance
FROM groups g
JOIN middles m ON g.kind = m.kind AND g.words = m.words AND g.figure = m.figure
JOIN spreads s ON g.kind = s.kind AND g.words = s.words AND g.figure = s.figure
WHERE m.of_groups >= 3 AND abs(g.p99 - m.middle) > {factor} * greatest(s.spread, 0.01 * m.middle, 1)
ORDER BY abs((g.p99 - m.middle) / greatest(s.spread, 0.01 * m.middle, 1)) DESC, {g_by}g.kind, g.words, g.figure"""

_DRIFT = """\
WITH {long},
days AS (
  SELECT {by}figure, CAST(day AS DATE) - DATE '2000-01-01' AS number, count(*) AS messages,
         percentile_disc(0.50) WITHIN GROUP (ORDER BY value) AS p50
  FROM seen
  GROUP BY {by}figure, day
)
SELECT {by}figure, count(*) AS days, sum(messages) AS messages,
       avg(p50) AS mean_p50, min(p50) AS min_p50, max(p50) AS max_p50,
       regr_slope(p50, number) AS a_day, regr_r2(p50, number) AS r2
FROM days
GROUP BY {by}figure
HAVING count(*) >= 3
ORDER BY {by}figure"""


def _files(dataset: str | os.PathLike[str], folder: str) -> str:
    """What DuckDB reads."""
    root = Path(os.path.abspath(dataset), folder)
    if next(root.rglob("*.parquet"), None) is None:
        return ""
    pattern = str(root / "**/*.parquet").replace("'", "''")
    types = ", hive_partitioning=true, hive_types={'board': VARCHAR, 'day': VARCHAR}" if folder == "messages" else ""
    return f"read_parquet('{pattern}', union_by_name=true{types})"


def sql(
    question: str,
    dataset: str | os.PathLike[str],
    *,
    by: Sequence[str] = ("board",),
    factor: float = 5,
) -> str:
    """The text of a question, `p99`, `outliers` or `drift`, for DuckDB.

    For another engine, put its name of the dataset where `read_parquet(…)` stands. `by` are columns and labels.
    """
    texts = {"p99": _P99, "outliers": _OUTLIERS, "drift": _DRIFT}
    if question not in texts:
        raise ArgumentError(errno.EINVAL, f"no question {question!r}: {', '.join(texts)}")
    wrong = [name for name in by if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)]
    if wrong:
        raise ArgumentError(errno.EINVAL, f"by: {wrong[0]!r} is no column and no label")
    if isinstance(by, str):
        raise ArgumentError(errno.EINVAL, f'by: a list of columns, ("{by}",)')
    files = _files(dataset, "messages")
    if not files:
        raise ArgumentError(errno.ENOENT, f"{os.fspath(dataset)} has no messages: convert captures into it first")
    extra = {"p99": (), "outliers": ("kind", "words"), "drift": ("day",)}[question]
    groups = {
        name: "coalesce(kind, '') AS kind" if name == "kind" else name for name in dict.fromkeys([*by, *extra])
    }
    long = _LONG.format(
        groups="".join(f"{group}, " for group in groups.values()),
        cases=" ".join(f"WHEN '{figure}' THEN {figure}" for figure in FIGURES),
        files=files,
        names=", ".join(f"('{figure}')" for figure in FIGURES),
    )
    own = [name for name in by if name not in extra]
    return texts[question].format(
        long=long,
        by="".join(f"{name}, " for name in own),
        g_by="".join(f"g.{name}, " for name in own),
        factor=float(factor),
    )


def _ask(text: str) -> pa.Table:
    import duckdb

    with duckdb.connect() as connection:
        try:
            return connection.sql(text).to_arrow_table()
        except duckdb.BinderException as error:
            raise ArgumentError(errno.EINVAL, str(error).splitlines()[0]) from None


def p99(dataset: str | os.PathLike[str], *, by: Sequence[str] = ("board",)) -> pa.Table:
    """Of each group and figure: how many messages, p50, p99 and the maximum."""
    return _ask(sql("p99", dataset, by=by))


def outliers(
    dataset: str | os.PathLike[str], *, by: Sequence[str] = ("board",), factor: float = 5
) -> pa.Table:
    """Groups whose p99 of a figure lies far from the middle of all groups, for messages of the same kind and length.

    Far is more than `factor` spreads. The spread is the groups' median distance from their median, at least 1 % of it and at least
    1. A figure that fewer than three groups have is left out.
    """
    return _ask(sql("outliers", dataset, by=by, factor=factor))


def drift(dataset: str | os.PathLike[str], *, by: Sequence[str] = ("board",)) -> pa.Table:
    """How each group's median of a day changes by day: `a_day`, of a straight line, and how well it fits, `r2`. From three days on."""
    return _ask(sql("drift", dataset, by=by))


def errors(dataset: str | os.PathLike[str]) -> pa.Table:
    """The captures that could not be converted, and why."""
    from barewire.fleet.task import ERRORS

    files = _files(dataset, "errors")
    if not files:
        return ERRORS.empty_table()
    return _ask(f"SELECT * FROM {files} ORDER BY capture")
