"""luma.oled draws on an SSD1306 behind /dev/spidev0.3. Its first argument is a file for the bytes that luma
itself says it sends, taken above spidev: the wire must carry the same."""

import sys

from luma.core.interface.serial import noop, spi
from luma.core.render import canvas
from luma.oled.device import ssd1306

sent = bytearray()


class Recorded(spi):
    """luma's own interface, whose bytes are noted on their way."""

    def _write_bytes(self, data):
        sent.extend(bytes(data))
        super()._write_bytes(data)


device = ssd1306(Recorded(port=0, device=3, gpio=noop(), bus_speed_hz=8_000_000), width=128, height=64)
for frame in range(3):
    with canvas(device) as draw:
        draw.rectangle(device.bounding_box, outline="white")
        draw.text((10 + frame, 20), f"frame {frame}", fill="white")
device.cleanup()
open(sys.argv[1], "wb").write(sent)
print(len(sent), "bytes")
