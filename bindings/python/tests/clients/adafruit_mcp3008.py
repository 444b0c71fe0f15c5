"""Adafruit's MCP3008 on Adafruit's own SPI class: reads channel 3."""

import Adafruit_GPIO.SPI as SPI
import Adafruit_MCP3008

adc = Adafruit_MCP3008.MCP3008(spi=SPI.SpiDev(0, 0))
values = {adc.read_adc(3) for _ in range(5)}
assert len(values) == 1, values
print(values.pop())
