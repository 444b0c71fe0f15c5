"""gpiozero's MCP3008 on /dev/spidev0.0, with 1234 mV on channel 2. Its pins are gpiozero's own mock, whose SPI
would be a mock too: here it is the one that gpiozero takes on a Raspberry Pi."""

from gpiozero import Device, MCP3008
from gpiozero.pins.local import LocalPiHardwareSPI
from gpiozero.pins.mock import MockFactory


class Pins(MockFactory):
    def _get_spi_class(self, shared, hardware):
        return LocalPiHardwareSPI


Device.pin_factory = Pins()
with MCP3008(channel=2, max_voltage=5.0) as adc:
    readings = [adc.voltage for _ in range(20)]
    assert all(abs(volts - 1.234) < 0.006 for volts in readings), readings
print("1.234 V read twenty times")
