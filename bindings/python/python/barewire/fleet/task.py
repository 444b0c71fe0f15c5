"""One capture to one Parquet file: what a worker runs.

Ordering: 1. the file is written under a temporary name beside its place; 2. it is renamed. So a file of the dataset is whole,
wherever the worker is killed, and the task can run again.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from barewire import scope
from barewire.fleet.jobs import Job, is_url

ROWS = 65_536
"""Messages of a row group: what a worker holds at a time."""

ERRORS = pa.schema(
    [
        pa.field("capture", pa.string(), False),
        pa.field("board", pa.string(), False),
        pa.field("day", pa.string(), False),
        pa.field("cause", pa.string(), False),
        pa.field("error", pa.string(), False),
        pa.field("messages_before", pa.int64()),
        pa.field("size_bytes", pa.int64(), False),
        pa.field("at", pa.timestamp("us", "UTC"), False),
    ]
)
"""Of `dataset/errors`. `cause` is `capture`, or `worker` if workers died on it."""


@dataclass(frozen=True)
class Result:
    """What became of a capture."""

    job: Job
    place: Path
    """Its file: of messages, or a row of errors."""
    messages: int
    error: str | None
    worker_s: float
    """How long it took."""
    cpu_s: float
    """How long the worker's process ran on a processor meanwhile."""
    pid: int
    """Of the worker's process."""
    peak_bytes: int
    """The most memory that the process had so far."""


class _Unreadable(Exception):
    """The capture's fault, not the dataset's."""


@contextlib.contextmanager
def _local(job: Job) -> Iterator[str]:
    """The capture as a local file: a URL's is copied."""
    if not is_url(job.path):
        yield job.path
        return
    import fsspec

    with tempfile.NamedTemporaryFile(suffix=os.path.splitext(job.path)[1]) as copy:
        try:
            with fsspec.open(job.path, "rb") as source:
                shutil.copyfileobj(source, copy, 1 << 20)
        except Exception as error:
            raise _Unreadable(f"{job.path}: {error}") from error
        copy.flush()
        yield copy.name


def _tables(job: Job, path: str, counted: list[int]) -> Iterator[pa.Table]:
    """The capture's messages in tables of the dataset's schema. Counts them."""
    try:
        capture = scope.open(path, **job.options)
        about = {
            "capture": job.path,
            "wires": capture.wires,
            "mode": capture.mode,
            "word_bits": capture.word_bits,
            "why": capture.why,
        }
        extra = {key: value for key, value in job.labels.items() if key not in ("board", "day")}
        constant = {"capture": job.path, **extra}
        fields = [*scope.schema(), *(pa.field(key, pa.dictionary(pa.int32(), pa.string())) for key in constant)]
        schema = pa.schema(fields, {"barewire": json.dumps(about)})
        batches = capture.batches(ROWS)
        yield schema.empty_table()
        while (messages := next(batches, None)) is not None:
            counted[0] += len(messages)
            columns = messages.arrow().columns
            zeros = pa.repeat(pa.scalar(0, pa.int32()), len(messages))
            columns += [pa.DictionaryArray.from_arrays(zeros, pa.array([value])) for value in constant.values()]
            yield pa.table(columns, schema=schema)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        # A panic of the reader is no `Exception`, and also ends this capture alone.
        text = error.strerror if isinstance(error, OSError) and error.strerror else f"{job.path}: {error!r}"
        raise _Unreadable(text.replace(path, job.path)) from error


def _temporary(place: Path, run: str) -> Path:
    """A name that no reader takes for a file of the dataset, and that the run's end finds."""
    return place.with_name(f".{place.name}.{run}.{os.getpid()}.tmp")


def write_error(job: Job, cause: str, error: str, messages: int | None, run: str) -> Path:
    """Writes the row of a capture that could not be converted. Returns its file."""
    name = job.name if cause == "capture" else f"{job.name}.{cause}"
    place = Path(job.dataset, "errors", f"{name}.parquet")
    place.parent.mkdir(parents=True, exist_ok=True)
    row = {
        "capture": job.path,
        "board": job.labels["board"],
        "day": job.labels["day"],
        "cause": cause,
        "error": error,
        "messages_before": messages,
        "size_bytes": job.size_bytes,
        "at": datetime.datetime.now(datetime.UTC),
    }
    temporary = _temporary(place, run)
    pq.write_table(pa.Table.from_pylist([row], ERRORS), temporary)
    os.replace(temporary, place)
    return place


def convert_one(job: Job, run: str) -> Result:
    """Converts a capture, or writes its row of errors. Raises what the dataset's disk raises."""
    begun_s, cpu_s, counted, failed = time.perf_counter(), time.process_time(), [0], None
    place = job.place
    place.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(place, run)
    try:
        with _local(job) as path:
            tables = _tables(job, path, counted)
            first = next(tables)
            with pq.ParquetWriter(temporary, first.schema, compression="zstd") as writer:
                for table in tables:
                    writer.write_table(table)
        os.replace(temporary, place)
    except _Unreadable as error:
        temporary.unlink(missing_ok=True)
        failed = str(error)
        place = write_error(job, "capture", failed, counted[0], run)
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    elapsed_s, cpu_s = time.perf_counter() - begun_s, time.process_time() - cpu_s
    return Result(job, place, counted[0], failed, elapsed_s, cpu_s, os.getpid(), peak_bytes)
