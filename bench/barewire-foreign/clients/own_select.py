"""py-spidev and gpiod (libgpiod 2), whose line 25 selects a W25Q32JV: writes and reads pages of the file that is the first
argument, the line low over the messages of each operation. Its node's own select leads to nothing."""

import sys

import gpiod
import spidev
from gpiod.line import Direction, Value

LINE = 25

spi = spidev.SpiDev(0, 0)
spi.max_speed_hz = 8_000_000
with open(sys.argv[1], "rb") as file:
    image = file.read()
output = gpiod.LineSettings(direction=Direction.OUTPUT, active_low=True, output_value=Value.INACTIVE)
with gpiod.request_lines("/dev/gpiochip0", consumer="flash", config={LINE: output}) as lines:

    def operation(*messages, read=0):
        lines.set_value(LINE, Value.ACTIVE)
        for message in messages:
            spi.writebytes2(message)
        answer = bytes(spi.readbytes(read)) if read else b""
        lines.set_value(LINE, Value.INACTIVE)
        return answer

    for address, no_cs in ((0x000000, True), (0x012300, False), (0x3FFF00, True)):
        spi.no_cs = no_cs
        assert spi.no_cs == no_cs
        place, page = list(address.to_bytes(3, "big")), list(image[address : address + 256])
        operation([0x06])
        operation([0x02], place, page)
        while operation([0x05], read=1)[0] & 1:
            pass
        assert list(operation([0x03], place, read=256)) == page, address
        # Nothing is selected.
        spi.writebytes([0x03, *place])
        assert spi.readbytes(256) == [0xFF] * 256, address
try:
    gpiod.request_lines("/dev/gpiochip0", config={8: output})
    raise SystemExit("a line of the controller's was given")
except OSError as error:
    print(error)
print("read by a select of its own")
