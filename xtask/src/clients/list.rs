//! The clients: what each is asked to do, on which board, and how that is judged.
//!
//! Scripts find what they need in variables: `BAREWIRE`, `PYTHON` (with packages from PyPI), `CLIENTS` (the
//! scripts' folder), `NODE_PACKAGES`, `IMAGE` (4 MiB of noise), `SPIDEV_TEST`, `SPIDEV_CRATE`, `DISPLAY_CRATE`, `RPPAL_CRATE`,
//! `FLASH_CRATE`; they run in a directory of their own.

/// A client.
#[derive(Debug, PartialEq)]
pub(super) struct Client {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// `--map`s of `barewire run`, `DIR` for the client's directory; none where the script does without it. A board's file
    /// `DIR/NAME.toml` is copied there from the scripts' folder.
    pub(super) maps: &'static [&'static str],
    /// Other options of `barewire run`, `DIR` likewise.
    pub(super) options: &'static [&'static str],
    pub(super) script: &'static str,
    /// A line of shell that fails if what the client left is wrong.
    pub(super) judge: &'static str,
}

/// A W25Q32JV on a simulated Raspberry Pi 3.
const FLASH: &[&str] = &["/dev/spidev0.0=sim:rpi3,cs=1,flash=DIR/chip.bin"];

/// Parts that flashrom knows, so that its table judges their models.
const PARTS: &[&str] = &[
    "/dev/spidev0.0=sim:imx8mp,flash-part=sst26vf064b,flash=DIR/0.bin",
    "/dev/spidev1.0=sim:rpi3,cs=1,flash-part=mx25l3233f,flash=DIR/1.bin",
    "/dev/spidev2.0=sim:imx8mp,flash-part=bh25q128as,flash=DIR/2.bin",
    "/dev/spidev3.0=sim:imx8mp,flash-part=w25q256fv,flash=DIR/3.bin",
];

/// Three pages of the image are in the chip, and no rule of the wire was broken.
const PAGES: &str = "for page in 0 291 16383; do \
                     dd if=chip.bin bs=256 skip=$page count=1 of=is.bin; \
                     dd if=$IMAGE bs=256 skip=$page count=1 of=must.bin; \
                     cmp is.bin must.bin; done; \
                     test $(grep -c 'RULES OF THE WIRE' log) = 0";

