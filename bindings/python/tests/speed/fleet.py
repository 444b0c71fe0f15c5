"""How fast captures become a dataset: by one worker of this machine, and by two.

Run it as `python bindings/python/tests/speed/fleet.py CAPTURES MESSAGES`. It makes so many captures of so many messages, in a temporary
folder. A second is also told as a processor's: on a machine that does other things too, only that one repeats.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import made

from barewire import fleet


def main(captures: int, messages: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for number in range(captures):
            path = root / "captures" / f"board=b{number % 16}" / "day=2026-11-30" / f"{number}.vcd"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(made.vcd(made.drawn(number, messages)))
        alone = 0.0
        for workers in (1, 2):
            dataset = root / f"by{workers}"
            report = fleet.convert(root / "captures", dataset, workers=workers)
            assert report.converted == captures and report.failed == 0, report
            stored = sum(path.stat().st_size for path in dataset.rglob("*.parquet"))
            rate = captures / report.elapsed_s
            alone = alone or rate
            print(
                f"{workers} worker{'s'[: workers - 1]}: {rate:.0f} captures/s ({rate / alone:.2f} of one worker), "
                f"{captures / report.cpu_s:.0f} captures and {report.messages / report.cpu_s:,.0f} messages a second of "
                f"processor time, {report.capture_bytes / report.cpu_s / 1e6:.1f} MB/s; a worker takes at most "
                f"{max(report.peak_bytes.values()) / 2**20:.0f} MiB; {stored / report.messages:.1f} bytes a message"
            )


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:3]))
