"""Messages of thousands of captures as one Parquet dataset, by Dask, and DuckDB's questions to it.

    from barewire import fleet

    if __name__ == "__main__":
        print(fleet.convert("captures/**/*.vcd", "dataset", options={"chip": "nor"}))
        print(fleet.p99("dataset", by=("board", "firmware")))

Each capture is a task of Dask and a file of the dataset. A capture that cannot be read is a row of `dataset/errors`.
docs/fleet.md has the dataset's schema. `python -m barewire.fleet` is the same as a command. What it needs is barewire's extra `fleet`.

How it works: `jobs` finds the captures, their labels and what is done; `task` makes a file of one; `conversion` has Dask run
the tasks; `queries` asks DuckDB.
"""

from importlib.util import find_spec as _find_spec

for _name in ("numpy", "pyarrow", "distributed", "fsspec", "duckdb"):
    if _find_spec(_name) is None:
        _text = f"barewire.fleet needs {_name}: install barewire with its extra fleet (pip install './bindings/python[fleet]')"
        raise ImportError(_text, name=_name)

from barewire.fleet.conversion import Report, convert
from barewire.fleet.jobs import default_labels
from barewire.fleet.queries import drift, errors, outliers, p99, sql

__all__ = ["Report", "convert", "default_labels", "drift", "errors", "outliers", "p99", "sql"]
