/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/*
 * /dev/barewireN: an SPI controller's registers, chip selects and interrupt for a program. The controller is bound to the driver
 * `barewire-user` of the module `barewire`, which keeps its clock, reset, pins and power. For programs and for the module.
 *
 * open      For writing: takes the controller, awake and with all chips deselected. -EBUSY if another has it and does not share it
 *           (BAREWIRE_DOOR_SHARE). For reading alone: BAREWIRE_DOOR_INFO and nothing else, whoever has it.
 * mmap      One page, shared, at offset 0: the registers begin `offset` bytes into it. -EPERM if it has another block's registers
 *           too, which the kernel's log names.
 * read      4 bytes: waits for the next interrupt, and gives how many there have been, which wraps. The interrupt is masked when it
 *           comes. -EIO if there is none.
 * poll      Readable if an interrupt came since the last read.
 * write     4 bytes, an int: 1 unmasks the interrupt, 0 masks it. -EIO as above.
 *
 * When the last program that has it is gone, however it ended, chips are deselected, the interrupt is masked, and the block is
 * disabled, without its clock. A program that was ended while it shares the controller leaves the lines that it had selected
 * deselected. After the driver is unbound, every call fails with -ENODEV, and an access to the page is a SIGBUS.
 */
#ifndef BAREWIRE_DOOR_H
#define BAREWIRE_DOOR_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define BAREWIRE_DOOR_VERSION 1
#define BAREWIRE_DOOR_LINES 4

enum barewire_door_kind {
	BAREWIRE_DOOR_ABSENT = 0,
	/* A line of the block, by its registers. */
	BAREWIRE_DOOR_NATIVE = 1,
	/* A GPIO: BAREWIRE_DOOR_SELECT. */
	BAREWIRE_DOOR_GPIO = 2,
};

struct barewire_door_line {
	__u8 kind;
	/* Of the block's lines. */
	__u8 channel;
	__u8 active_high;
	__u8 reserved;
};

/* In `flags`. */
#define BAREWIRE_DOOR_HAS_INTERRUPT 1u
/* McSPI: MOSI is on SPIDAT[0]. */
#define BAREWIRE_DOOR_D0_SENDS 2u

/* New fields are added at the end, with a new version. */
struct barewire_door_info {
	/* Before the call: of the structure that the program knows. After it: how many bytes of it were filled. */
	__u32 size;
	__u32 version;
	/* The block, as barewire's names of buses have it: "ecspi"; ended by a zero. */
	char block[16];
	/* The physical address of its first register, and bytes from there to the end of the page at most. */
	__u64 address;
	__u32 length;
	/* From the page's begin to the first register. */
	__u32 offset;
	/* The clock that the block divides, in hertz. */
	__u32 reference_hz;
	__u32 flags;
	/* How many have it now. */
	__u32 users;
	/* How many of `line` there are: chip selects by the device tree's numbers. */
	__u32 lines;
	struct barewire_door_line line[BAREWIRE_DOOR_LINES];
};

/* A `struct barewire_door_info *`. -EINVAL for a size of less than 8. */
#define BAREWIRE_DOOR_INFO _IO(0xE7, 0)

/*
 * Shares the controller from now on with programs that ask for the same: between them, they see to it that one at a time uses the
 * block. Without it, a program that opened a shared controller gets -EBUSY for all else.
 */
#define BAREWIRE_DOOR_SHARE _IO(0xE7, 1)

/*
 * Selects a chip by its GPIO, or deselects it. The argument is the line's number, with BAREWIRE_DOOR_ACTIVE to select: the device
 * tree has the polarity. Does not sleep for the GPIO. -EINVAL for a line that is no GPIO.
 */
#define BAREWIRE_DOOR_SELECT _IO(0xE7, 2)
#define BAREWIRE_DOOR_ACTIVE 0x100

#endif
