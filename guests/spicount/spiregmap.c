// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * What a register of a driver with regmap costs: a flash chip's identification as a register of 24 bits, read through
 * regmap-spi, or, as spiregmap_barewire.c, through this project's bus of regmap.
 */
#include <linux/regmap.h>
#include "count.h"

static const struct regmap_config config = { .reg_bits = 8, .val_bits = 24, .read_flag_mask = 0x80 };
static struct regmap *map;

static int read_id(struct spi_device *spi, u8 *b)
{
	unsigned int id = 0;
	int ret = regmap_read(map, JEDEC, &id);

	b[65] = id >> 16;
	b[66] = id >> 8;
	b[67] = id;
	return ret;
}

static int probe(struct spi_device *spi)
{
	u8 *b = devm_kzalloc(&spi->dev, 128, GFP_KERNEL);

	map = devm_regmap_init_spi(spi, &config);
	if (IS_ERR(map))
		return PTR_ERR(map);
	if (!b)
		return -ENOMEM;
	count("regmap-read-1+3", spi, b, read_id);
	return 0;
}

static struct spi_driver spiregmap = { .driver = { .name = KBUILD_MODNAME }, .probe = probe };
module_spi_driver(spiregmap);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("counts what a register costs through regmap");
