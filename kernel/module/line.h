/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Edges of select lines by registers, as line.c explains them; for it and for api.c. */
#ifndef BAREWIRE_LINE_H
#define BAREWIRE_LINE_H

#include <linux/gpio/driver.h>
#include <linux/io.h>
#include <linux/version.h>
#include "host.h"

#if IS_ENABLED(CONFIG_GPIO_GENERIC) && LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define BW_SHADOW 1

/* The generic driver's edge, under its lock: bits of `mask` high, but for those of `low`. Between two barriers of the caller's. */
static __always_inline void bw_edge(struct gpio_chip *chip, void __iomem *data, unsigned long mask, unsigned long low)
{
	unsigned long shadow = (chip->bgpio_data | mask) ^ low;

	chip->bgpio_data = shadow;
	writel_relaxed(shadow, data);
}

/* That edge back, if its lock was held since. */
static __always_inline void bw_edge_back(struct gpio_chip *chip, void __iomem *data, unsigned long mask)
{
	unsigned long shadow = chip->bgpio_data ^ mask;

	chip->bgpio_data = shadow;
	writel_relaxed(shadow, data);
}

/* Takes its lock: without a call if it is free. Interrupts are off. */
static __always_inline void bw_lock_bank(struct gpio_chip *chip)
{
	if (unlikely(!raw_spin_trylock(&chip->bgpio_lock)))
		raw_spin_lock(&chip->bgpio_lock);
}

/* An edge if its lock is free: taken without a call, the caller saves no registers. */
static __always_inline bool bw_edge_unlocked(struct gpio_chip *chip, void __iomem *data, u32 mask, u32 low)
{
	unsigned long flags;

	if (unlikely(!raw_spin_trylock_irqsave(&chip->bgpio_lock, flags)))
		return false;
	bw_edge(chip, data, mask, low);
	raw_spin_unlock_irqrestore(&chip->bgpio_lock, flags);
	return true;
}
#endif

static __always_inline void bw_write(const struct bw_write *write)
{
	writel_relaxed(write->value, write->at);
}

#endif
