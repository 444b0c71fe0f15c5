"""Fleets of captures: a dataset by two workers, of which one is killed, beside one made in this process."""

from __future__ import annotations

import datetime
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import made
import pytest
from conftest import HERE
from test_scope import EXAMPLE, command

import barewire

for needed in ("pyarrow", "distributed", "fsspec", "duckdb"):
    pytest.importorskip(needed, reason=f"no {needed}: pip install './bindings/python[fleet]'")

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client, LocalCluster

from barewire import fleet
from barewire.fleet.jobs import find
from barewire.fleet.task import convert_one

PAGE = HERE / "../../../docs/fleet.md"
CAPTURES = 1_000
MESSAGES = 6
BROKEN = (17, 400, 998)
BOARDS = 8


def messages_of(dataset: Path) -> pa.Table:
    """All rows, in an order."""
    files = f"read_parquet('{dataset}/messages/**/*.parquet', union_by_name=true)"
    with duckdb.connect() as connection:
        return connection.sql(f"SELECT * FROM {files} ORDER BY capture, message").to_arrow_table()


def leftovers(dataset: Path) -> list[Path]:
    """Files that are none of the dataset's."""
    return [path for path in dataset.rglob("*") if path.is_file() and path.suffix != ".parquet"]


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Captures of eight boards on five days; three are broken."""
    root = tmp_path_factory.mktemp("captures")
    for number in range(CAPTURES):
        folder = root / f"board=b{number % BOARDS}" / f"day=2026-11-0{1 + number // 200}" / f"firmware=1.{number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        text = made.vcd(made.drawn(number, MESSAGES))
        path = folder / f"{number}.vcd"
        path.write_text(text)
    for number, damage in zip(BROKEN, ("", "no capture", None), strict=True):
        [path] = root.rglob(f"{number}.vcd")
        path.write_text(damage if damage is not None else path.read_text()[:400] + "\n#3\nx y z\n")
    return root


@pytest.fixture(scope="module")
def cluster() -> Iterator[Client]:
    """Two workers of this machine, each a process."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0") as local,
        Client(local) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def dataset(captures: Path, cluster: Client, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the workers make, though one is killed in the middle; and a second run makes nothing."""
    made_there = tmp_path_factory.mktemp("dataset")
    workers = set(cluster.run(os.getpid).values())
    killed: list[int] = []

    def progress(done: int, of: int) -> None:
        assert of == CAPTURES
        if done >= CAPTURES // 3 and not killed:
            killed.append(min(workers))
            os.kill(killed[0], signal.SIGKILL)

    report = fleet.convert(captures / "**/*.vcd", made_there, client=cluster, progress=progress)
    cluster.wait_for_workers(2)
    assert killed and killed[0] not in cluster.run(os.getpid).values()
    assert (report.converted, report.failed, report.skipped) == (CAPTURES - 3, 3, 0), report
    again = fleet.convert(captures / "**/*.vcd", made_there, client=cluster)
    assert (again.converted, again.skipped, again.failed, again.failed_before) == (0, CAPTURES - 3, 0, 3), again
    return made_there


def test_the_dataset_is_the_serial_one(captures: Path, dataset: Path, tmp_path: Path) -> None:
    results = [convert_one(job, "serial") for job in find(captures / "**/*.vcd", str(tmp_path), None, {})]
    assert sum(result.error is not None for result in results) == 3
    serial, parallel = messages_of(tmp_path), messages_of(dataset)
    assert serial.num_rows == MESSAGES * (CAPTURES - 3) == parallel.num_rows
    assert parallel.equals(serial)
    assert not leftovers(dataset) and not leftovers(tmp_path)
    names = {path.relative_to(dataset) for path in (dataset / "messages").rglob("*.parquet")}
    assert names == {path.relative_to(tmp_path) for path in (tmp_path / "messages").rglob("*.parquet")}
    assert len(names) == CAPTURES - 3


def test_rows_are_what_was_made(dataset: Path) -> None:
    rows = messages_of(dataset).to_pylist()
    for number in (0, 500, 999):
        own = [row for row in rows if row["capture"].endswith(f"/{number}.vcd")]
        truth = made.drawn(number, MESSAGES)
        assert [row["lead_ns"] for row in own] == [one.lead_ns for one in truth]
        assert [row["mosi"] for row in own] == [one.mosi for one in truth]
        assert own[0]["cs_inactive_ns"] is None
        where = (own[0]["board"], str(own[0]["day"]), own[0]["firmware"])
        assert where == (f"b{number % BOARDS}", f"2026-11-0{1 + number // 200}", f"1.{number % 2}")


def test_broken_captures_are_rows(dataset: Path) -> None:
    rows = fleet.errors(dataset).to_pylist()
    assert {Path(row["capture"]).stem for row in rows} == {str(number) for number in BROKEN}
    for row in rows:
        assert row["cause"] == "capture" and row["error"].startswith(row["capture"] + ": "), row
    assert "it is empty" in next(row["error"] for row in rows if row["size_bytes"] == 0)


def test_percentiles_are_the_commands(tmp_path: Path) -> None:
    """On captures of one kind of message, for the command sums up by kinds."""
    drawn = [one for seed in range(40) for one in made.drawn(seed, 20) if len(one.mosi) == 2]
    one_kind = [replace(one, mosi=b"\x9f\0") for one in drawn]
    for count in (1, 2, 99, 100, 101, len(one_kind)):
        path = tmp_path / f"{count}.vcd"
        path.write_text(made.vcd(one_kind[:count]))
        for job in find(path, str(tmp_path / f"of{count}"), None, {}):
            assert convert_one(job, "serial").error is None
        ran = subprocess.run([command(), "scope", str(path), "--json"], capture_output=True, text=True, check=True)
        [kind] = json.loads(ran.stdout)["kinds"]
        for row in fleet.p99(tmp_path / f"of{count}", by=()).to_pylist():
            # Two words have one gap.
            figure = row["figure"].replace("gap_ns_max", "gap_ns").replace("gap_ns_median", "gap_ns")
            theirs = kind[figure]
            ours = {"count": row["messages"], "p50": row["p50"], "p99": row["p99"], "max": row["max"]}
            assert ours == theirs, (count, row)


def test_questions_by_columns(dataset: Path) -> None:
    boards = fleet.p99(dataset, by=("board", "firmware")).to_pylist()
    assert {(row["board"], row["firmware"]) for row in boards} == {(f"b{n}", f"1.{n % 2}") for n in range(BOARDS)}
    assert sum(row["messages"] for row in boards if row["figure"] == "lead_ns") == MESSAGES * (CAPTURES - 3)
    assert fleet.outliers(dataset).num_rows == 0, "drawn from one distribution"
    drift = fleet.drift(dataset).to_pylist()
    assert {row["days"] for row in drift} == {5} and len(drift) == 7 * BOARDS
    with pytest.raises(barewire.ArgumentError, match="nothing"):
        fleet.p99(dataset, by=("nothing",))
    with pytest.raises(barewire.ArgumentError, match="no column"):
        fleet.p99(dataset, by=("board; DROP",))


def test_a_slow_board_and_a_drifting_one_are_found(tmp_path: Path) -> None:
    source, target = tmp_path / "captures", tmp_path / "dataset"
    for board in range(6):
        for day in range(1, 5):
            folder = source / f"board={board}" / f"day=2026-11-0{day}"
            folder.mkdir(parents=True)
            extra_ns = 3_000 if board == 2 else 100 * day if board == 4 else 0
            messages = [replace(one, lead_ns=one.lead_ns + extra_ns) for one in made.drawn(day, 60)]
            (folder / "x.vcd").write_text(made.vcd(messages))
    for job in find(source, str(target), None, {}):
        assert convert_one(job, "serial").error is None
    far = [row for row in fleet.outliers(target).to_pylist() if row["figure"] == "lead_ns"]
    assert {row["board"] for row in far} == {"2", "4"}
    assert far[0]["board"] == "2" and far[0]["distance"] > 50 and far[0]["of_groups"] == 6
    drifts = {row["board"]: row for row in fleet.drift(target).to_pylist() if row["figure"] == "lead_ns"}
    steady = drifts["0"]["a_day"]
    assert abs(drifts["4"]["a_day"] - steady - 100) < 1e-6 and drifts["2"]["a_day"] == pytest.approx(steady)


def test_a_capture_that_changes_is_made_again(tmp_path: Path) -> None:
    path, target = tmp_path / "board7" / "x.vcd", tmp_path / "dataset"
    path.parent.mkdir()
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as local, Client(
        local
    ) as client:

        def run(**more: Any) -> fleet.Report:
            return fleet.convert(path.parent, target, client=client, **more)

        path.write_text(made.vcd(made.drawn(1, 5)))
        os.utime(path, (1_800_000_000, 1_800_000_000))
        assert run().converted == 1
        table = messages_of(target)
        assert table.num_rows == 5 and set(table["board"].to_pylist()) == {"board7"}
        day = datetime.datetime.fromtimestamp(1_800_000_000, datetime.UTC).date()
        assert {str(one) for one in table["day"].to_pylist()} == {str(day)}
        path.write_text(made.vcd(made.drawn(1, 6)))
        assert run().converted == 1 and messages_of(target).num_rows == 6
        # Other labels and options too.
        assert run(labels=lambda _: {"board": "a b/c", "day": "2026-01-02"}).converted == 1
        assert set(messages_of(target)["board"].to_pylist()) == {"a b/c"}
        assert run(options={"bits": 4}).converted == 1 and messages_of(target).num_rows == 6
        # What breaks loses its messages, and what is mended its error.
        path.write_text("broken")
        assert run().failed == 1 and run().failed_before == 1 and run(retry=True).failed == 1
        assert fleet.errors(target).num_rows == 1 and not list((target / "messages").rglob("*.parquet"))
        path.write_text(made.vcd(made.drawn(1, 7)))
        assert run().converted == 1 and run().skipped == 1
        assert fleet.errors(target).num_rows == 0 and messages_of(target).num_rows == 7
        # A capture of a URL is copied.
        import fsspec

        with fsspec.open("memory://lab/board9/y.vcd", "w") as remote:
            remote.write(made.vcd(made.drawn(2, 4)))
        report = fleet.convert("memory://lab/*/*.vcd", target, client=client)
        assert report.converted == 1
        table = messages_of(target).to_pylist()
        assert [row["board"] for row in table if row["capture"].endswith("/lab/board9/y.vcd")] == ["board9"] * 4
        assert fleet.convert("memory://lab/*/*.vcd", target, client=client).skipped == 1
        wrong: list[tuple[Any, str]] = [
            (lambda: fleet.convert(tmp_path / "none*.vcd", target, client=client), "no capture matches"),
            (lambda: run(options={"chip": "nand"}), "nand"),
            (lambda: run(options={"speed": 1}), "speed"),
            (lambda: run(labels=lambda _: {"lead_ns": "1"}), "lead_ns"),
            (lambda: run(labels=lambda _: {"day": "yesterday"}), "2026-11-30"),
        ]
        for call, words in wrong:
            with pytest.raises(barewire.ArgumentError, match=words):
                call()


def test_what_kills_its_workers_is_a_row(captures: Path, tmp_path: Path) -> None:
    """Without any second try of Dask's."""
    import dask

    some = [str(path) for path in sorted(captures.rglob("*.vcd")) if int(path.stem) not in BROKEN][:60]
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
    ) as local, Client(local) as client:
        [worker] = client.run(os.getpid).values()
        killed: list[int] = []

        def progress(done: int, of: int) -> None:
            if done == 20 and not killed:
                killed.append(worker)
                os.kill(worker, signal.SIGKILL)

        report = fleet.convert(some, tmp_path, client=client, progress=progress)
        assert report.failed > 0 and report.converted + report.failed == 60, report
        rows = fleet.errors(tmp_path).to_pylist()
        assert len(rows) == report.failed and {row["cause"] for row in rows} == {"worker"}
        # They may be read yet.
        again = fleet.convert(some, tmp_path, client=client)
        assert (again.converted, again.failed) == (report.failed, 0)
        assert fleet.errors(tmp_path).num_rows == 0 and messages_of(tmp_path).num_rows == MESSAGES * 60
        assert not leftovers(tmp_path)


