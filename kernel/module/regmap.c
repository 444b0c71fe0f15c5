// SPDX-License-Identifier: GPL-2.0 OR MIT
/* A bus of regmap over prepared accesses (barewire_spi.h). */
#include <linux/device.h>
#include <linux/module.h>
#include <linux/regmap.h>
#include <linux/slab.h>
#include "barewire_spi.h"

/* The longest access that is a run: its bytes are on the stack, twice. */
#define BW_ACCESS_BYTES 64

struct bw_map {
	struct spi_device *spi;
	struct barewire_spi *prepared;
};

static int bw_map_gather_write(void *context, const void *reg, size_t reg_len, const void *value, size_t value_len)
{
	struct bw_map *map = context;
	struct spi_transfer transfers[2] = { { .tx_buf = reg, .len = reg_len }, { .tx_buf = value, .len = value_len } };
	u8 tx[BW_ACCESS_BYTES], rx[BW_ACCESS_BYTES];
	struct spi_message message;

	if (likely(reg_len + value_len <= BW_ACCESS_BYTES)) {
		memcpy(tx, reg, reg_len);
		memcpy(tx + reg_len, value, value_len);
		return barewire_spi_run(map->prepared, tx, rx, reg_len + value_len);
	}
	spi_message_init_with_transfers(&message, transfers, 2);
	return spi_sync(map->spi, &message);
}

static int bw_map_write(void *context, const void *data, size_t len)
{
	struct bw_map *map = context;
	u8 rx[BW_ACCESS_BYTES];

	if (likely(len <= BW_ACCESS_BYTES))
		return barewire_spi_run(map->prepared, data, rx, len);
	return spi_write(map->spi, data, len);
}

static int bw_map_read(void *context, const void *reg, size_t reg_len, void *value, size_t value_len)
{
	struct bw_map *map = context;
	struct spi_transfer transfers[2] = { { .tx_buf = reg, .len = reg_len }, { .rx_buf = value, .len = value_len } };
	u8 tx[BW_ACCESS_BYTES], rx[BW_ACCESS_BYTES];
	struct spi_message message;
	int ret;

	if (likely(reg_len + value_len <= BW_ACCESS_BYTES)) {
		memcpy(tx, reg, reg_len);
		memset(tx + reg_len, 0, value_len);
		ret = barewire_spi_run(map->prepared, tx, rx, reg_len + value_len);
		memcpy(value, rx + reg_len, value_len);
		return ret;
	}
	spi_message_init_with_transfers(&message, transfers, 2);
	return spi_sync(map->spi, &message);
}

/* The formats and the bit of reads are regmap-spi's. */
static const struct regmap_bus bw_map_bus = {
	.write = bw_map_write,
	.gather_write = bw_map_gather_write,
	.read = bw_map_read,
	.read_flag_mask = 0x80,
	.reg_format_endian_default = REGMAP_ENDIAN_BIG,
	.val_format_endian_default = REGMAP_ENDIAN_BIG,
};

struct regmap *__devm_regmap_init_barewire(struct spi_device *spi, const struct regmap_config *config,
					   struct lock_class_key *lock_key, const char *lock_name)
{
	struct bw_map *map = devm_kzalloc(&spi->dev, sizeof(*map), GFP_KERNEL);

	if (!map)
		return ERR_PTR(-ENOMEM);
	map->spi = spi;
	map->prepared = devm_barewire_spi_prepare(spi, BW_ACCESS_BYTES, 0);
	if (IS_ERR(map->prepared))
		return ERR_CAST(map->prepared);
	return __devm_regmap_init(&spi->dev, &bw_map_bus, map, config, lock_key, lock_name);
}
EXPORT_SYMBOL_GPL(__devm_regmap_init_barewire);
