"""Adafruit's Blinka and adafruit_bus_device on a Raspberry Pi 3: a W25Q32JV behind D25 and an MCP3008 behind CE0, each
selected by digitalio, each behind the node /dev/spidev0.0. The first argument is the file of the flash's content."""

import sys

import board
import busio
import digitalio
from adafruit_bus_device.spi_device import SPIDevice
from adafruit_mcp3xxx.analog_in import AnalogIn
from adafruit_mcp3xxx.mcp3008 import MCP3008

assert board.board_id == "RASPBERRY_PI_3B", board.board_id
with open(sys.argv[1], "rb") as file:
    content = file.read()
spi = busio.SPI(clock=board.SCK, MISO=board.MISO, MOSI=board.MOSI)

# Eight clocks behind each operation, with no chip selected.
flash = SPIDevice(spi, digitalio.DigitalInOut(board.D25), baudrate=8_000_000, extra_clocks=8)
for address in (0, 0x1234, 0x3FFF00):
    seen = bytearray(256)
    with flash as bus:
        bus.write(bytes([0x03, *address.to_bytes(3, "big")]))
        bus.readinto(seen)
    assert seen == content[address : address + 256], address

adc = MCP3008(spi, digitalio.DigitalInOut(board.CE0), ref_voltage=5.0)
volts = AnalogIn(adc, 2).voltage
assert abs(volts - 1.234) < 0.006, volts
print("Blinka selected two chips")
