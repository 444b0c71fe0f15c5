/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The shortest path of an exchange: the C half selects the chip, without the Rust half in between, and the words are exchanged by a
 * function of the block. For short exchanges, with interrupts off: an edge of a GPIO by its bank's shadow needs that anyway, and
 * nothing else happens while the chip is selected.
 *
 * The shortest exchanges hold the bank's lock from one edge to the other, which saves taking it twice: the bank's other lines wait
 * for 4 us at most.
 *
 * The block is configured for the chip before it is selected, since its clock's level may change then. So the first exchange takes
 * another path (bw_exchange_any), and this one is for those that find the block as that left it: the chip is host->last.
 */
#ifndef BAREWIRE_SELECTED_H
#define BAREWIRE_SELECTED_H

#include "line.h"

#if defined(CONFIG_ARM) || defined(CONFIG_ARM64)
/* Accesses to two blocks are ordered by this alone. mb() of some 32-bit machines also flushes a cache, for the sake of DMA. */
#define bw_barrier() dsb(sy)
#else
#define bw_barrier() mb()
#endif

/* Drives the chip's line: its bit of the bank, low as given, or by a write. */
static __always_inline void bw_select(struct bw_chip *chip, unsigned long low, const struct bw_write *write)
{
#ifdef BW_SHADOW
	struct gpio_chip *bank = chip->generic;

	if (likely(bank)) {
		bw_barrier();
		bw_lock_bank(bank);
		bw_edge(bank, chip->data, chip->mask, low);
		raw_spin_unlock(&bank->bgpio_lock);
		bw_barrier();
		return;
	}
#endif
	/* Else a native line, which its block drives. */
	if (write->at) {
		bw_barrier();
		bw_write(write);
		bw_barrier();
	}
}

static __always_inline int bw_exchange_words(void *slot, struct bw_chip *chip, const void *tx, void *rx, size_t len)
{
	if (likely(chip->block == BW_ECSPI))
		return bw_exchange_ecspi(slot, chip->preset, tx, rx, len);
	switch (chip->block) {
	case BW_BCM2835:
		return bw_exchange_bcm2835(slot, chip->preset, tx, rx, len);
	case BW_PL022:
		return bw_exchange_pl022(slot, chip->preset, tx, rx, len);
	default:
		return bw_exchange_other(slot, chip->preset, tx, rx, len);
	}
}

/* Interrupts are off. `len` is not above chip->selected_len. */
static __always_inline int bw_exchange_selected(struct bw_host *host, struct bw_chip *chip, const void *tx, void *rx, size_t len)
{
	int ret;

	bw_select(chip, chip->selected_low, &chip->select);
	ret = bw_exchange_words(host->slot, chip, tx, rx, len);
	bw_select(chip, chip->deselected_low, &chip->deselect);
	return likely(!ret) ? 0 : bw_exchange_failed(host, ret);
}

/* The chip is host->last, and interrupts are off. `len` is not above chip->held_len. No barrier comes before the first edge: each
 * path ends with one behind its last.
 */
static __always_inline int bw_exchange_held(struct bw_host *host, struct bw_chip *chip, const void *tx, void *rx, size_t len)
{
#ifdef BW_SHADOW
	struct gpio_chip *bank = chip->generic;

	if (likely(bank)) {
		int ret;

		bw_lock_bank(bank);
		bw_edge(bank, chip->data, chip->mask, chip->selected_low);
		bw_barrier();
		ret = bw_exchange_words(host->slot, chip, tx, rx, len);
		bw_barrier();
		bw_edge_back(bank, chip->data, chip->mask);
		raw_spin_unlock(&bank->bgpio_lock);
		bw_barrier();
		return likely(!ret) ? 0 : bw_exchange_failed(host, ret);
	}
#endif
	return bw_exchange_selected(host, chip, tx, rx, len);
}

#endif
