"""Adafruit's Blinka on what it takes for a Raspberry Pi 4: an MCP3008 on the hardware's SPI, selected by D5, beside an output. No
variable of the environment tells it the board."""

import os

import adafruit_platformdetect
import board
import digitalio
from adafruit_mcp3xxx.analog_in import AnalogIn
from adafruit_mcp3xxx.mcp3008 import MCP3008

assert not [name for name in os.environ if name.startswith("BLINKA")]
detector = adafruit_platformdetect.Detector()
print("chip", detector.chip.id, "board", detector.board.id, "Blinka", board.board_id)
assert detector.board.RASPBERRY_PI_4B
led = digitalio.DigitalInOut(board.D26)
led.switch_to_output(value=True)
adc = MCP3008(board.SPI(), digitalio.DigitalInOut(board.D5), ref_voltage=5.0)
for _ in range(20):
    volts = AnalogIn(adc, 2).voltage
    assert abs(volts - 1.234) < 0.006, volts
    led.value = not led.value
print(f"channel 2 has {1000 * volts:.0f} mV")
