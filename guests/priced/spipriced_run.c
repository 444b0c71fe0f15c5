// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
/* A client of barewire_spi.h, for guests alone: a prepared access between marks, in its probe. guests/priced.c counts what
 * runs. An access takes at most 1 ms on the wire, so 1,024 bytes fit at the chip's 20 MHz. */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spi/spi.h>
#include "barewire_spi.h"
#include "mark.h"

static int probe(struct spi_device *spi)
{
	static const int lengths[] = { 4, 64, 1024 };
	struct barewire_spi *prepared;
	u8 *b = kzalloc(2048, GFP_KERNEL);
	int i, ret = 0;

	if (!b)
		return -ENOMEM;
	b[0] = 0x9f;
	prepared = barewire_spi_prepare(spi, 1024, 0);
	if (IS_ERR(prepared)) {
		kfree(b);
		return PTR_ERR(prepared);
	}
	for (i = 0; i < ARRAY_SIZE(lengths); i++)
		PRICE("module-run", lengths[i], msleep(IDLE_MS), ret |= barewire_spi_run(prepared, b, b + 1024, lengths[i]));
	if (!ret && (b[1025] == 0xff || !b[1025]))
		ret = -ENODEV;
	barewire_spi_release(prepared);
	kfree(b);
	return ret;
}

static struct spi_driver spipriced = { .driver = { .name = "spipriced_run" }, .probe = probe };
module_spi_driver(spipriced);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("prepared accesses, to be priced");
