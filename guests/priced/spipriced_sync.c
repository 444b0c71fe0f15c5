// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
/* A driver of no chip, for guests alone: spi_sync between marks, in its probe, with whichever driver the controller has.
 * guests/priced.c counts what runs. */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spi/spi.h>
#include "mark.h"

static char *name = "spi_sync";
module_param(name, charp, 0444);

static int exchange(struct spi_device *spi, u8 *b, int bytes)
{
	struct spi_transfer x = { .tx_buf = b, .rx_buf = b + 1024, .len = bytes };
	struct spi_message m;

	spi_message_init_with_transfers(&m, &x, 1);
	return spi_sync(spi, &m);
}

static int probe(struct spi_device *spi)
{
	static const int lengths[] = { 4, 64, 1024 };
	u8 *b = kzalloc(2048, GFP_KERNEL);
	int i, ret = 0;

	if (!b)
		return -ENOMEM;
	b[0] = 0x9f;
	for (i = 0; i < ARRAY_SIZE(lengths); i++)
		PRICE(name, lengths[i], msleep(IDLE_MS), ret |= exchange(spi, b, lengths[i]));
	if (!ret && (b[1025] == 0xff || !b[1025]))
		ret = -ENODEV;
	kfree(b);
	return ret;
}

static struct spi_driver spipriced = { .driver = { .name = "spipriced_sync" }, .probe = probe };
module_spi_driver(spipriced);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("spi_sync, to be priced");
