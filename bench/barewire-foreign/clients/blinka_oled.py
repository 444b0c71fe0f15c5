"""Adafruit's SSD1306 on Blinka: D/C and RESET at D24 and D25, the display selected by D5. The first argument is a file for
what was drawn, a bitmap."""

import sys

import board
import digitalio
from adafruit_ssd1306 import SSD1306_SPI
from PIL import Image, ImageDraw

dc, reset, cs = (digitalio.DigitalInOut(pin) for pin in (board.D24, board.D25, board.D5))
display = SSD1306_SPI(128, 64, board.SPI(), dc, reset, cs)
for frame in range(3):
    drawn = Image.new("1", (128, 64))
    draw = ImageDraw.Draw(drawn)
    draw.rectangle((0, 0, 127, 63), outline=255)
    draw.text((10 + frame, 20), f"frame {frame}", fill=255)
    display.image(drawn)
    display.show()
with open(sys.argv[1], "wb") as file:
    file.write(b"P4\n128 64\n" + drawn.tobytes())
