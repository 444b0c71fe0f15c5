"""gpiod (libgpiod 2) waits for the interrupt of an MCP2518FD, which py-spidev tells to send a frame to itself. Its
INT is the line of that name on the board; its node is /dev/spidev0.2."""

from datetime import timedelta

import gpiod
import spidev
from gpiod.line import Bias, Direction, Edge, Value

LINE = "GPIO5_IO12"

spi = spidev.SpiDev(0, 2)
spi.max_speed_hz = 8_000_000


def write(address, *bytes_of):
    spi.xfer2([0x20 | address >> 8, address & 0xFF, *bytes_of])


assert gpiod.is_gpiochip_device("/dev/gpiochip0")
with gpiod.Chip("/dev/gpiochip0") as chip:
    info = chip.get_info()
    offset = chip.line_offset_from_id(LINE)
    print(info.name, info.label, info.num_lines, LINE, offset)
    settings = gpiod.LineSettings(direction=Direction.INPUT, edge_detection=Edge.BOTH, active_low=True)
    chip.watch_line_info(20)
    with chip.request_lines(consumer="can", config={offset: settings}) as lines:
        assert lines.get_value(offset) == Value.INACTIVE
        write(0x05C, 0x81)  # FIFO 1 transmits, and interrupts while it is not full
        write(0x003, 0x02)  # internal loopback
        write(0x01E, 0x01)  # TXIE: there is room
        (event,) = lines.read_edge_events()
        assert event.event_type == event.Type.RISING_EDGE and event.line_offset == offset
        frames = 20
        for frame in range(frames):
            write(0x400, 0x55, 0x05, 0, 0, 0x08, 0, 0, 0, *[frame] * 8)
            write(0x05D, 0x03)  # UINC, TXREQ: full until the frame has gone
            events = []
            while len(events) < 2:
                assert lines.wait_edge_events(timedelta(seconds=60)), "the interrupt never came"
                events += lines.read_edge_events()
            full, gone = events
            assert (full.event_type, gone.event_type) == (full.Type.FALLING_EDGE, gone.Type.RISING_EDGE)
            assert full.timestamp_ns <= gone.timestamp_ns and gone.line_seqno == 2 * frame + 3
        assert lines.get_value(offset) == Value.ACTIVE
    # A line of its own, and what is told of it.
    output = gpiod.LineSettings(direction=Direction.OUTPUT, output_value=Value.ACTIVE, bias=Bias.PULL_UP)
    with chip.request_lines(consumer="own", config={20: output}) as lines:
        assert lines.get_value(20) == Value.ACTIVE
        lines.set_value(20, Value.INACTIVE)
        assert lines.get_value(20) == Value.INACTIVE
        told = chip.read_info_event()
        assert told.line_info.consumer == "own" and told.line_info.bias == Bias.PULL_UP
    try:
        chip.request_lines(config={9: None})
        raise AssertionError("a chip select was given")
    except OSError as error:
        print(error)
print(frames, "frames, each with its interrupt")
