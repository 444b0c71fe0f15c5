"""rpi_ws281x: the board that its C code takes itself to run on. It needs that for the addresses of registers, so its LEDs
stay out of reach, also by SPI: it switches GPIO 10 to that by a register."""

import ctypes

import _rpi_ws281x
import rpi_ws281x


class Hardware(ctypes.Structure):
    """`rpi_hw_t` of rpihw.h."""

    _fields_ = [
        ("kind", ctypes.c_uint32),
        ("revision", ctypes.c_uint32),
        ("registers", ctypes.c_uint32),
        ("videocore", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
    ]


detect = ctypes.CDLL(_rpi_ws281x.__file__).rpi_hw_detect
detect.restype = ctypes.POINTER(Hardware)
found = detect()
assert found, "no Raspberry Pi"
print(f"rpi_ws281x on {found.contents.name.decode()}, registers at {found.contents.registers:#x}")
try:
    rpi_ws281x.PixelStrip(8, 10).begin()
except RuntimeError as error:
    print("its SPI:", error)
