// SPDX-License-Identifier: GPL-2.0 OR MIT
/* What selected.h leaves to be called. */
#include "selected.h"

/* Exchanges a second, of the longest with interrupts off (16 us), and with the GPIO bank's lock held all the while (4 us). */
#define BW_QUIET_HZ 62500
#define BW_HELD_HZ 250000

/* How the chip's line is driven by registers, if it can be. */
void bw_find_edges(struct bw_host *host, struct spi_device *spi, struct bw_chip *chip)
{
	struct bw_gpio *gpio = &host->gpios[spi_get_chipselect(spi, 0) & (BW_LINES - 1)];
	bool by_gpio = gpio->desc && !(spi->mode & SPI_NO_CS);

	chip->block = host->board.block;
	chip->direct = !by_gpio || gpio->generic || gpio->high.at;
	chip->generic = NULL;
	chip->select.at = chip->deselect.at = NULL;
	if (!by_gpio || !chip->direct)
		return;
	chip->generic = gpio->generic;
	chip->data = gpio->data;
	chip->mask = gpio->mask;
	chip->selected_low = gpio->active_low ? gpio->mask : 0;
	chip->deselected_low = gpio->active_low ? 0 : gpio->mask;
	chip->select = gpio->active_low ? gpio->low : gpio->high;
	chip->deselect = gpio->active_low ? gpio->high : gpio->low;
}

/* The block is not configured for that chip any more; NULL: for none. */
void bw_forget_selected(struct bw_host *host, struct bw_chip *chip)
{
	if (host->last && (!chip || chip == host->last)) {
		host->last->selected_len = host->last->held_len = 0;
		host->last = NULL;
	}
}

/* After an exchange of `len` bytes that went well: the next one finds the block configured. */
void bw_remember_selected(struct bw_host *host, struct bw_chip *chip, size_t len)
{
	size_t quiet = chip->effective_hz / (8 * BW_QUIET_HZ);

	bw_forget_selected(host, NULL);
	if (!chip->direct)
		return;
	if (!bw_takes_selected(host->slot, chip->preset, quiet))
		quiet = min(quiet, len);
	if (bw_takes_selected(host->slot, chip->preset, quiet)) {
		host->last = chip;
		chip->selected_len = chip->held_len = quiet;
		if (chip->generic)
			chip->held_len = min_t(size_t, quiet, chip->effective_hz / (8 * BW_HELD_HZ));
	}
}

/* Any exchange of two buffers that are apart. -EAGAIN, with nothing done, if it is not one for a short path. */
int bw_exchange_any(struct bw_host *host, struct bw_chip *chip, const void *tx, void *rx, size_t len)
{
	int ret;

	bw_forget_selected(host, NULL);
	ret = bw_exchange(host->slot, chip->preset, tx, rx, len);
	if (!ret)
		bw_remember_selected(host, chip, len);
	return ret;
}

/* Interrupts are off. The bank's lock is taken for each edge. */
int bw_exchange_quiet(struct bw_host *host, struct bw_chip *chip, const void *tx, void *rx, size_t len)
{
	int ret;

	host->quiet = true;
	ret = bw_exchange_selected(host, chip, tx, rx, len);
	host->quiet = false;
	return ret;
}

/* The chip was deselected after an exchange that failed. */
int bw_exchange_failed(struct bw_host *host, int ret)
{
	bw_forget_selected(host, NULL);
	bw_reclaim(host->slot);
	return ret;
}