def run(*args: str) -> subprocess.CompletedProcess[str]:
    """The command line."""
    return subprocess.run(
        [sys.executable, "-m", "barewire.fleet", *args], capture_output=True, text=True, timeout=60, check=False
    )


def test_the_command_line(dataset: Path, tmp_path: Path) -> None:
    ran = run("p99", str(dataset), "--by", "board", "--json")
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.returncode == 0 and rows == fleet.p99(dataset).to_pylist()
    ran = run("errors", str(dataset))
    assert ran.returncode == 0 and len(ran.stdout.splitlines()) == 4 and "it is empty" in ran.stdout
    target = str(tmp_path / "set")
    convert = ("convert", str(EXAMPLE), "--dataset", target, "--workers", "1", "--chip", "mcp3008", "--label", "board=x")
    ran = run(*convert, "--label", "day=2026-11-30")
    assert ran.returncode == 0 and "1 captures converted, 3 messages" in ran.stdout, ran.stderr
    assert "single-ended 0" in run("p99", target, "--by", "kind").stdout
    (tmp_path / "bad.vcd").write_text("bad")
    ran = run("convert", str(tmp_path), str(EXAMPLE), "--dataset", target, "--workers", "1", "--json")
    assert ran.returncode == 3 and json.loads(ran.stdout)["failed"] == 1, ran
    text = run("p99", target, "--sql").stdout
    assert text.strip() == fleet.sql("p99", target)
    for args, code in ((("p99", str(tmp_path)), 2), (("convert", "x", "--dataset", target, "--cs-active", "up"), 2)):
        ran = run(*args)
        assert ran.returncode == code and "error" in ran.stderr, ran


def test_the_page_has_the_schema(dataset: Path) -> None:
    path = next((dataset / "messages").rglob("*.parquet"))
    about = json.loads(pq.read_schema(path).metadata[b"barewire"])
    assert about["mode"] == 0 and about["wires"]["sck"] == "sck" and len(about["why"]) > 2
    page = PAGE.read_text()
    for name in (*fleet.errors(dataset).column_names, *about):
        assert f"`{name}`" in page, name
