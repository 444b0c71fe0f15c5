"""Blinka: which board it takes itself to run on, and a voltage of the MCP3008 by its SPI."""

import adafruit_platformdetect
import board
import busio
import digitalio

detector = adafruit_platformdetect.Detector()
print("chip", detector.chip.id, "board", detector.board.id, "Blinka", board.board_id)
assert detector.board.any_raspberry_pi_40_pin
led = digitalio.DigitalInOut(board.D24)
led.switch_to_output(value=True)
spi = busio.SPI(board.SCK, MOSI=board.MOSI, MISO=board.MISO)
assert spi.try_lock()
spi.configure(baudrate=1_000_000)
answer = bytearray(3)
spi.write_readinto(bytes([1, 0xA0, 0]), answer)
spi.unlock()
print("channel 2 has", ((answer[1] & 3) << 8 | answer[2]) * 5000 // 1024, "mV")
