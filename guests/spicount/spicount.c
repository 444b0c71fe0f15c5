// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * What messages of a driver in the kernel cost: bound to a chip, it runs each kind 1,000 times, five times over, and says
 * the least in the kernel's log, as `spicount: NAME NS ID`: nanoseconds of one message, which under QEMU's -icount shift=0
 * are instructions, and the chip's answer to a JEDEC id command.
 *
 * With provoke=1 it counts nothing: a thread of its own sends the message that a module built to be tested panics at, so
 * that no lock but the SPI core's is held when the thread ends.
 */
#include <linux/kthread.h>
#include <linux/version.h>
#include "count.h"

static int full_duplex(struct spi_device *spi, u8 *b)
{
	struct spi_transfer x = { .tx_buf = b, .rx_buf = b + 64, .len = 4 };
	struct spi_message m;

	spi_message_init_with_transfers(&m, &x, 1);
	return spi_sync(spi, &m);
}

static int write_then_read(struct spi_device *spi, u8 *b)
{
	u8 command = JEDEC;

	return spi_write_then_read(spi, &command, 1, b + 65, 3);
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
static struct spi_message ready;

static int optimized(struct spi_device *spi, u8 *b)
{
	return spi_sync(spi, &ready);
}

static void count_optimized(struct spi_device *spi, u8 *b)
{
	struct spi_transfer x = { .tx_buf = b, .rx_buf = b + 64, .len = 4 };

	spi_message_init_with_transfers(&ready, &x, 1);
	if (spi_optimize_message(spi, &ready))
		return;
	count("optimized-4", spi, b, optimized);
	spi_unoptimize_message(&ready);
}
#else
static void count_optimized(struct spi_device *spi, u8 *b) {}
#endif

static bool provoke;
module_param(provoke, bool, 0444);

static int provoking(void *spi)
{
	u8 *b = kzalloc(3, GFP_KERNEL);

	if (b) {
		b[0] = 0xbd;
		pr_info("spicount: provoking returned %d\n", spi_write(spi, b, 3));
	}
	return 0;
}

static int probe(struct spi_device *spi)
{
	u8 *b;

	if (provoke)
		return PTR_ERR_OR_ZERO(kthread_run(provoking, spi, "provoking"));
	b = kzalloc(128, GFP_KERNEL);
	if (!b)
		return -ENOMEM;
	count("sync-4", spi, b, full_duplex);
	count("write-read-1+3", spi, b, write_then_read);
	count_optimized(spi, b);
	kfree(b);
	return 0;
}

static struct spi_driver spicount = { .driver = { .name = "spicount" }, .probe = probe };
module_spi_driver(spicount);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("counts what messages of a driver cost");
