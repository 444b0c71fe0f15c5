"""py-spidev as its users use it, on a W25Q32JV behind /dev/spidev0.0. Says nothing if all is well."""

import spidev

ID = [0xEF, 0x40, 0x16]

with spidev.SpiDev() as spi:
    spi.open(0, 0)
    assert spi.fileno() > 2
    assert (spi.mode, spi.bits_per_word, spi.max_speed_hz, spi.lsbfirst) == (0, 8, 1_000_000, False)
    spi.max_speed_hz = 8_000_000
    sent = [0x9F, 0, 0, 0]
    assert spi.xfer2(sent)[1:] == ID
    assert spi.xfer([0x9F, 0, 0, 0])[1:] == ID
    assert spi.xfer3([0x9F, 0, 0, 0])[1:] == tuple(ID)
    assert spi.xfer2([0x9F, 0, 0, 0], 4_000_000, 10, 8)[1:] == ID
    spi.writebytes([0x06])
    assert spi.xfer2([0x05, 0])[1] == 2, "write enabled"
    spi.writebytes2(bytes([0x04]))
    assert spi.xfer2([0x05, 0])[1] == 0
    assert spi.readbytes(3) == [0xFF, 0xFF, 0xFF]
    for mode in (3, 0):
        spi.mode = mode
        assert spi.mode == mode and spi.xfer2([0x9F, 0, 0, 0])[1:] == ID
    spi.lsbfirst = True
    assert spi.xfer2([0xF9, 0, 0, 0])[1:] == [0xF7, 0x02, 0x68]
    spi.lsbfirst = False
    # A read of three buffers' length, cut into messages by xfer3.
    assert len(spi.xfer3([0x03, 0, 0, 0] + [0] * 12_000)) == 12_004
    try:
        spi.xfer2([0] * 4097)
        raise SystemExit("4097 bytes were taken")
    except OverflowError:
        pass
    try:
        spi.bits_per_word = 12
        raise SystemExit("words of 12 bits were taken")
    except OSError:
        pass