/// All of them.
pub(super) const CLIENTS: &[Client] = &[
    Client {
        name: "flashrom-write",
        about: "flashrom writes and verifies 4 MiB",
        maps: FLASH,
        options: &[],
        script: "flashrom -p linux_spi:dev=/dev/spidev0.0,spispeed=8000 -w $IMAGE; \
                 flashrom -p linux_spi:dev=/dev/spidev0.0,spispeed=8000 -v $IMAGE",
        judge: "cmp chip.bin $IMAGE; grep -q VERIFIED log",
    },
    Client {
        name: "flashrom-read",
        about: "flashrom reads 4 MiB, and erases the chip",
        maps: FLASH,
        options: &["--bufsiz", "65536"],
        script: "flashrom -p linux_spi:dev=/dev/spidev0.0,spispeed=20000 -r read.bin; \
                 flashrom -p linux_spi:dev=/dev/spidev0.0,spispeed=20000 -E",
        judge: "test $(stat -c %s read.bin) = 4194304; cmp read.bin chip.bin",
    },
    Client {
        name: "flashrom-qemu",
        about: "flashrom reads the chip of QEMU's sabrelite",
        maps: &["/dev/spidev0.0=qemu:sabrelite"],
        options: &[],
        script: "flashrom -p linux_spi:dev=/dev/spidev0.0,spispeed=8000 -r read.bin",
        judge: "test $(stat -c %s read.bin) = 2097152; grep -q SST25VF016B log",
    },
    Client {
        name: "flashrom-parts",
        about: "flashrom writes and verifies four parts of other vendors",
        maps: PARTS,
        options: &["--bufsiz", "65536"],
        script: "sh $CLIENTS/flashrom_parts.sh $IMAGE",
        judge: "test $(grep -c VERIFIED log) = 8; \
                for part in 0 1 2 3; do cmp $part.bin $part.image; done; \
                test $(grep -c 'RULES OF THE WIRE' log) = 0",
    },
    Client {
        name: "flashrom-serprog",
        about: "flashrom writes and verifies by serprog, without the library",
        maps: &[],
        options: &[],
        script: "sh $CLIENTS/serprog.sh $BAREWIRE $PWD/chip.bin $IMAGE",
        judge: "cmp chip.bin $IMAGE; grep -q '\"connections\":1' log",
    },
    Client {
        name: "flashrom-serve",
        about: "flashrom writes and verifies three parts by serprog",
        maps: &[],
        options: &[],
        script: "sh $CLIENTS/flashrom_parts.sh $IMAGE $BAREWIRE",
        judge: "test $(grep -c VERIFIED log) = 6; \
                for part in 0 1 2; do cmp $part.bin $part.image; done",
    },
    Client {
        name: "spi-pipe",
        about: "spi-tools reads the chip's id",
        maps: FLASH,
        options: &[],
        script: "printf '\\237\\0\\0\\0' | spi-pipe -d /dev/spidev0.0 -b 4 -n 1 > id.bin; \
                 printf '\\237\\0\\0\\0' | spi-pipe -d /dev/spidev0.0 -s 5000000 -b 4 -n 1 >> id.bin",
        judge: "printf '\\377\\357\\100\\026\\377\\357\\100\\026' | cmp - id.bin",
    },
    Client {
        name: "spi-config",
        about: "spi-tools sets and queries, with a file opened for reading",
        maps: FLASH,
        options: &[],
        // The program reads an answer of 1 as "no". The setting shows in the chip's id instead, which is
        // sent and received reversed.
        script: "spi-config -d /dev/spidev0.0 -m 3 -b 8 -s 5000000; spi-config -d /dev/spidev0.0 -q; \
                 spi-config -d /dev/spidev0.0 -l 1; \
                 printf '\\371\\0\\0\\0' | spi-pipe -d /dev/spidev0.0 -b 4 -n 1 > id.bin",
        judge: "grep -q 'mode=3, lsb=0, bits=8, speed=1000000' log; \
                printf '\\377\\367\\002\\150' | cmp - id.bin",
    },
    Client {
        name: "spidev_test",
        about: "the kernel's own test, in loopback",
        maps: &["/dev/spidev0.3=sim:imx8mp"],
        options: &[],
        script: "$SPIDEV_TEST -D /dev/spidev0.3 -v -l -s 1000000",
        judge: "test $(grep -c '^.X |' log) = 2; \
                test \"$(sed -n 's/^TX |//p' log)\" = \"$(sed -n 's/^RX |//p' log)\"",
    },
    Client {
        name: "spidev_test-wire",
        about: "the same by a jumper, with and without a chip select",
        maps: &["/dev/spidev0.0=sim:rpi3,jumper=0"],
        options: &[],
        script: "$SPIDEV_TEST -D /dev/spidev0.0 -v -s 1000000; \
                 $SPIDEV_TEST -D /dev/spidev0.0 -v -N -H -s 8000000",
        judge: "test $(grep -c '^.X |' log) = 4; \
                test \"$(sed -n 's/^TX |//p' log)\" = \"$(sed -n 's/^RX |//p' log)\"",
    },
    Client {
        name: "py-spidev-3.6",
        about: "py-spidev as Debian has it",
        maps: FLASH,
        options: &[],
        script: "/usr/bin/python3 $CLIENTS/py_spidev.py",
        judge: "true",
    },
    Client {
        name: "py-spidev-3.8",
        about: "py-spidev as PyPI has it",
        maps: FLASH,
        options: &[],
        script: "$PYTHON $CLIENTS/py_spidev.py",
        judge: "true",
    },
    Client {
        name: "periphery",
        about: "python-periphery and Adafruit's PureIO",
        maps: FLASH,
        options: &[],
        script: "$PYTHON $CLIENTS/python_periphery.py",
        judge: "true",
    },
    Client {
        name: "spi-device",
        about: "node's spi-device, 200 transfers at once",
        maps: FLASH,
        options: &[],
        script: "UV_THREADPOOL_SIZE=16 node $CLIENTS/spi_device.js",
        judge: "grep -q '200 reads' log",
    },
    Client {
        name: "gpiozero",
        about: "gpiozero reads a voltage by its MCP3008",
        maps: &["/dev/spidev0.0=sim:rpi3,input=2:constant:1234"],
        options: &[],
        script: "$PYTHON $CLIENTS/gpiozero_mcp3008.py",
        judge: "grep -q 1.234 log",
    },
    Client {
        name: "luma.oled",
        about: "luma draws; sigrok reads its bytes from the wire",
        maps: &["/dev/spidev0.3=sim:imx8mp"],
        options: &["--vcd", "wire.vcd"],
        script: "$PYTHON $CLIENTS/luma_oled.py sent.bin",
        judge: "sigrok-cli -i wire.vcd -I vcd -P spi:clk=sck:mosi=mosi:cs=cs3 -B spi=mosi > wire.bin; \
                test -s sent.bin; cmp sent.bin wire.bin",
    },
    Client {
        name: "luma.oled-gpio",
        about: "luma draws by D/C and RESET, with rpi-lgpio",
        maps: &["/dev/spidev0.0=sim:rpi3,oled=0:24:25:DIR/seen.pbm"],
        options: &["--map-gpio", "/dev/gpiochip0=sim:rpi3,oled=0:24:25:DIR/seen.pbm"],
        script: "$PYTHON $CLIENTS/luma_oled_gpio.py drawn.pbm",
        judge: "cmp drawn.pbm seen.pbm; test $(grep -c 'RULES OF THE WIRE' log) = 0",
    },
    Client {
        name: "luma.oled-alone",
        about: "the same with nothing else on the board",
        maps: &["/dev/spidev0.0=sim:DIR/display.toml"],
        options: &["--map-gpio", "/dev/gpiochip0=sim:DIR/display.toml", "--as", "pi4"],
        script: "$PYTHON $CLIENTS/luma_oled_gpio.py drawn.pbm",
        judge: "cmp drawn.pbm seen.pbm; test $(grep -c 'RULES OF THE WIRE' log) = 0",
    },
    Client {
        name: "gpiozero-lines",
        about: "gpiozero's outputs and inputs by lgpio",
        maps: &["/dev/spidev0.0=sim:rpi3"],
        options: &["--map-gpio", "/dev/gpiochip0=sim:rpi3"],
        script: "$PYTHON $CLIENTS/gpiozero_lines.py",
        judge: "grep -q 'gpiozero by lgpio' log",
    },
    Client {
        name: "blinka-rpi3",
        about: "Blinka recognises a Raspberry Pi 3, and reads a voltage",
        maps: &["/dev/spidev0.0=sim:rpi3,input=2:constant:1234"],
        options: &["--map-gpio", "/dev/gpiochip0=sim:rpi3,input=2:constant:1234"],
        script: "$PYTHON $CLIENTS/blinka.py",
        judge: "grep -q 'chip BCM2XXX board RASPBERRY_PI_3B Blinka RASPBERRY_PI_3B' log; grep -q 'channel 2 has 123. mV' log",
    },
    Client {
        name: "blinka-rpi5",
        about: "the same on a Raspberry Pi 5",
        maps: &["/dev/spidev0.0=sim:rpi5,input=2:constant:1234"],
        options: &["--map-gpio", "/dev/gpiochip0=sim:rpi5,input=2:constant:1234"],
        script: "$PYTHON $CLIENTS/blinka.py",
        judge: "grep -q 'chip BCM2XXX board RASPBERRY_PI_5 Blinka RASPBERRY_PI_5' log; grep -q 'channel 2 has 123. mV' log",
    },
    Client {
        name: "blinka-pi4",
        about: "Blinka as on a Raspberry Pi 4: an MCP3008 that it selects itself",
        maps: &["/dev/spidev0.0=sim:DIR/header.toml,cs=1"],
        options: &["--map-gpio", "/dev/gpiochip0=sim:DIR/header.toml", "--as", "pi4"],
        script: "$PYTHON $CLIENTS/blinka_selects_pi4.py",
        judge: "grep -q 'chip BCM2XXX board RASPBERRY_PI_4B Blinka RASPBERRY_PI_4B' log; \
                grep -q 'channel 2 has 123. mV' log; test $(grep -c 'RULES OF THE WIRE' log) = 0",
    },
    Client {
        name: "blinka-oled",
        about: "Blinka's SSD1306 by D/C, RESET and a select of its own",
        maps: &["/dev/spidev0.0=sim:rpi3,oled=0:24:25:DIR/seen.pbm,select=0:5"],
        options: &[
            "--map-gpio",
            "/dev/gpiochip0=sim:rpi3,oled=0:24:25:DIR/seen.pbm,select=0:5",
            "--as",
            "pi-zero-2w",
        ],
        script: "$PYTHON $CLIENTS/blinka_oled.py drawn.pbm",
        judge: "cmp drawn.pbm seen.pbm; test $(grep -c 'RULES OF THE WIRE' log) = 0",
    },
    Client {
        name: "rpi_ws281x",
        about: "rpi_ws281x recognises a Raspberry Pi 4",
        maps: &["/dev/spidev0.0=null:"],
        options: &["--as", "pi4"],
        script: "$PYTHON $CLIENTS/rpi_ws281x_board.py",
        judge: "grep -q 'rpi_ws281x on Pi 4 Model B - 4GB v1.4, registers at 0xfe000000' log; \
                grep -q 'opens /dev/gpiomem for its pins: that is out of reach' log",
    },
    Client {
        name: "waveshare-epaper",
        about: "Waveshare's e-paper code recognises a Raspberry Pi 4",
        maps: &["/dev/spidev0.0=null:"],
        options: &["--map-gpio", "/dev/gpiochip0=sim:rpi3", "--as", "pi4"],
        script: "$PYTHON $CLIENTS/waveshare_epaper.py",
        judge: "grep -q 'Waveshare on RaspberryPi' log; grep -q 'on a Raspberry Pi: True' log",
    },
    Client {
        name: "gpiod-tools",
        about: "gpiod's tools as Debian has them: lines, edges",
        maps: &["/dev/spidev0.2=sim:imx8mp"],
        options: &["--map-gpio", "/dev/gpiochip0=sim:imx8mp", "--vcd", "wire.vcd"],
        script: "sh $CLIENTS/gpiod_tools.sh",
        judge: "code=$(sed -n 's/.* wire 1 \\(.\\) GPIO5_IO20 .*/\\1/p' wire.vcd); \
                test \"$(sed -n \"s/^\\([01]\\)[$code]\\$/\\1/p\" wire.vcd | tr -d '\\n')\" = 1010; \
                test -s edges",
    },
    Client {
        name: "python-gpiod",
        about: "gpiod 2 of PyPI: a CAN controller's interrupts",
        maps: &["/dev/spidev0.2=sim:imx8mp"],
        options: &["--map-gpio", "/dev/gpiochip0=sim:imx8mp"],
        script: "$PYTHON $CLIENTS/gpiod_can.py",
        judge: "grep -q '20 frames, each with its interrupt' log",
    },
    Client {
        name: "rust-spidev",
        about: "the crates spidev and linux-embedded-hal",
        maps: FLASH,
        options: &[],
        script: "$SPIDEV_CRATE",
        judge: "grep -q 'four times' log",
    },
    Client {
        name: "rust-rppal",
        about: "the crate rppal recognises a Raspberry Pi 3, and reads a flash's id",
        maps: &["/dev/spidev0.1=sim:rpi3"],
        options: &[],
        script: "$RPPAL_CRATE",
        judge: "grep -q 'Raspberry Pi 3 B, BCM2837' log; grep -q 'the id .ef, 40, 16.' log",
    },
    Client {
        name: "rust-rppal-pi4",
        about: "the same as on a Raspberry Pi 4",
        maps: &["/dev/spidev0.1=sim:rpi3"],
        options: &["--as", "pi4"],
        script: "$RPPAL_CRATE",
        judge: "grep -q 'Raspberry Pi 4 B, BCM2711' log; grep -q 'the id .ef, 40, 16.' log",
    },
    Client {
        name: "rust-display",
        about: "the crates ssd1306 and gpio-cdev draw",
        maps: &["/dev/spidev0.0=sim:rpi3,oled=0:24:25:DIR/seen.pbm"],
        options: &["--map-gpio", "/dev/gpiochip0=sim:rpi3,oled=0:24:25:DIR/seen.pbm"],
        script: "$DISPLAY_CRATE drawn.pbm",
        judge: "cmp drawn.pbm seen.pbm; test $(grep -c 'RULES OF THE WIRE' log) = 0",
    },
    Client {
        name: "python-select",
        about: "py-spidev with no_cs, the chip selected by gpiod",
        maps: &["/dev/spidev0.0=sim:rpi3,flash=DIR/chip.bin,select=1:25,cs=1"],
        options: &["--map-gpio", "/dev/gpiochip0=sim:rpi3,flash=DIR/chip.bin,select=1:25"],
        script: "$PYTHON $CLIENTS/own_select.py $IMAGE",
        judge: PAGES,
    },
    Client {
        name: "blinka-selects",
        about: "Adafruit's Blinka selects two chips by digitalio",
        maps: &[
            "/dev/spidev0.0=sim:rpi3,flash=DIR/chip.bin,input=2:constant:1234,no-cs,select=1:25",
        ],
        options: &[
            "--map-gpio",
            "/dev/gpiochip0=sim:rpi3,flash=DIR/chip.bin,input=2:constant:1234,no-cs,select=1:25",
        ],
        script: "$PYTHON $CLIENTS/blinka_selects.py $IMAGE",
        judge: PAGES,
    },
    Client {
        name: "rust-select",
        about: "w25q32jv on embedded-hal-bus, selected by gpio-cdev",
        maps: &["/dev/spidev0.0=sim:rpi3,flash=DIR/chip.bin,select=1:25,cs=1"],
        options: &["--map-gpio", "/dev/gpiochip0=sim:rpi3,flash=DIR/chip.bin,select=1:25"],
        script: "$FLASH_CRATE read.bin",
        judge: "dd if=chip.bin bs=4096 skip=18 count=1 | cmp - read.bin; \
                test $(tr -d '\\377' < read.bin | wc -c) -gt 500; \
                test $(grep -c 'RULES OF THE WIRE' log) = 0",
    },
];
