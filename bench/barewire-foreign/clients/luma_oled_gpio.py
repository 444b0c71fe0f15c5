"""luma.oled draws on an SSD1306 behind /dev/spidev0.0 whose D/C and RESET are GPIO lines 24 and 25. luma asks for
RPi.GPIO, which rpi-lgpio is by the character device. The first argument is a file for what was drawn, a bitmap."""

import sys

from luma.core.interface.serial import spi
from luma.core.render import canvas
from luma.oled.device import ssd1306
from PIL import Image, ImageDraw


def paint(draw, frame):
    draw.rectangle((0, 0, 127, 63), outline="white")
    draw.text((10 + frame, 20), f"frame {frame}", fill="white")
    draw.line((0, 63, 127, 4 * frame), fill="white")


device = ssd1306(spi(port=0, device=0, gpio_DC=24, gpio_RST=25, bus_speed_hz=8_000_000), width=128, height=64)
for frame in range(4):
    with canvas(device) as draw:
        paint(draw, frame)
# The display stays on when the program ends.
device.persist = True
drawn = Image.new("1", (128, 64))
paint(ImageDraw.Draw(drawn), 3)
with open(sys.argv[1], "wb") as file:
    file.write(b"P4\n128 64\n" + drawn.tobytes())
