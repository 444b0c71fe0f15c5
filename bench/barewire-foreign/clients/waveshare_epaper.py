"""Waveshare's code for e-paper, as PyPI's waveshare-epaper has it: which board it takes itself to run on, and a picture sent to a
2.13-inch display. Older versions looked for a driver of the kernel's instead."""

import os

from epaper import epaper

epd2in13 = epaper("epd2in13_V2")
config = epd2in13.epdconfig
print("Waveshare on", type(config.implementation).__name__)
print("and before on a Raspberry Pi:", os.path.exists("/sys/bus/platform/drivers/gpiomem-bcm2835"))
display = epd2in13.EPD()
assert display.init(display.FULL_UPDATE) == 0
display.Clear(0xFF)
display.sleep()
