"""Samples a sine with the simulated MCP3008 of sim:rpi3, in one call, and plots it.

    python3 -m venv v && v/bin/pip install ./bindings/python && v/bin/python examples/sine.py

It needs nothing else. With NumPy the arithmetic is NumPy's; with matplotlib the plot is a PNG, else an SVG. Editors show
the cells (`# %%`) as a notebook.
"""

# %% Samples: 100,000 in one call
import math
import sys

import barewire

BUS = sys.argv[1] if len(sys.argv) > 1 else "sim:rpi3"
RATE_HZ = 50_000

with barewire.Bus(BUS) as bus:
    adc = barewire.Mcp3008(bus)
    samples = adc.sample(100_000, RATE_HZ, channel=0)

print(
    f"{len(samples.codes):,} samples of channel 0 on {BUS} at {samples.rate_hz:,.0f} Hz in {samples.elapsed_s:.2f} s"
    f" of the board's time, {samples.missed} missed"
)

# %% Volts, by hand, so that it runs without NumPy
volt = samples.vref_mv / 1000 / (samples.code_max + 1)
volts = [int(code) * volt for code in samples.codes]
times_s = [float(time_s) for time_s in samples.times_s]

# %% What the signal is: its mean, the frequency by its rising crossings, the amplitude by correlation
mean = sum(volts) / len(volts)
crossings = [
    before_s + (mean - before) / (after - before) * (after_s - before_s)
    for before, after, before_s, after_s in zip(volts, volts[1:], times_s, times_s[1:], strict=False)
    if before < mean <= after
]
# A converter's steps make several crossings near each other: the first of each counts.
firsts = [crossings[0]]
for crossing_s in crossings:
    if crossing_s - firsts[-1] > 1e-3:
        firsts.append(crossing_s)
frequency_hz = (len(firsts) - 1) / (firsts[-1] - firsts[0])

# Whole periods only: the correlation with the other wave is zero then.
whole = [(time_s, v) for time_s, v in zip(times_s, volts, strict=True) if firsts[0] <= time_s < firsts[-1]]
angle = 2 * math.pi * frequency_hz
sine = 2 / len(whole) * sum((v - mean) * math.sin(angle * time_s) for time_s, v in whole)
cosine = 2 / len(whole) * sum((v - mean) * math.cos(angle * time_s) for time_s, v in whole)
amplitude_v = math.hypot(sine, cosine)
print(f"a sine of {frequency_hz:.2f} Hz, {amplitude_v:.3f} V about {mean:.3f} V")

# %% The first three periods, plotted
SHOWN_S = 3 / frequency_hz
shown = [(1000 * time_s, v) for time_s, v in zip(times_s, volts, strict=True) if time_s < SHOWN_S]


def svg(points: list[tuple[float, float]]) -> str:
    """A plot without any package."""
    width, height, border = 800, 400, 50
    right, top = 1000 * SHOWN_S, samples.vref_mv / 1000

    def to_x(ms: float) -> float:
        return border + ms / right * (width - 2 * border)

    def to_y(v: float) -> float:
        return height - border - v / top * (height - 2 * border)

    line = " ".join(f"{to_x(ms):.1f},{to_y(v):.1f}" for ms, v in points)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for v in range(int(top) + 1):
        parts.append(f'<path d="M{border} {to_y(v):.1f}H{width - border}" stroke="#ddd"/>')
        parts.append(f'<text x="{border - 30}" y="{to_y(v) + 4:.1f}">{v} V</text>')
    for ms in range(0, int(right) + 1, 5):
        parts.append(f'<text x="{to_x(ms) - 12:.1f}" y="{height - border + 20}">{ms} ms</text>')
    parts.append(f'<polyline points="{line}" fill="none" stroke="#06c" stroke-width="1.5"/>')
    parts.append(f'<text x="{border}" y="30">{len(points)} samples of {BUS}: {frequency_hz:.2f} Hz, {amplitude_v:.3f} V</text></svg>')
    return "\n".join(parts)


try:
    import matplotlib  # type: ignore[import-not-found, unused-ignore]
except ImportError:
    path = "sine.svg"
    with open(path, "w", encoding="utf-8") as file:
        file.write(svg(shown))
else:
    matplotlib.use("Agg")
    from matplotlib import pyplot

    path = "sine.png"
    figure, axes = pyplot.subplots(figsize=(8, 4))
    axes.plot([ms for ms, _ in shown], [v for _, v in shown])
    axes.set(xlabel="ms", ylabel="V", title=f"{BUS}: {frequency_hz:.2f} Hz, {amplitude_v:.3f} V")
    axes.grid(visible=True)
    figure.savefig(path)
print(f"the first three periods are in {path}")
