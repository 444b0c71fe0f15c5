"""`python -m barewire.fleet`: captures to a dataset, and questions to it."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from typing import Any

from barewire import fleet
from barewire._errors import ArgumentError, Error

EXIT_CODES = """exit codes: 0 all is well; 1 it failed; 2 wrong arguments; 3 the dataset is whole but for captures that cannot be read, which
are rows of errors; 130 Ctrl-C: what was converted stays, and the same call goes on from there"""


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not value:
        raise argparse.ArgumentTypeError("write KEY=VALUE")
    return key, value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m barewire.fleet",
        description="Messages of many captures as one Parquet dataset.",
        epilog=EXIT_CODES,
    )
    commands = parser.add_subparsers(dest="command", required=True)

    convert = commands.add_parser(
        "convert",
        help="make or continue a dataset of captures",
        description="Each capture becomes a file of the dataset. Those that are there already are skipped.",
        epilog=EXIT_CODES,
    )
    convert.add_argument("paths", nargs="+", metavar="CAPTURE", help="a file, a folder, a pattern in quotes, or a URL of fsspec")
    convert.add_argument("--dataset", required=True, metavar="DIR", help="the dataset's folder")
    where = convert.add_mutually_exclusive_group()
    where.add_argument("--workers", type=int, metavar="N", help="processes of this machine [default: its processors]")
    where.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler, as tcp://host:8786")
    convert.add_argument("--label", action="append", type=_pair, default=[], metavar="KEY=VALUE",
                         help="of all captures, over what their paths say: board=…, day=2026-11-30, firmware=…")
    convert.add_argument("--chip", action="append", default=[], metavar="[CS=]NAME", help="the chip, as of barewire scope")
    convert.add_argument("--cs", metavar="CHANNEL,…|none", help="the channels of the chip selects")
    for name in ("clk", "mosi", "miso"):
        convert.add_argument(f"--{name}", metavar="CHANNEL", help=f"the channel of {'SCK' if name == 'clk' else name.upper()}")
    convert.add_argument("--cs-active", choices=("low", "high"), help="the level at which chip selects are active")
    convert.add_argument("--mode", type=int, choices=range(4), help="the SPI mode")
    convert.add_argument("--bits", type=int, metavar="1-32", help="the bits of a word")
    convert.add_argument("--samplerate", type=int, metavar="HZ", help="in place of what sigrok's files say")
    convert.add_argument("--glitch-ns", type=float, default=0, metavar="NS", help="leave out pulses that are shorter")
    convert.add_argument("--gap-ns", type=float, metavar="NS", help="without chip selects, a longer pause ends a message")
    convert.add_argument("--retry", action="store_true", help="try captures again that could not be read")
    convert.set_defaults(run=_convert)

    def question(name: str, about: str) -> argparse.ArgumentParser:
        asked = commands.add_parser(name, help=about, description=about.capitalize() + ".")
        asked.add_argument("dataset", metavar="DIR", help="the dataset's folder")
        return asked

    for name, about in (
        ("p99", "p50, p99 and maximum of each figure, by board or other columns"),
        ("outliers", "boards whose p99 lies far from that of the others"),
        ("drift", "how medians change from day to day"),
    ):
        asked = question(name, about)
        asked.add_argument("--by", default="board", metavar="COLUMN,…", help="columns or labels [default: board]")
        asked.add_argument("--sql", action="store_true", help="print the question's SQL in place of its answer")
        if name == "outliers":
            asked.add_argument("--factor", type=float, default=5, help="far is more than so many spreads [default: 5]")
        asked.set_defaults(run=_ask)
    question("errors", "captures that could not be converted, and why").set_defaults(run=_ask)
    for command in commands.choices.values():
        command.add_argument("--json", action="store_true", help="a line of JSON for each row")
    return parser


def _options(args: argparse.Namespace) -> dict[str, Any]:
    names = ("clk", "mosi", "miso", "cs_active", "mode", "bits", "samplerate", "glitch_ns", "gap_ns")
    options = {name: value for name in names if (value := getattr(args, name)) is not None}
    if args.cs:
        options["cs"] = args.cs.split(",")
    if args.chip:
        options["chip"] = {cs: name for cs, _, name in (chip.rpartition("=") for chip in args.chip)}
    return options


def _bar(done: int, total: int) -> None:
    """A line on a terminal."""
    end = "\n" if done == total else ""
    print(f"\r{done} of {total} captures", end=end, file=sys.stderr, flush=True)


def _convert(args: argparse.Namespace) -> int:
    given = dict(args.label)
    report = fleet.convert(
        args.paths,
        args.dataset,
        labels=lambda path: {**fleet.default_labels(path), **given},
        options=_options(args),
        client=args.scheduler,
        workers=args.workers,
        retry=args.retry,
        progress=_bar if sys.stderr.isatty() else None,
    )
    print(json.dumps(dataclasses.asdict(report)) if args.json else report)
    return 3 if report.failed or report.failed_before else 0


def _ask(args: argparse.Namespace) -> int:
    if args.command == "errors":
        table = fleet.errors(args.dataset)
    else:
        by = args.by.split(",") if args.by else []
        more = {"factor": args.factor} if args.command == "outliers" else {}
        if args.sql:
            print(fleet.sql(args.command, args.dataset, by=by, **more))
            return 0
        table = getattr(fleet, args.command)(args.dataset, by=by, **more)
    rows = table.to_pylist()
    if args.json:
        for row in rows:
            print(json.dumps(row, default=str))
    else:
        print(_table(table.column_names, rows))
    return 0


def _table(names: Sequence[str], rows: Sequence[dict[str, Any]]) -> str:
    """Columns side by side: texts to the left, numbers to the right."""

    def text(value: Any) -> str:
        return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)

    cells = [[text(row[name]) for name in names] for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    numbers = [any(isinstance(row[name], int | float) for row in rows) for name in names]

    def line(values: Sequence[str]) -> str:
        placed = (
            value.rjust(width) if number else value.ljust(width)
            for value, width, number in zip(values, widths, numbers, strict=True)
        )
        return "  ".join(placed).rstrip()

    return "\n".join([line(names), *map(line, cells)])


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit code."""
    args = _parser().parse_args(arguments)
    try:
        return int(args.run(args))
    except ArgumentError as error:
        print(f"error: {error.strerror}", file=sys.stderr)
        return 2
    except (Error, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped as asked: the same call goes on from here", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
