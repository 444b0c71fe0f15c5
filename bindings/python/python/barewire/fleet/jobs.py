"""Which captures there are, their labels, and which are done.

A file's name has two parts: what the capture is (its path), and what was made of it (size, time, labels and options). A capture
that changed has another second part; its old file goes when the new one stands.
"""

from __future__ import annotations

import datetime
import errno
import glob
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from barewire._errors import ArgumentError
from barewire.scope import COLUMNS

VERSION = 1
"""Of the dataset's schema: files of another one are made again."""

SUFFIXES = (".sr", ".vcd", ".csv")
"""What is taken from a folder, beside the folders of Saleae's binary export."""

Labels = Callable[[str], Mapping[str, str]]


@dataclass(frozen=True)
class Job:
    """A capture to convert."""

    path: str
    """Its path, absolute, or its URL."""
    size_bytes: int
    modified: str
    """When it was modified, as its file system says it."""
    labels: Mapping[str, str]
    options: Mapping[str, Any]
    dataset: str

    @property
    def capture_id(self) -> str:
        """The capture, whatever is in it."""
        return hashlib.sha256(self.path.encode()).hexdigest()[:16]

    @property
    def name(self) -> str:
        """Of its files in the dataset."""
        what = [VERSION, self.size_bytes, self.modified, dict(self.labels), dict(self.options)]
        text = json.dumps(what, sort_keys=True, default=list)
        return f"{self.capture_id}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    @property
    def place(self) -> Path:
        """The file of its messages."""
        board, day = (quote(self.labels[key], safe=" ") for key in ("board", "day"))
        return Path(self.dataset, "messages", f"board={board}", f"day={day}", f"{self.name}.parquet")


def is_url(path: str) -> bool:
    """Whether it is fsspec's."""
    return re.match(r"[a-z][a-z0-9+.-]*(://|::)", path) is not None and not path.startswith("file://")


def default_labels(path: str) -> dict[str, str]:
    """The `key=value` parts of a path. `convert` adds `board` and `day` where they lack."""
    parts = (part.partition("=") for part in re.split(r"[/\\]", path)[:-1])
    return {key: value for key, equals, value in parts if equals and value}


def _labelled(path: str, found: Mapping[str, str], modified: datetime.datetime) -> dict[str, str]:
    """Labels with `board` and `day`: else the folder's name, and the day of the file's time, in UTC."""
    labels = {key: str(value) for key, value in found.items()}
    folder = re.split(r"[/\\]", path)[-2:-1]
    labels.setdefault("board", folder[0] if folder and folder[0] else "unknown")
    labels.setdefault("day", modified.astimezone(datetime.UTC).date().isoformat())
    for key, value in labels.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key) or key in COLUMNS or key == "capture":
            raise ArgumentError(
                errno.EINVAL, f"{path}: {key!r} is no label: a word, and none of the messages' columns"
            )
        if not value:
            raise ArgumentError(errno.EINVAL, f"{path}: the label {key} is empty")
    try:
        datetime.date.fromisoformat(labels["day"])
    except ValueError:
        text = f"{path}: the label day is {labels['day']!r}: write it as 2026-11-30"
        raise ArgumentError(errno.EINVAL, text) from None
    return labels


def _local(pattern: str) -> Iterable[str]:
    """Captures of a path, a pattern or a folder."""
    pattern = pattern.removeprefix("file://")
    paths = [pattern] if os.path.exists(pattern) else glob.glob(pattern, recursive=True)
    for path in sorted(paths):
        if not os.path.isdir(path):
            # A file of Saleae's binary export is one channel: the capture is the folder.
            is_channel = re.fullmatch(r"digital_\d+\.bin", os.path.basename(path))
            yield os.path.dirname(path) if is_channel else path
            continue
        for folder, folders, files in os.walk(path):
            folders.sort()
            if any(re.fullmatch(r"digital_\d+\.bin", name) for name in files):
                yield folder
            yield from (
                os.path.join(folder, name) for name in sorted(files) if name.lower().endswith(SUFFIXES)
            )


def _remote(pattern: str) -> Iterable[tuple[str, int, str, datetime.datetime]]:
    """Captures of a URL, with size, version and time."""
    import fsspec

    files, path = fsspec.core.url_to_fs(pattern)
    for found in sorted(files.glob(path)) if glob.has_magic(path) else [path]:
        info = files.info(found)
        try:
            modified = files.modified(found)
        except (NotImplementedError, KeyError, TypeError):
            # HTTP servers need not tell one; such a capture is known by its size and tag.
            modified = datetime.datetime.now(datetime.UTC)
            version = str(info.get("ETag", ""))
        else:
            version = modified.isoformat()
        yield files.unstrip_protocol(found), int(info.get("size") or 0), version, modified


def find(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    dataset: str,
    labels: Labels | None,
    options: Mapping[str, Any],
) -> list[Job]:
    """A job for each capture, each once. Raises `ArgumentError` for a pattern without any, and for wrong labels."""
    patterns = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    jobs: dict[str, Job] = {}
    for pattern in [os.fspath(path) for path in patterns]:
        count = 0
        if is_url(pattern):
            captures = _remote(pattern)
        else:
            captures = (_stat(path) for path in _local(pattern))
        for path, size_bytes, version, modified in captures:
            count += 1
            named = _labelled(path, (labels or default_labels)(path), modified)
            jobs[path] = Job(path, size_bytes, version, named, options, dataset)
        if count == 0:
            raise ArgumentError(errno.ENOENT, f"no capture matches {pattern}")
    return list(jobs.values())


def _stat(path: str) -> tuple[str, int, str, datetime.datetime]:
    """A local capture; of a folder, its files together."""
    path = os.path.abspath(path)
    files = sorted(os.scandir(path), key=lambda file: file.name) if os.path.isdir(path) else [Path(path)]
    stats = [file.stat() for file in files]
    newest_ns = max(stat.st_mtime_ns for stat in stats)
    modified = datetime.datetime.fromtimestamp(newest_ns / 1e9, datetime.UTC)
    return path, sum(stat.st_size for stat in stats), str(newest_ns), modified


@dataclass(frozen=True)
class Done:
    """What the dataset has: its files by the captures' ids."""

    messages: Mapping[str, Sequence[Path]]
    errors: Mapping[str, Sequence[Path]]

    @classmethod
    def read(cls, dataset: str) -> Done:
        """Looks at the files' names alone."""

        def by_capture(folder: str) -> dict[str, list[Path]]:
            found: dict[str, list[Path]] = {}
            for path in sorted(Path(dataset, folder).rglob("*.parquet")):
                found.setdefault(path.stem.partition("-")[0], []).append(path)
            return found

        return cls(by_capture("messages"), by_capture("errors"))

    def has(self, job: Job) -> bool:
        """Whether the capture's messages are there, as they are now. What was made of it before goes."""
        for place in self.messages.get(job.capture_id, ()):
            if place.stem == job.name:
                self.remove_old(job, place)
                return True
        return False

    def has_failed(self, job: Job) -> bool:
        """Whether the capture, as it is now, could not be read. One on which workers died may be read yet."""
        return any(path.stem == job.name for path in self.errors.get(job.capture_id, ()))

    def remove_old(self, job: Job, place: Path) -> None:
        """Removes what was made of the capture before, once its file stands at `place`."""
        for kept in (self.messages, self.errors):
            for path in kept.get(job.capture_id, ()):
                if path != place:
                    path.unlink(missing_ok=True)
