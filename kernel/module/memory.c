// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Operations of flash chips (spi-mem): two transfers at most, without a message of the SPI core's around them. */
#include <linux/spi/spi-mem.h>
#include "host.h"

/* Command, address and dummy bytes of one operation; the SPI core makes messages of longer ones. */
#define BW_HEADER 24

/* Under io_mutex. */
static int bw_exec_op(struct spi_mem *mem, const struct spi_mem_op *op)
{
	struct bw_host *host = spi_controller_get_devdata(mem->spi->controller);
	unsigned int i, length = op->cmd.nbytes + op->addr.nbytes + op->dummy.nbytes, count = 1;
	u8 header[BW_HEADER], *to = header;
	struct bw_chip *chip;
	bool entered;
	int ret;

	/* Longer headers, and words that are not bytes, are for messages. */
	if (length > BW_HEADER || mem->spi->bits_per_word != 8)
		return -ENOTSUPP;
	entered = bw_enter(host);
	chip = bw_ready_chip(host, mem->spi);
	if (IS_ERR(chip)) {
		bw_exit(host, entered);
		return PTR_ERR(chip);
	}
	for (i = op->cmd.nbytes; i--;)
		*to++ = op->cmd.opcode >> (8 * i);
	for (i = op->addr.nbytes; i--;)
		*to++ = op->addr.val >> (8 * i);
	for (i = op->dummy.nbytes; i--;)
		*to++ = 0xff;
	host->transfers[0] = (struct bw_transfer){ .tx = header, .len = length };
	if (op->data.nbytes) {
		host->transfers[1] = (struct bw_transfer){ .len = op->data.nbytes };
		if (op->data.dir == SPI_MEM_DATA_IN)
			host->transfers[1].rx = op->data.buf.in;
		else
			host->transfers[1].tx = op->data.buf.out;
		count++;
	}
	ret = bw_run_listed(host, chip, count, true);
	bw_exit(host, entered);
	return ret;
}

const struct spi_controller_mem_ops bw_mem_ops = { .exec_op = bw_exec_op };
