"""Dask runs the tasks, and what became of them is counted.

How it works:
1. What is done is told by the dataset's file names, and left out.
2. At most `AHEAD` tasks for each worker's thread are with the scheduler at a time: its memory does not grow with the number of captures.
3. A task whose worker dies is run again by Dask, on another worker. If it takes several with it (`KilledWorker`), it is a row of errors.
4. Temporary files of this run, which killed workers left, are removed.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from barewire._errors import ArgumentError, Error
from barewire.fleet.jobs import Done, Job, Labels, find
from barewire.fleet.task import Result, convert_one, write_error

if TYPE_CHECKING:
    from distributed import Client, Future

AHEAD = 8
"""Tasks with the scheduler for each thread of a worker: enough that none waits."""


@dataclass
class Report:
    """What a conversion did."""

    converted: int = 0
    """Captures that have a file of messages now."""
    skipped: int = 0
    """Captures that had one."""
    failed: int = 0
    """Captures that have a row of errors now."""
    failed_before: int = 0
    """Captures that could not be read in an earlier run, and are the same; `retry=True` tries them again."""
    messages: int = 0
    """Of the captures that were converted."""
    capture_bytes: int = 0
    """The same captures' sizes."""
    elapsed_s: float = 0
    """From the first task to the last."""
    worker_s: float = 0
    """The tasks' own times together."""
    cpu_s: float = 0
    """The processor time of the workers' processes during their tasks."""
    peak_bytes: dict[int, int] = field(default_factory=dict)
    """The most memory that each worker's process had, by process id."""

    def __str__(self) -> str:
        rate = self.converted / self.cpu_s if self.cpu_s else 0
        text = f"{self.converted} captures converted, {self.messages} messages"
        if self.converted:
            peak = max(self.peak_bytes.values(), default=0)
            text += (
                f", in {self.elapsed_s:.1f} s: {rate:.0f} captures a second of processor time, "
                f"workers of at most {peak / 2**20:.0f} MiB"
            )
        text += f"; {self.skipped} were there"
        if self.failed or self.failed_before:
            text += f"; {self.failed} cannot be read, {self.failed_before} could not before: rows of errors"
        return text

    def _add(self, result: Result) -> None:
        self.worker_s += result.worker_s
        self.cpu_s += result.cpu_s
        self.peak_bytes[result.pid] = max(result.peak_bytes, self.peak_bytes.get(result.pid, 0))
        if result.error is None:
            self.converted += 1
            self.messages += result.messages
            self.capture_bytes += result.job.size_bytes
        else:
            self.failed += 1


@contextlib.contextmanager
def _cluster(client: Client | str | None, workers: int | None) -> Iterator[Client]:
    """The caller's client, or one of an address, or of processes of this machine, which end behind it."""
    from distributed import Client, LocalCluster

    if isinstance(client, Client):
        yield client
    elif isinstance(client, str):
        with Client(client) as connected:
            yield connected
    else:
        count = workers or len(os.sched_getaffinity(0))
        with (
            LocalCluster(n_workers=count, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0") as cluster,
            Client(cluster) as own,
        ):
            yield own


def convert(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    dataset: str | os.PathLike[str],
    *,
    labels: Labels | None = None,
    options: Mapping[str, Any] | None = None,
    client: Client | str | None = None,
    workers: int | None = None,
    retry: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> Report:
    """Converts captures to the dataset: a folder that all workers reach by the same path.

    `paths` are files, folders, patterns (`captures/**/*.vcd`) or fsspec's URLs. `labels(path)` gives a capture's labels: `board`,
    `day` (`2026-11-30`) and any others, texts; without it they are the `key=value` parts of the path, and where `board` or `day`
    lacks, it is the folder's name and the file's day in UTC. `options` are those of `barewire.scope.open`, for all captures.

    `client` is a Dask client or a scheduler's address; without one, `workers` processes of this machine work (one for each
    processor) and end with the call. Such a program needs `if __name__ == "__main__":`, as for `multiprocessing`.

    A capture that is in the dataset as it is now is skipped; so is one that could not be read, unless `retry`. `progress` is called
    with captures done and all.

    Raises `ArgumentError` for a pattern without a capture, and for wrong labels or options; `OSError` if the dataset cannot be
    written.
    """
    folder = os.path.abspath(dataset)
    options = dict(options or {})
    _check(options)
    found = find(paths, folder, labels, options)
    done, report, todo = Done.read(folder), Report(), []
    for job in found:
        if done.has(job):
            report.skipped += 1
        elif not retry and done.has_failed(job):
            report.failed_before += 1
        else:
            todo.append(job)
    Path(folder, "messages").mkdir(parents=True, exist_ok=True)
    Path(folder, "errors").mkdir(exist_ok=True)
    told = report.skipped + report.failed_before
    if progress is not None:
        progress(told, len(found))
    if todo:
        run = uuid.uuid4().hex[:12]
        try:
            with _cluster(client, workers) as connected:
                begun_s = time.perf_counter()
                for result in _results(connected, todo, run):
                    report._add(result)
                    done.remove_old(result.job, result.place)
                    told += 1
                    if progress is not None:
                        progress(told, len(found))
                report.elapsed_s = time.perf_counter() - begun_s
        finally:
            for left in Path(folder).rglob(f".*.{run}.*.tmp"):
                left.unlink(missing_ok=True)
    return report


def _check(options: Mapping[str, Any]) -> None:
    """Finds wrong options before any capture is opened: each would be a row of errors."""
    from barewire import scope

    try:
        scope.open("/dev/null", **options)
    except ArgumentError:
        raise
    except TypeError as error:
        raise ArgumentError(errno.EINVAL, f"options: {error}") from None
    except Error:
        # The empty file.
        pass


def _results(client: Client, jobs: list[Job], run: str) -> Iterator[Result]:
    """What became of each job, as they end."""
    from distributed import KilledWorker, as_completed

    threads = sum(client.nthreads().values()) or 1
    waiting = iter(jobs)
    running: dict[str, tuple[Job, Future[Any]]] = {}

    def submit(count: int) -> list[Future[Any]]:
        futures = []
        for job in itertools.islice(waiting, count):
            # No two runs share a key: else a second would have the first one's result.
            key = f"barewire-{run}-{job.name}"
            future = client.submit(convert_one, job, run, key=key, pure=False)
            running[key] = job, future
            futures.append(future)
        return futures

    try:
        ended = as_completed(submit(AHEAD * threads), raise_errors=False)
        for future in ended:
            job, _ = running.pop(future.key)
            error = future.exception()
            if error is None:
                yield future.result()
            elif isinstance(error, KilledWorker) and job.place.exists():
                # It was written, and the worker died before it could say so.
                rows = pq.read_metadata(job.place).num_rows
                yield Result(job, job.place, rows, None, 0, 0, 0, 0)
            elif isinstance(error, KilledWorker):
                text = f"{job.path}: several workers died on it, the last of them {error.last_worker.address}"
                place = write_error(job, "worker", text, None, run)
                yield Result(job, place, 0, text, 0, 0, 0, 0)
            else:
                raise error
            ended.update(submit(1))
    finally:
        # Of a run that ends early, on a cluster that goes on.
        client.cancel([future for _, future in running.values()])
