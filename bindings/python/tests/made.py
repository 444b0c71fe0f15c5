"""Captures with a known truth: a VCD of one bus in mode 0, words of 8 bits, a tick of a nanosecond."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Made:
    """A message, and the times before, in and behind it."""

    mosi: bytes
    miso: bytes
    inactive_ns: int
    lead_ns: int
    half_ns: int
    """Half a clock."""
    gap_ns: Sequence[int]
    """Between words: the clock's low time included."""
    lag_ns: int


def drawn(seed: int, messages: int) -> list[Made]:
    """Messages of 1 to 4 words with times of a board, which depend on the seed alone."""
    random = Random(seed)
    made = []
    for _ in range(messages):
        words = random.randint(1, 4)
        half_ns = random.choice((40, 50, 55))
        made.append(
            Made(
                random.randbytes(words),
                random.randbytes(words),
                random.randint(400, 90_000),
                random.randint(100, 300),
                half_ns,
                [half_ns + random.randint(0, 500) for _ in range(words - 1)],
                random.randint(150, 400),
            )
        )
    return made


def vcd(messages: Sequence[Made]) -> str:
    """The capture."""
    names = {"c": "sck", "o": "mosi", "i": "miso", "s": "cs0"}
    lines = ["$timescale 1 ns $end", *(f"$var wire 1 {key} {name} $end" for key, name in names.items())]
    lines += ["$enddefinitions $end", "#0", "0c", "0o", "0i", "1s"]
    now = 0
    for one in messages:
        now += one.inactive_ns
        lines += [f"#{now}", "0s"]
        now += one.lead_ns
        for word, (out, back) in enumerate(zip(one.mosi, one.miso, strict=True)):
            if word > 0:
                now += one.gap_ns[word - 1]
            for bit in range(7, -1, -1):
                # Data is there as SCK rises: what changes in its sample is read with it.
                lines += [f"#{now - 10}", f"{out >> bit & 1}o", f"{back >> bit & 1}i", f"#{now}", "1c"]
                now += one.half_ns
                lines += [f"#{now}", "0c"]
                now += one.half_ns if bit else 0
        now += one.lag_ns
        lines += [f"#{now}", "1s"]
    lines.append(f"#{now + 1_000}")
    return "\n".join(lines) + "\n"
