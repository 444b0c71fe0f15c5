"""python-periphery and Adafruit's PureIO, which open the node and make its ioctls themselves, on a W25Q32JV behind
/dev/spidev0.0. Says nothing if all is well."""

import Adafruit_PureIO.spi
from periphery import SPI, SPIError

ID = [0xEF, 0x40, 0x16]
PAGE = bytes(at * 7 % 251 for at in range(256))

spi = SPI("/dev/spidev0.0", 0, 8_000_000)
assert spi.transfer([0x9F, 0, 0, 0])[1:] == ID
assert spi.transfer(bytes([0x9F, 0, 0, 0]))[1:] == bytes(ID)
assert (spi.mode, spi.max_speed, spi.bits_per_word, spi.bit_order) == (0, 8_000_000, 8, "msb")
spi.mode = 3
assert spi.mode == 3 and spi.transfer([0x9F, 0, 0, 0])[1:] == ID
spi.transfer([0x06])
spi.transfer(bytes([0x02, 0, 0x12, 0x00]) + PAGE)
while spi.transfer([0x05, 0])[1] & 1:
    pass
read = spi.transfer(bytes([0x03, 0, 0x12, 0x00]) + bytes(1000))[4:]
assert read == PAGE + bytes([0xFF] * 744)
try:
    spi.bits_per_word = 12
    raise SystemExit("words of 12 bits were taken")
except SPIError:
    pass
spi.close()

bus = Adafruit_PureIO.spi.SPI("/dev/spidev0.0", max_speed_hz=5_000_000, phase=False, polarity=False)
assert list(bus.transfer([0x9F, 0, 0, 0]))[1:] == ID
assert (bus.mode, bus.max_speed_hz, bus.bits_per_word, bus.lsb_first) == (0, 5_000_000, 8, False)
# It sends more than a buffer in pieces of 4,096, each a message.
bus.writebytes([0x06])
assert list(bus.transfer([0x05, 0]))[1] == 2, "write enabled"
bus.writebytes([0x04])
assert list(bus.readbytes(3)) == [0xFF, 0xFF, 0xFF]
