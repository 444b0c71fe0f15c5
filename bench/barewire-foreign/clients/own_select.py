"""py-spidev with `no_cs`, and gpiod (libgpiod 2) for the chip select of a W25Q32JV at line 25: a read of the flash in
two messages, the line low over both. The file that is the first argument has the flash's content."""

import sys

import gpiod
import spidev
from gpiod.line import Direction, Value

LINE = 25

spi = spidev.SpiDev(0, 0)
spi.max_speed_hz = 8_000_000
spi.no_cs = True
assert spi.no_cs

with open(sys.argv[1], "rb") as file:
    content = file.read()
output = gpiod.LineSettings(direction=Direction.OUTPUT, active_low=True, output_value=Value.INACTIVE)
with gpiod.request_lines("/dev/gpiochip0", consumer="flash", config={LINE: output}) as lines:

    def read(address, length):
        spi.writebytes([0x03, *address.to_bytes(3, "big")])
        return bytes(spi.readbytes(length))

    for address in (0, 0x1234, 0x3FFF00):
        lines.set_value(LINE, Value.ACTIVE)
        seen = read(address, 256)
        lines.set_value(LINE, Value.INACTIVE)
        assert seen == content[address : address + 256], address
        assert read(address, 16) == b"\xff" * 16, "no chip is selected"
    # The same lines without `no_cs`: the node's own select leads to nothing.
    spi.no_cs = False
    lines.set_value(LINE, Value.ACTIVE)
    assert read(0x100, 16) == content[0x100:0x110]
    lines.set_value(LINE, Value.INACTIVE)
try:
    gpiod.request_lines("/dev/gpiochip0", config={8: output})
    raise SystemExit("the controller's own line was given")
except OSError as error:
    print(error)
print("read by a select of its own")
