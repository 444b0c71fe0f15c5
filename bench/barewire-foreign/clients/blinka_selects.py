"""Adafruit's Blinka and adafruit_bus_device on a Raspberry Pi 3 whose SPI controller has no chip select lines: a W25Q32JV
selected by D25, with pages of the file that is the first argument, and an MCP3008 selected by CE0."""

import sys

import board
import busio
import digitalio
from adafruit_bus_device.spi_device import SPIDevice
from adafruit_mcp3xxx.analog_in import AnalogIn
from adafruit_mcp3xxx.mcp3008 import MCP3008

assert board.board_id == "RASPBERRY_PI_3B", board.board_id
with open(sys.argv[1], "rb") as file:
    image = file.read()
spi = busio.SPI(clock=board.SCK, MISO=board.MISO, MOSI=board.MOSI)
# Eight clocks follow each operation, with no chip selected.
flash = SPIDevice(spi, digitalio.DigitalInOut(board.D25), baudrate=8_000_000, extra_clocks=8)


def operation(*writes, read=0):
    answer = bytearray(read)
    with flash as bus:
        for write in writes:
            bus.write(bytes(write))
        if read:
            bus.readinto(answer)
    return bytes(answer)


adc = MCP3008(spi, digitalio.DigitalInOut(board.CE0), ref_voltage=5.0)
for address in (0x000000, 0x012300, 0x3FFF00):
    place, page = address.to_bytes(3, "big"), image[address : address + 256]
    operation([0x06])
    operation([0x02], place, page)
    while operation([0x05], read=1)[0] & 1:
        pass
    assert operation([0x03], place, read=256) == page, address
    volts = AnalogIn(adc, 2).voltage
    assert abs(volts - 1.234) < 0.006, volts
print("Blinka selected two chips")
