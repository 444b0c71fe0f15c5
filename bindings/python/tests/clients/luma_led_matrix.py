"""luma draws on a MAX7219: the bits on the wire are those of the bytes that luma says it sends."""

import barewire
from luma.core.interface.serial import noop, spi
from luma.core.render import canvas
from luma.led_matrix.device import max7219

sent = bytearray()


class Recorded(spi):
    """luma's own interface, whose bytes are noted on their way."""

    def _write_bytes(self, data):
        sent.extend(bytes(data))
        super()._write_bytes(data)


bus = barewire.Bus("sim:imx8mp")
barewire.map("/dev/spidev0.3", bus)
device = max7219(Recorded(port=0, device=3, gpio=noop()), cascaded=2)
with canvas(device) as draw:
    draw.rectangle(device.bounding_box, outline="white")
device.contrast(20)
device.cleanup()
figures = bus.simulated()
assert len(sent) > 30 and figures["bits"] == 8 * len(sent), (len(sent), figures)
print("sent as luma says")
